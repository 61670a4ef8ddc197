//! Checks of `trireme doctor`, each made to fail by making its condition real, and seen to pass. What a wrong configuration
//! makes is here, what the machine makes in `doctor_machine`; `inspect` and `bad_days` have others.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use trireme_testbed::{Sql, StartMode};

use super::balancer::while_the_third_is_slow;
use super::encryption::Store;
use super::full_disk::SmallDisk;
use super::inspect::check;
use super::trial::{JOIN, SOON, Trial, await_true, pause, provider};

/// What the second node's operator has got wrong.
const WRONG_OPTIONS: &str = "pc.recovery=no; gcache.recover=no; pc.wait_evidence=PT1M; evs.suspect_timeout=PT50S; \
                             repl.durability=memory; base_host=192.0.2.9";
const WRONG_ARGUMENTS: [&str; 6] = [
    "--innodb-autoinc-lock-mode=1",
    "--wsrep-slave-threads=1",
    "--log-bin",
    "--skip-log-slave-updates",
    "--version=11.8.9-MariaDB",
    "--wsrep-node-name=node1",
];

/// Fails or warns when the condition is real, with these words.
#[track_caller]
pub fn assert_found(trial: &Trial, name: &str, words: &str) {
    let (result, text) = check(trial, 0, name);
    let found = ["failed", "warning"].contains(&result.as_str());
    assert!(found && text.contains(words), "{name}: {result}: {text}");
}

#[track_caller]
pub fn assert_passes(trial: &Trial, name: &str) {
    let (result, text) = check(trial, 0, name);
    assert_eq!(result, "ok", "{name}: {text}");
}

/// Passes, fails once `statement` was executed on the second node, and passes again after `remedy`.
#[track_caller]
fn assert_follows(trial: &Trial, name: &str, statement: &str, remedy: &str) {
    assert_passes(trial, name);
    trial.exec(1, statement);
    assert_found(trial, name, "node2");
    trial.exec(1, remedy);
    assert_passes(trial, name);
}

#[test]
fn a_node_that_was_configured_otherwise_is_found() {
    let Some(path) = provider() else { return };
    let mut trial = Trial::prepare(path, 2, |settings| {
        settings.provider_options = "evs.suspect_timeout=PT20S".to_owned();
    });
    if !trial.is_trireme() {
        return;
    }
    let founder = "--wsrep-cluster-address=gcomm://".to_owned();
    trial.settings_mut().mariadbd_args.push(founder);
    trial
        .bootstrap_node(0)
        .unwrap_or_else(|error| panic!("it does not begin: {error}"));
    let another = another_version(&trial);
    let settings = trial.settings_mut();
    settings.provider = Some(another);
    settings.provider_options = WRONG_OPTIONS.to_owned();
    settings.absent = vec!["127.0.0.1:1".to_owned()];
    settings.mariadbd_args.clear();
    let wrong = WRONG_ARGUMENTS.map(str::to_owned);
    settings.mariadbd_args.extend(wrong);
    assert_found(&trial, "bootstrap-address", "node1");
    let found: [(&str, &str); 15] = [
        ("library-versions", "0.1.x"),
        ("pc-recovery", "node1"),
        ("gcache-recover", "node1"),
        ("wait-evidence", "node1"),
        ("options-alike", "evs.suspect_timeout"),
        ("mixed-durability", "memory"),
        ("durability", "node1"),
        ("own-address", "node1"),
        ("plaintext", "node1"),
        ("cluster-address", "127.0.0.1:1"),
        ("autoinc", "node1"),
        ("binary-log", "node1"),
        ("server-versions", "11.8"),
        ("names", "node1"),
        ("appliers", "node1"),
    ];
    for (name, _) in found {
        assert_passes(&trial, name);
    }
    trial.restart(1);
    trial.await_size(0, 2, JOIN);
    for (name, words) in found {
        assert_found(&trial, name, words);
    }
}

/// The library with another version in its text of that length.
fn another_version(trial: &Trial) -> PathBuf {
    let library = provider().expect("it runs");
    let mut bytes = fs::read(library).expect("it can be read");
    let own = format!("(trireme {})", env!("CARGO_PKG_VERSION"));
    let at = (bytes.windows(own.len())).position(|part| part == own.as_bytes());
    let end = at.expect("its version is in it") + own.len();
    bytes[end - 2] = b'x';
    let another = trial.settings().dir.join("another.so");
    fs::write(&another, bytes).expect("it can be written");
    another
}

#[test]
fn a_setting_that_was_changed_is_found_until_it_is_changed_back() {
    let Some(path) = provider() else { return };
    let mut trial = Trial::prepare(path, 2, |_| {});
    if !trial.is_trireme() {
        return;
    }
    trial.set_environment(0, "MARIADB_OPERATOR_IMAGE", "mariadb");
    if let Err(error) = trial.start() {
        panic!("the cluster does not start: {error}");
    }
    assert_found(&trial, "automatic-bootstrap", "MARIADB_OPERATOR_IMAGE");
    for name in ["bootstrap-address", "library-versions", "mark-dir"] {
        assert_passes(&trial, name);
    }
    // Its default depends on the server's series.
    let isolation = |value| format!("SET GLOBAL innodb_snapshot_isolation = {value}");
    for i in 0..2 {
        trial.exec(i, &isolation("ON"));
    }
    assert_follows(
        &trial,
        "snapshot-isolation",
        &isolation("OFF"),
        &isolation("ON"),
    );
    for (name, variable, wrong, right) in [
        (
            "default-engine",
            "default_storage_engine",
            "MyISAM",
            "InnoDB",
        ),
        ("causal-reads", "wsrep_sync_wait", "1", "0"),
        ("innodb-flush", "innodb_flush_log_at_trx_commit", "1", "2"),
        (
            "innodb-flush-interval",
            "innodb_flush_log_at_timeout",
            "60",
            "1",
        ),
        ("names", "wsrep_node_name", "'node1'", "'node2'"),
        ("sst-method", "wsrep_sst_method", "mariabackup", "rsync"),
        (
            "ports",
            "wsrep_sst_receive_address",
            "'127.0.0.1:4567'",
            "AUTO",
        ),
    ] {
        eprintln!("  {name}");
        let set = |value: &str| format!("SET GLOBAL {variable} = {value}");
        assert_passes(&trial, name);
        let wrong = match name {
            "ports" => format!("'127.0.0.1:{}'", trial.node(1).ports.group),
            _ => wrong.to_owned(),
        };
        trial.exec(1, &set(&wrong));
        assert_found(&trial, name, "");
        let right = match name {
            "ports" => format!("'127.0.0.1:{}'", trial.node(1).ports.sst),
            _ => right.to_owned(),
        };
        trial.exec(1, &set(&right));
        assert_passes(&trial, name);
    }
    let option = |value| format!("SET GLOBAL wsrep_provider_options = 'socket.dynamic={value}'");
    assert_follows(&trial, "both-accepted", &option("yes"), &option("no"));
    trial.exec(1, "SET GLOBAL wsrep_sst_method = mariabackup");
    let user = |user| format!("SET GLOBAL wsrep_sst_auth = '{user}'");
    assert_follows(&trial, "sst-user", &user(""), &user("root:"));
    another_binlog_format(&trial);
    many_connections(&trial);
    a_load_balancer(&trial);
    an_agent(&trial);
    many_conflicts(&trial);
}

/// MariaDB refuses it, except from a session that does not replicate.
fn another_binlog_format(trial: &Trial) {
    assert_passes(trial, "row-format");
    let mut session = trial.client(1);
    for statement in [
        "SET SESSION wsrep_on = OFF",
        "SET GLOBAL binlog_format = MIXED",
    ] {
        session.exec(statement).expect(statement);
    }
    assert_found(trial, "row-format", "node2");
    trial.exec(1, "SET GLOBAL binlog_format = ROW");
    assert_passes(trial, "row-format");
}

fn many_connections(trial: &Trial) {
    assert_passes(trial, "connections");
    trial.exec(1, "SET GLOBAL max_connections = 10");
    let clients: Vec<Sql> = (0..8).map(|_| trial.client(1)).collect();
    assert_found(trial, "connections", "node2");
    drop(clients);
    let passes = || check(trial, 0, "connections").0 == "ok";
    assert!(await_true(SOON, passes));
}

fn a_load_balancer(trial: &Trial) {
    assert_passes(trial, "load-balancer");
    trial.exec(0, "CREATE USER haproxy@localhost");
    let socket = trial.node(0).socket();
    let mut client = Command::new("mariadb")
        .args([
            "--no-defaults",
            "--user=haproxy",
            "--execute",
            "SELECT SLEEP(60)",
            "--socket",
        ])
        .arg(socket)
        .spawn()
        .expect("the client runs");
    let found = || check(trial, 0, "load-balancer").1.contains("haproxy");
    assert!(await_true(SOON, found));
    for i in 0..2 {
        trial.set_option(i, "repl.fc_desync_after_ms=0");
    }
    assert_passes(trial, "load-balancer");
    client.kill().expect("it is ours");
    client.wait().expect("likewise");
}

fn an_agent(trial: &Trial) {
    let Ok(listener) = TcpListener::bind("127.0.0.1:8077") else {
        eprintln!("skipped: something listens at 127.0.0.1:8077");
        return;
    };
    assert_passes(trial, "agent");
    drop(listener);
    assert_found(trial, "agent", "8077");
}

/// A hundred commits, of which each tenth is in the way of a transaction on the other node.
fn many_conflicts(trial: &Trial) {
    trial.exec(0, "CREATE DATABASE d");
    trial.exec(0, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT NOT NULL)");
    trial.exec(0, "INSERT INTO d.t VALUES (0, 0)");
    trial.await_value(1, "SELECT COUNT(*) FROM d.t", "1");
    let (mut winner, mut loser) = (trial.client(0), trial.client(1));
    for v in 1..=110 {
        (loser.exec(&format!("INSERT INTO d.t VALUES ({v}, 0)"))).expect("a row of its own");
    }
    assert_passes(trial, "conflicts");
    for v in 1..=5 {
        loser.exec("BEGIN").expect("a transaction");
        (loser.exec("UPDATE d.t SET v = v + 1000 WHERE id = 0")).expect("a row");
        (winner.exec(&format!("UPDATE d.t SET v = {v} WHERE id = 0"))).expect("likewise");
        let applied = || trial.value(1, "SELECT v FROM d.t WHERE id = 0") == v.to_string();
        assert!(await_true(SOON, applied));
        loser.exec("COMMIT").expect_err("the row is another's");
    }
    assert_found(trial, "conflicts", "node2");
}

#[test]
fn certificates_that_expire_and_members_without_them_are_found() {
    let Some(path) = provider() else { return };
    let store = Store::lasting("10", &["node1"]);
    let mut trial = Trial::prepare(path, 2, |settings| {
        settings.provider_options = format!(
            "socket.dynamic=yes;socket.ssl=no;{}",
            store.options("node1")
        );
    });
    if !trial.is_trireme() {
        return;
    }
    if let Err(error) = trial.start() {
        panic!("the cluster does not start: {error}");
    }
    assert_found(&trial, "certificates", "expires in");
    store.renew(&["--days", "100"]);
    assert_passes(&trial, "certificates");
    let ssl = |value| format!("SET GLOBAL wsrep_provider_options = 'socket.ssl={value}'");
    assert_follows(&trial, "mixed-tls", &ssl("yes"), &ssl("no"));
}

#[test]
fn a_member_that_is_missing_or_silent_is_found() {
    let Some(path) = provider() else { return };
    let mut trial = Trial::prepare(path, 2, |settings| {
        settings.provider_options =
            "evs.suspect_timeout=PT1M; gcache.size=2M; repl.mark_dir=; gcache.dir=../log-disk"
                .to_owned();
        settings.absent = vec!["127.0.0.1:1".to_owned()];
    });
    if !trial.is_trireme() {
        return;
    }
    let log_dirs = [0, 1].map(|i| trial.node(i).dir.join("log-disk"));
    for dir in &log_dirs {
        fs::create_dir_all(dir).expect("a directory can be made");
    }
    let small_disk = SmallDisk::mount(&log_dirs[0], "200m");
    trial
        .bootstrap_node(0)
        .unwrap_or_else(|error| panic!("it does not begin: {error}"));
    trial
        .spawn_node(1, StartMode::Join)
        .unwrap_or_else(|error| panic!("it does not start: {error}"));
    trial.await_size(0, 2, JOIN);
    trial.await_size(1, 2, JOIN);
    assert_found(&trial, "missing-members", "127.0.0.1:1");
    assert_found(&trial, "mark-dir", "is empty");

    assert_passes(&trial, "members-answer");
    trial.exec(0, "CREATE DATABASE d");
    trial.exec(0, "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGBLOB)");
    trial.exec(0, "INSERT INTO d.t VALUES (0, 0)");
    assert_passes(&trial, "slow-commits");
    trial.pause_node(1).expect("it can be paused");
    assert_found(
        &trial,
        "members-answer",
        &trial.node(1).ports.mysql.to_string(),
    );
    std::thread::scope(|scope| {
        // The commit waits for the other node, without which there is no majority.
        let slow = scope.spawn(|| trial.exec(0, "INSERT INTO d.t VALUES (-1, 0)"));
        pause(std::time::Duration::from_millis(700));
        trial.resume_node(1).expect("it can go on");
        slow.join().expect("it ends");
    });
    assert_passes(&trial, "members-answer");
    assert_found(&trial, "slow-commits", "node1");

    assert_passes(&trial, "ist-window");
    assert_passes(&trial, "backlog");
    for id in 1..=40 {
        let insert = format!("INSERT INTO d.t VALUES ({id}, REPEAT('x', 200000))");
        trial.exec(0, &insert);
    }
    let is_short = || check(&trial, 0, "ist-window").0 == "warning";
    assert!(
        await_true(SOON, is_short),
        "{:?}",
        check(&trial, 0, "ist-window")
    );
    if small_disk.is_some() {
        assert_found(&trial, "backlog", "an hour");
    }

    assert_passes(&trial, "bootstrap-expect");
    trial.stop(1);
    (trial.settings_mut().provider_options).push_str("; pc.bootstrap_expect=7");
    trial.restart(1);
    assert_found(&trial, "bootstrap-expect", "node2");
}

#[test]
fn a_member_that_holds_up_the_others_is_found() {
    let Some(path) = provider() else { return };
    let mut trial = Trial::prepare(path, 3, |settings| {
        settings.provider_options =
            "evs.suspect_timeout=PT1M; repl.fc_desync_after_ms=0".to_owned();
    });
    if !trial.is_trireme() {
        return;
    }
    if let Err(error) = trial.start() {
        panic!("the cluster does not start: {error}");
    }
    trial.exec(0, "CREATE DATABASE d");
    trial.exec(0, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT NOT NULL)");
    trial.assert_equal();
    for name in ["flow-control", "left-out"] {
        assert_passes(&trial, name);
    }
    while_the_third_is_slow(&trial, 190, || {
        let is_held_up = || check(&trial, 0, "flow-control").0 == "warning";
        assert!(await_true(SOON, is_held_up), "no writer waits");
    });
    for i in 0..3 {
        trial.set_option(i, "repl.fc_desync_after_ms=60");
    }
    while_the_third_is_slow(&trial, 190, || {
        let is_left_out = || check(&trial, 0, "left-out").1.contains("node3");
        assert!(await_true(SOON, is_left_out), "it keeps pace");
    });
    let is_back = || check(&trial, 0, "left-out").0 == "ok";
    assert!(await_true(SOON, is_back), "it stays left out");
    trial.assert_equal();
}
