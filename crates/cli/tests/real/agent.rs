//! `trireme agent` beside a server: what it tells load balancers on good and bad days, and what it costs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use trireme_testbed::packages::GALERA_PROVIDER;

use super::trial::{SOON, Trial, await_true};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trireme");

/// The agent's process; it ends with the test.
pub struct Agent {
    child: Child,
    address: String,
}

impl Agent {
    /// Starts it beside node `i`, with these arguments.
    pub fn start(trial: &Trial, i: usize, user: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["agent", "--listen", "127.0.0.1:0", "--socket"])
            .arg(trial.node(i).socket())
            .args(user)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stderr = child.stderr.take().expect("it is piped");
        BufReader::new(stderr).read_line(&mut line).expect("a line");
        let address = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once(' '))
            .unwrap_or_else(|| panic!("no address: {line}"));
        let address = address.0.to_owned();
        Self { child, address }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Status and body.
    pub fn get(&self, path: &str) -> (u16, String) {
        get(&self.address, path)
    }

    #[track_caller]
    fn assert(&self, path: &str, status: u16, word: &str) {
        let (seen, body) = self.get(path);
        assert_eq!(seen, status, "{path}: {body}");
        assert!(body.contains(word), "{path}: {body}");
    }

    #[track_caller]
    fn await_status(&self, path: &str, status: u16) {
        self.await_answer(path, status, "");
    }

    #[track_caller]
    fn await_answer(&self, path: &str, status: u16, word: &str) {
        let mut seen = (0, String::new());
        let found = await_true(SOON, || {
            seen = self.get(path);
            seen.0 == status && seen.1.contains(word)
        });
        assert!(found, "{path}: {status} {word} was awaited, it is {seen:?}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The whole answer, head and body.
pub fn get_whole(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the agent listens");
    let limited = stream.set_read_timeout(Some(SOON));
    limited.expect("a read can have a limit");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: agent\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

fn get(address: &str, path: &str) -> (u16, String) {
    let text = get_whole(address, path);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status");
    (status.parse().expect("a number"), body.to_owned())
}

/// Runs what `trireme agent grant` prints, for a user with a password. Its arguments for the agent.
fn grant(trial: &Trial, file: &Path) -> Vec<String> {
    fs::write(file, "it's \\secret\n").expect("a file");
    let user = [
        "--user",
        "watch",
        "--password-file",
        &file.to_string_lossy(),
    ]
    .map(str::to_owned);
    let printed = Command::new(PROGRAM)
        .args(["agent", "grant"])
        .args(&user)
        .output()
        .expect("the program runs");
    trial.exec(0, &String::from_utf8_lossy(&printed.stdout));
    user.to_vec()
}

const READ: &str = "/health/read?max_lag_ms=500";

#[test]
fn load_balancers_learn_of_good_and_bad_days() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let file = trial.node(0).datadir().join("../agent-password");
    let user = grant(&trial, &file);
    let user: Vec<&str> = user.iter().map(String::as_str).collect();
    let agent = Agent::start(&trial, 0, &user);
    for path in [
        "/health/live",
        "/health/ready",
        "/health/write",
        "/health/read",
    ] {
        agent.await_answer(path, 200, "ok: ");
    }
    agent.await_answer(READ, 200, "lag of at most");
    agent.assert("/metrics", 200, "\nwsrep_cluster_size 3\n");
    agent.assert("/status.json", 200, "\"wsrep_provider_name\": \"Trireme\"");

    trial.exec(0, "SET GLOBAL read_only = 1");
    agent.await_status("/health/write", 503);
    agent.assert("/health/ready", 200, "ok: ");
    trial.exec(0, "SET GLOBAL read_only = 0");
    agent.await_status("/health/write", 200);

    // The node applies nothing: it is not in step, and reads at it grow old.
    let mut lock = trial.client(0);
    lock.exec("FLUSH TABLES WITH READ LOCK").expect("a lock");
    trial.exec(1, "INSERT INTO d.t VALUES (1, 1)");
    agent.await_status("/health/write", 503);
    agent.await_status(READ, 503);
    let begin = Instant::now();
    agent.assert(READ, 503, "lag of more than");
    assert!(
        begin.elapsed() < Duration::from_secs(10), // the server would wait for 30 s
        "{:?}",
        begin.elapsed()
    );
    agent.assert("/health/ready", 200, "ok: ");
    lock.exec("UNLOCK TABLES").expect("no lock");
    agent.await_status(READ, 200);
    agent.await_status("/health/write", 200);

    trial.kill(1);
    trial.kill(2);
    // The server closes SQL a moment before its status says that the component is not primary.
    agent.await_answer("/health/ready", 503, "waits for a majority");
    agent.assert("/health/write", 503, "waits for a majority");
    agent.assert(READ, 503, "no: ");
    agent.assert("/health/live", 200, "ok: ");

    trial.kill(0);
    agent.await_status("/health/live", 503);
    agent.assert("/metrics", 200, "trireme_up 0\n");
    agent.assert("/status.json", 200, "\"error\": \"no answer at ");
}

#[test]
fn a_crowd_of_clients_is_two_connections_for_the_server() {
    let Some(trial) = Trial::start(1, "") else {
        return;
    };
    let file = trial.node(0).datadir().join("../agent-password");
    let user = grant(&trial, &file);
    let user: Vec<&str> = user.iter().map(String::as_str).collect();
    let agent = Agent::start(&trial, 0, &user);
    let before: u64 = questions(&trial);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| {
                let read = "/health/read?max_lag_ms=5000";
                for path in ["/health/write", read, "/metrics", "/status.json"] {
                    agent.assert(path, 200, "");
                }
            });
        }
    });
    let connections = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'watch'";
    let connections: u32 = trial.value(0, connections).parse().expect("a number");
    assert!((1..=2).contains(&connections), "{connections}");
    // Four readings of two statements and five reads of two in each second begun, and what this test asks itself.
    let most = 20 + (begin.elapsed().as_secs() + 1) * 20;
    let asked = questions(&trial) - before;
    assert!(
        asked <= most,
        "{asked} statements, at most {most} were expected"
    );
}

fn questions(trial: &Trial) -> u64 {
    trial.status(0, "Questions").parse().expect("a number")
}

#[test]
fn a_node_of_galera_is_told_apart() {
    if !Path::new(GALERA_PROVIDER).is_file() || std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: no TRIREME_REAL, or no {GALERA_PROVIDER}");
        return;
    }
    let Some(trial) = Trial::start_under(GALERA_PROVIDER.into(), 1, "") else {
        return;
    };
    let agent = Agent::start(&trial, 0, &["--user", "root"]);
    agent.assert("/health/live", 200, "ok: ");
    agent.assert("/health/write", 503, "is Galera, not Trireme");
    agent.assert("/metrics", 200, "trireme_up 1\n");
}
