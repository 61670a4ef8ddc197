//! HAProxy in front of real servers, with an agent beside each, configured as docs/load-balancers.md says.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::agent::Agent;
use super::load::Load;
use super::trial::{SOON, Trial, await_true, pause};

const HAPROXY: &str = "/usr/sbin/haproxy";
/// The page that an operator copies from.
const PAGE: &str = include_str!("../../../../docs/load-balancers.md");
const WRITE: &str = "mariadb_write";
const READ: &str = "mariadb_read";

/// HAProxy's process; it ends with the test.
struct Balancer {
    child: Child,
    statistics: PathBuf,
}

impl Balancer {
    fn start(trial: &Trial, agents: &[Agent]) -> Self {
        let dir = &trial.settings().dir;
        let (statistics, entrance) = (dir.join("haproxy.sock"), dir.join("haproxy-clients.sock"));
        let text = format!(
            "global\n stats socket {}\n\
             defaults\n mode tcp\n timeout connect 1s\n timeout client 10s\n timeout server 10s\n\
             frontend clients\n bind {}\n default_backend {WRITE}\n{}",
            statistics.display(),
            entrance.display(),
            backends(trial, agents)
        );
        let configuration = dir.join("haproxy.cfg");
        fs::write(&configuration, text).expect("a file");
        let child = Command::new(HAPROXY)
            .args(["-db", "-f"])
            .arg(&configuration)
            .spawn()
            .expect("the program starts");
        let balancer = Self { child, statistics };
        let is_there = || UnixStream::connect(&balancer.statistics).is_ok();
        assert!(await_true(SOON, is_there), "HAProxy does not start");
        balancer
    }

    /// Whether it sends clients of this backend to this server.
    fn uses(&self, backend: &str, server: &str) -> bool {
        let mut stream = UnixStream::connect(&self.statistics).expect("it listens");
        stream.write_all(b"show stat\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let mut lines = text.lines();
        let names = lines.next().expect("a head").split(',');
        let status = names.clone().position(|name| name == "status");
        let start = format!("{backend},{server},");
        let line = lines.find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("no {start} in {text}"));
        let status = line.split(',').nth(status.expect("a column"));
        status.is_some_and(|status| status.starts_with("UP"))
    }

    #[track_caller]
    fn await_use(&self, backend: &str, server: &str, wanted: bool) {
        let is_so = || self.uses(backend, server) == wanted;
        assert!(
            await_true(SOON, is_so),
            "{backend} {server} is not {wanted}"
        );
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The page's backends, with the addresses of this cluster.
fn backends(trial: &Trial, agents: &[Agent]) -> String {
    let (_, chapter) = PAGE.split_once("\n## HAProxy\n").expect("a chapter");
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let lines = chapter.lines().filter_map(|line| line.strip_prefix("    "));
    let mut text: String = lines.map(|line| format!("{line}\n")).collect();
    for (i, agent) in agents.iter().enumerate() {
        let (_, checked) = agent.address().rsplit_once(':').expect("a port");
        let served = trial.node(i).ports.mysql;
        let here = format!("127.0.0.1:{served} port {checked}");
        text = text.replace(&format!("192.0.2.{}:3306", i + 1), &here);
    }
    assert!(!text.contains("192.0.2."), "{text}");
    text
}

/// Stops node 3 for `stopped_ms` of every 200 ms while clients write on node 1, until `seen` returns.
pub fn while_the_third_is_slow(trial: &Trial, stopped_ms: u64, seen: impl FnOnce()) {
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    thread::scope(|scope| {
        let _ends = Ends(is_over);
        let load = Load::start(trial, &[0; 8]);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                trial.pause_node(2).expect("it can be paused");
                thread::sleep(Duration::from_millis(stopped_ms));
                trial.resume_node(2).expect("it can go on");
                thread::sleep(Duration::from_millis(200 - stopped_ms));
            }
        });
        seen();
        load.stop().assert_undisturbed();
    });
}

fn is_left_out(trial: &Trial) -> bool {
    let names = trial.status(0, "wsrep_trireme_left_out");
    names.contains("node3")
}

#[test]
fn haproxy_finds_the_nodes_that_can_serve_a_client() {
    if !Path::new(HAPROXY).is_file() {
        eprintln!("skipped: no {HAPROXY}: apt-get install haproxy");
        return;
    }
    // A short queue is too long already: the slow node is left out soon.
    let Some(mut trial) = Trial::start(3, "gcs.fc_limit=4") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    let agents: Vec<Agent> = (0..3)
        .map(|i| Agent::start(&trial, i, &["--user", "root"]))
        .collect();
    let balancer = Balancer::start(&trial, &agents);
    for server in ["node1", "node2", "node3"] {
        balancer.await_use(WRITE, server, true);
        balancer.await_use(READ, server, true);
    }

    trial.exec(2, "SET GLOBAL wsrep_desync = ON");
    balancer.await_use(WRITE, "node3", false);
    assert!(balancer.uses(READ, "node3"), "it lags by nothing");
    trial.exec(2, "SET GLOBAL wsrep_desync = OFF");
    balancer.await_use(WRITE, "node3", true);

    trial.kill(1);
    balancer.await_use(WRITE, "node2", false);
    balancer.await_use(READ, "node2", false);
    trial.restart(1);
    balancer.await_use(WRITE, "node2", true);
    balancer.await_use(READ, "node2", true);

    // A node that is left out for lag loses the writers, or keeps them, as its operator has chosen.
    while_the_third_is_slow(&trial, 190, || {
        assert!(await_true(SOON, || is_left_out(&trial)), "it keeps pace");
        balancer.await_use(WRITE, "node3", false);
    });
    balancer.await_use(WRITE, "node3", true);
    balancer.await_use(READ, "node3", true);
    trial.set_option(2, "repl.fc_desync_state=synced");
    while_the_third_is_slow(&trial, 180, || {
        assert!(await_true(SOON, || is_left_out(&trial)), "it keeps pace");
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            // HAProxy may take it out for a slow answer, not for what the answer says.
            let (_, told) = agents[2].get("/health/write");
            assert!(
                !told.contains("not in step"),
                "it shows as desynced: {told}"
            );
            assert_ne!(trial.status(2, "wsrep_local_state"), "2");
            pause(Duration::from_millis(100));
        }
    });
    balancer.await_use(WRITE, "node3", true);
    trial.assert_equal();
}
