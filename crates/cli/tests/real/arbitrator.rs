//! Two nodes with a database, and an arbitrator by the name of garbd.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use trireme_cli::arbitrator::GARBD;
use trireme_testbed::{ports, process};

use super::encryption::Store;
use super::load::Load;
use super::trial::{JOIN, SOON, Trial, await_true, pause};

/// An arbitrator of a trial's cluster. It dies with this.
struct Arbitrator {
    address: String,
    port: u16,
    dir: TempDir,
    /// Options beside its address.
    options: String,
    running: Option<Child>,
}

impl Arbitrator {
    /// Starts one, and waits until the cluster has it.
    fn start(trial: &mut Trial) -> Arbitrator {
        let mut arbitrator = Arbitrator::new(trial, String::new());
        arbitrator.spawn();
        await_votes(trial, 0);
        arbitrator
    }

    /// One that does not run yet.
    fn new(trial: &Trial, options: String) -> Arbitrator {
        Arbitrator {
            address: trial.value(0, "SELECT @@wsrep_cluster_address"),
            port: ports::find_free(1).expect("free ports")[0].group,
            dir: tempfile::tempdir().expect("a temporary directory"),
            options,
            running: None,
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trireme"));
        let options = self.all_options();
        command.arg0(GARBD).args(["--address", &self.address]);
        command.args(["--group", "trireme-local", "--options", &options]);
        command.arg("-l").arg(self.log());
        command.arg("-w").arg(self.dir.path().join("work"));
        command.stdin(Stdio::null());
        command
    }

    fn all_options(&self) -> String {
        let (port, more) = (self.port, &self.options);
        // A killed arbitrator leaves its mark.
        let marks = self.dir.path().display();
        format!(
            "base_port={port}; gmcast.listen_addr=tcp://127.0.0.1:{port}; repl.mark_dir={marks}; {more}"
        )
    }

    fn spawn(&mut self) {
        self.running = Some(self.command().spawn().expect("the program can be started"));
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("garbd.log")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.running.as_ref().expect("it runs"));
        kill_process(pid, signal).expect("a process of ours can be sent a signal");
    }

    /// Sends a signal, and waits until it has ended.
    fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.await_end()
    }

    /// Waits until it has ended.
    fn await_end(&mut self) -> ExitStatus {
        let child = self.running.as_mut().expect("it runs");
        let mut status = None;
        let has_ended = await_true(SOON, || {
            status = child.try_wait().expect("it can be waited for");
            status.is_some()
        });
        assert!(has_ended, "the arbitrator does not end");
        self.running = None;
        status.expect("it has ended")
    }

    /// Lines of its log that have all these words.
    fn lines(&self, words: &[&str]) -> usize {
        let log = std::fs::read_to_string(self.log()).expect("its log");
        let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
        log.lines().filter(has_all).count()
    }

    /// Has it read its files again, and waits until it has said so in a line with these words.
    fn reload(&self, words: &[&str]) {
        let before = self.lines(words);
        self.signal(Signal::HUP);
        let is_done = await_true(SOON, || self.lines(words) > before);
        assert!(is_done, "the arbitrator does not say {words:?}");
    }
}

impl Drop for Arbitrator {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- the arbitrator:");
            for line in process::tail(&self.log(), 40) {
                eprintln!("    {line}");
            }
        }
    }
}

/// Waits until all three are members with a vote.
fn await_votes(trial: &mut Trial, i: usize) {
    trial.await_size(i, 3, JOIN);
    trial.await_status(i, "wsrep_cluster_weight", "3", SOON);
}

const WRITE: &str = "INSERT INTO d.t SELECT COUNT(*), 0 FROM d.t";

#[test]
fn with_an_arbitrator_either_node_may_die() {
    let Some(mut trial) = Trial::start(2, "") else {
        return;
    };
    if !trial.is_trireme() {
        return; // it speaks another language
    }
    let mut arbitrator = Arbitrator::start(&mut trial);
    let incoming = trial.status(0, "wsrep_incoming_addresses");
    let unnamed = incoming.split(',').filter(|address| address.is_empty());
    assert_eq!(
        (incoming.split(',').count(), unnamed.count()),
        (3, 1),
        "{incoming}"
    );

    for victim in [0, 1] {
        let other = 1 - victim;
        trial.kill(victim);
        trial.await_size(other, 2, SOON);
        trial.exec(other, WRITE);
        trial.restart(victim);
        await_votes(&mut trial, other);
        trial.exec(victim, WRITE);
    }
    // The arbitrator may die, too: it comes back with its log.
    arbitrator.end(Signal::KILL);
    trial.await_size(0, 2, SOON);
    trial.exec(0, WRITE);
    arbitrator.spawn();
    await_votes(&mut trial, 0);
    trial.kill(1);
    trial.await_size(0, 2, SOON);
    trial.exec(0, WRITE);
    trial.restart(1);
    trial.await_size(0, 3, JOIN);

    // Asked to stop, it takes its leave: nobody has to notice its absence.
    let asked = Instant::now();
    let status = arbitrator.end(Signal::TERM);
    assert!(status.success(), "{status}");
    trial.await_size(0, 2, SOON);
    assert!(
        asked.elapsed() < Duration::from_secs(5), // evs.suspect_timeout
        "{:?}",
        asked.elapsed()
    );
    trial.assert_equal();
}

#[test]
fn what_was_acknowledged_is_in_the_arbitrators_log() {
    let Some(mut trial) = Trial::start(2, "") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    let mut arbitrator = Arbitrator::start(&mut trial);
    let load = Load::start(&trial, &[0]);
    pause(Duration::from_secs(1));
    // From here on node 0 commits with the arbitrator alone; nobody has given up the other node yet.
    trial
        .pause_node(1)
        .expect("a process of ours can be stopped");
    pause(Duration::from_secs(2));
    trial.kill(0);
    let acknowledged = load.stop().commits.len();
    arbitrator.end(Signal::KILL);
    trial.kill(1);

    // Node 0 stays away, with its database and its log.
    arbitrator.spawn();
    trial.restart(1);
    let rows: usize = trial
        .value(1, "SELECT COUNT(*) FROM d.load")
        .parse()
        .expect("a count");
    eprintln!("  {acknowledged} inserts acknowledged, {rows} there");
    assert!(
        rows >= acknowledged,
        "{rows} rows, {acknowledged} inserts acknowledged"
    );
    trial.exec(1, WRITE);
    trial.restart(0);
    trial.await_size(1, 3, JOIN);
    trial.assert_equal();
}

#[test]
fn a_cluster_with_an_arbitrator_is_led_to_tls() {
    let Some(mut trial) = Trial::start(2, "") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    let store = Store::new(&["node1", "node2", "arbitrator"]);
    let mut arbitrator = Arbitrator::start(&mut trial);
    let load = Load::start(&trial, &[0, 1]);
    let refused = store.enable(&trial, &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("--others"),
        "{said}"
    );
    let begun = store.enable(&trial, &["--others", "1", "--until", "accept-both"]);
    let said = String::from_utf8_lossy(&begun.stdout);
    assert!(
        begun.status.success() && said.contains("restart each arbitrator"),
        "{said}"
    );
    arbitrator.end(Signal::TERM);
    trial.await_size(0, 2, SOON);
    arbitrator.options = format!(
        "{}; repl.require_encryption=yes",
        store.options("arbitrator")
    );
    arbitrator.spawn();
    await_votes(&mut trial, 0);
    trial.await_size(1, 3, SOON);
    let ended = store.enable(&trial, &["--others", "1"]);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    await_votes(&mut trial, 0);
    load.stop().assert_undisturbed();
    // Its file, and a certificate of another authority.
    arbitrator.end(Signal::TERM);
    let foreign = Store::new(&["arbitrator"]);
    for (store, is_member) in [(&foreign, false), (&store, true)] {
        let file = arbitrator.dir.path().join("garbd.cnf");
        arbitrator.options = format!("{}; pc.wait_prim_timeout=PT5S", store.options("arbitrator"));
        let options = arbitrator.all_options();
        std::fs::write(&file, format!("options=\"{options}\"\n")).expect("a file of ours");
        let mut command = Command::new(env!("CARGO_BIN_EXE_trireme"));
        command
            .arg0(GARBD)
            .args(["-a", &arbitrator.address, "-g", "trireme-local", "-c"])
            .arg(&file);
        command.arg("-l").arg(arbitrator.log());
        arbitrator.running = Some(
            command
                .stdin(Stdio::null())
                .spawn()
                .expect("it can be started"),
        );
        match is_member {
            true => trial.await_size(0, 3, JOIN),
            false => {
                assert!(!arbitrator.await_end().success());
                let log = std::fs::read_to_string(arbitrator.log()).expect("its log");
                assert!(
                    log.contains("does not trust") && log.contains("socket.ssl_ca"),
                    "{log}"
                );
            }
        }
    }
}

#[test]
fn an_arbitrator_reads_new_certificates_when_it_is_asked_to() {
    let store = Store::new(&["node", "arbitrator"]);
    let options = |node| format!("{};repl.require_encryption=yes", store.options(node));
    let Some(mut trial) = Trial::start(2, &options("node")) else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    let mut arbitrator = Arbitrator::new(&trial, options("arbitrator"));
    arbitrator.spawn();
    await_votes(&mut trial, 0);
    let load = Load::start(&trial, &[0]);
    let views = trial.status(0, "wsrep_cluster_conf_id");
    let is_read = ["read anew", "repl.secret_file"];
    for step in [&["--new-authority"][..], &[], &["--drop-old-authority"]] {
        store.renew(step);
        (0..2).for_each(|i| trial.set_option(i, "socket.ssl_reload=1"));
        arbitrator.reload(&is_read);
    }
    // What does not do is told with file and remedy, and changes nothing.
    let file = store.file("arbitrator", "cert.pem");
    let good = std::fs::read_to_string(&file).expect("a file of ours");
    std::fs::write(&file, &good[..good.len() / 2]).expect("a file of ours");
    arbitrator.reload(&[&file, "copy the file anew"]);
    assert_eq!(
        trial.status(0, "wsrep_cluster_conf_id"),
        views,
        "a link was dropped"
    );
    load.stop().assert_undisturbed();
    // A new link needs what was read: the old authority is trusted by nobody any more.
    let established = ["connection to node2 ", " established"];
    let before = arbitrator.lines(&established);
    trial.kill(1);
    trial.await_size(0, 2, SOON);
    trial.restart(1);
    await_votes(&mut trial, 0);
    assert_eq!(arbitrator.lines(&established), before + 1);
}

#[test]
fn an_arbitrator_that_cannot_begin_says_why() {
    let Some(trial) = Trial::start(1, "") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let address = trial.value(0, "SELECT @@wsrep_cluster_address");
    let datadir = trial.node(0).datadir();
    let datadir = datadir.to_str().expect("a path of ours");
    let elsewhere = dir.path().to_str().expect("a path of ours");
    let log = dir.path().join("log");
    let log = log.to_str().expect("a path of ours");
    let group = ["--group", "trireme-local"];
    let cases: [(&[&str], &str); 5] = [
        (
            &["--address", "gcomm://", "--dir", elsewhere],
            "names no node",
        ),
        (
            &["--address", &address, "--dir", datadir],
            "belongs to a server",
        ),
        (
            &[
                "--address",
                &address,
                "--options",
                "no.such=1",
                "--dir",
                elsewhere,
            ],
            "Unknown parameter 'no.such'",
        ),
        (
            &["--address", &address, "--sst", "backup"],
            "not implemented",
        ),
        (
            &[
                "--address",
                &address,
                "--daemon",
                "--log",
                log,
                "--options",
                "gmcast.listen_addr=tcp://192.0.2.1",
            ],
            "192.0.2.1",
        ),
    ];
    for (args, expected) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trireme"));
        let output = command.arg("arbitrator").args(group).args(args).output();
        let output = output.expect("the program can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expected),
            "{args:?}: {said}"
        );
    }
}
