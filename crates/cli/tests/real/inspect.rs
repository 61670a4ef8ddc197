//! `trireme status` and `trireme doctor` against running servers, good and bad, ours and others'.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use trireme_testbed::packages::GALERA_PROVIDER;

use super::trial::{SOON, Trial, await_true};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_trireme");

/// Runs `trireme COMMAND` about node `i`, through its socket.
pub fn ask(trial: &Trial, i: usize, command: &[&str]) -> Output {
    let socket = trial.node(i).socket();
    let mut process = Command::new(PROGRAM);
    process.args(command).arg("--socket").arg(socket);
    process.args(["--user", "root"]);
    process.output().expect("the program runs")
}

/// What it prints, which is at most 80 columns wide.
pub fn told(trial: &Trial, i: usize, command: &[&str]) -> String {
    let output = ask(trial, i, command);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
    text + &errors
}

/// The same as JSON.
pub fn json(trial: &Trial, i: usize, command: &[&str]) -> Value {
    let output = ask(trial, i, command);
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// The result and text of a check of the doctor.
pub fn check(trial: &Trial, i: usize, name: &str) -> (String, String) {
    check_of(&json(trial, i, &["doctor", "--json"]), name)
}

/// The result and text of a check in the doctor's report.
pub fn check_of(report: &Value, name: &str) -> (String, String) {
    let checks = report["checks"].as_array().expect("a list");
    let found = checks.iter().find(|check| check["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no check {name}"));
    let text = |key: &str| found[key].as_str().expect("a text").to_owned();
    (text("result"), text("text"))
}

#[test]
fn a_running_cluster_is_seen_at_a_glance() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let report = json(&trial, 1, &["status", "--json"]);
    assert_eq!(report["cluster"]["size"], 3);
    assert_eq!(report["cluster"]["primary"], true);
    assert_eq!(report["losses"]["survives"], 1);
    let members = report["members"].as_array().expect("a list");
    let names: Vec<_> = members
        .iter()
        .filter_map(|member| member["name"].as_str())
        .collect();
    assert_eq!(names.len(), 3, "{report}");
    let leaders = members.iter().filter(|member| member["leader"] == true);
    assert_eq!(leaders.count(), 1, "{report}");

    trial.kill(2);
    trial.await_size(0, 2, SOON);
    let address = format!("127.0.0.1:{}", trial.node(2).ports.group);
    let text = told(&trial, 0, &["status"]);
    assert!(text.contains(&format!("not here: {address}")), "{text}");
    assert!(text.contains("survives the loss of 0 member(s)"), "{text}");

    trial.kill(1);
    assert!(await_true(SOON, || told(&trial, 0, &["status"])
        .contains("this node has no majority")));
    let text = told(&trial, 0, &["doctor"]);
    assert!(text.contains("FAILED majority: no majority"), "{text}");
    assert_eq!(ask(&trial, 0, &["doctor"]).status.code(), Some(1));

    trial.kill(0);
    let text = told(&trial, 0, &["status"]);
    assert!(text.starts_with("trireme: error: no answer at "), "{text}");
    assert!(text.contains("why-waiting"), "{text}");
}

#[test]
fn the_doctor_sees_what_is_made_real() {
    let Some(trial) = Trial::start(2, "evs.send_window=512") else {
        return;
    };
    let failed = |name| {
        let (result, text) = check(&trial, 0, name);
        assert!(
            ["failed", "warning"].contains(&result.as_str()),
            "{name}: {result}: {text}"
        );
        text
    };
    let ok = |name| assert_eq!(check(&trial, 0, name).0, "ok", "{name}");

    assert!(failed("losses").contains("add a node or an arbitrator"));
    assert!(failed("options-without-effect").contains("evs.send_window"));
    ok("primary-keys");
    trial.exec(0, "CREATE TABLE d.heap (v INT)");
    assert!(failed("primary-keys").contains("d.heap"));
    ok("engines");
    trial.exec(0, "CREATE TABLE d.m (v INT PRIMARY KEY) ENGINE=MyISAM");
    assert!(failed("engines").contains("d.m (MyISAM)"));
    ok("desynced");
    trial.exec(1, "SET GLOBAL wsrep_desync = ON");
    assert!(failed("desynced").contains("node2"));
    assert!(failed("in-step").contains("node2"));
    trial.exec(1, "SET GLOBAL wsrep_desync = OFF");
    ok("read-only");
    trial.exec(1, "SET GLOBAL read_only = 1");
    assert!(failed("read-only").contains("node2"));
    ok("rejects");
    trial.exec(1, "SET GLOBAL wsrep_reject_queries = ALL");
    assert!(failed("rejects").contains("node2"));
    trial.exec(1, "SET GLOBAL wsrep_reject_queries = NONE");
    ok("nonpk");
    trial.exec(1, "SET GLOBAL wsrep_certify_nonPK = OFF");
    assert!(failed("nonpk").contains("node2"));
    ok("appliers");
    trial.exec(1, "SET GLOBAL wsrep_slave_threads = 1");
    assert!(failed("appliers").contains("node2"));
    ok("weights");
    trial.set_option(1, "pc.weight=0");
    assert!(failed("weights").contains("node2"));
    ok("split-brain");
    trial.set_option(1, "pc.ignore_sb=yes");
    assert!(failed("split-brain").contains("node2"));
    ok("copied-data");
    let data = trial.node(0).datadir();
    let copy = data.with_file_name("copy");
    std::fs::create_dir(&copy).expect("a directory");
    std::fs::copy(
        data.join("trireme.gvwstate.dat"),
        copy.join("trireme.gvwstate.dat"),
    )
    .expect("a copy");
    assert!(failed("copied-data").contains("/copy"));
    ok("damaged-log");
    std::fs::write(data.join("trireme-damaged-000000000001-7.log"), "").expect("a file");
    assert!(failed("damaged-log").contains("trireme-damaged"));
}

#[test]
fn a_conflict_is_told_with_its_winner() {
    let Some(trial) = Trial::start(2, "") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    trial.exec(0, "INSERT INTO d.t VALUES (1, 0)");
    trial.await_value(1, "SELECT COUNT(*) FROM d.t", "1");
    let mut loser = trial.client(0);
    loser.exec("BEGIN").expect("a transaction");
    loser
        .exec("UPDATE d.t SET v = 1 WHERE id = 1")
        .expect("a row");
    trial.exec(1, "UPDATE d.t SET v = 2 WHERE id = 1");
    trial.await_value(0, "SELECT v FROM d.t", "2");
    let error = loser.exec("COMMIT").expect_err("the row is another's");
    assert!(error.is_conflict(), "{error}");
    let mut text = String::new();
    let is_told = await_true(SOON, || {
        text = told(&trial, 0, &["conflicts"]);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        flat.contains("brute-force-abort in d.t, key") && flat.contains("against node2")
    });
    assert!(is_told, "{text}");
}

#[test]
fn who_may_not_ask_is_told_what_to_do() {
    let Some(trial) = Trial::start(1, "") else {
        return;
    };
    let ask = |args: &[&str]| {
        let output = Command::new(PROGRAM)
            .args(args)
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    let port = trial.node(0).ports.mysql.to_string();
    let text = ask(&[
        "status",
        "--host",
        "127.0.0.1",
        "--port",
        &port,
        "--user",
        "nobody",
    ]);
    assert!(text.contains("--password-file"), "{text}");
    let text = ask(&["doctor", "--socket", "/nonexistent", "--user", "root"]);
    assert!(text.contains("is the server up"), "{text}");
    let text = ask(&[
        "status",
        "--socket",
        "/nonexistent",
        "--password-file",
        "/nonexistent",
    ]);
    assert!(text.contains("cannot read /nonexistent"), "{text}");
}

#[test]
fn a_cluster_of_galera_is_told_apart() {
    if !Path::new(GALERA_PROVIDER).is_file() || std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: no TRIREME_REAL, or no {GALERA_PROVIDER}");
        return;
    }
    let Some(trial) = Trial::start_under(GALERA_PROVIDER.into(), 1, "") else {
        return;
    };
    for command in ["status", "doctor"] {
        let text = told(&trial, 0, &[command]);
        assert!(text.contains("runs Galera"), "{text}");
        assert!(text.contains("libtrireme.so"), "{text}");
    }
}
