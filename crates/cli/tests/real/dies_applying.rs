//! A row ends the server that applies it: after three deaths the node stays down and says how to go on.

use std::fs;
use std::time::{Duration, Instant};

use trireme_testbed::preload;

use super::bad_days::why;
use super::trial::{JOIN, SOON, Trial, await_true, provider};

const SOURCE: &str = include_str!("dies_at_row.c");
/// The mark of `dies_at_row.c`.
const MARK: &str = "the row that ends a server";
/// So many processes that start at the row's position die of it, then the node refuses to apply it again.
const DEATHS: usize = 3;

#[test]
fn a_row_that_ends_a_server_is_not_applied_for_ever() {
    let Some(path) = provider() else {
        return;
    };
    let mut trial = Trial::prepare(path, 3, |_| {});
    if !trial.is_trireme() {
        return;
    }
    if let Err(error) = preload::into(&mut trial, [2], "dies_at_row", SOURCE) {
        eprintln!("skipped: needs a C compiler: {error}");
        return;
    }
    let armed = trial.node(2).dir.join("armed");
    trial.set_environment(2, "TRIREME_DIES", &armed);
    if let Err(error) = trial.start() {
        panic!("the cluster does not start: {error}");
    }
    trial.exec(0, "CREATE DATABASE d");
    trial.exec(
        0,
        "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(100) NOT NULL)",
    );
    trial.await_status(2, "wsrep_ready", "ON", SOON);
    fs::write(&armed, "").expect("the node's directory can be written to");

    trial.exec(0, &format!("INSERT INTO d.t VALUES (1, '{MARK}')"));
    assert!(dies(&mut trial, JOIN), "node 3 does not die of the row");
    for start in 1..=DEATHS {
        let began = Instant::now();
        let started = trial.start_node(2);
        assert!(started.is_err(), "start {start} does not end at the row");
        eprintln!("  start {start}: death after {:?}", began.elapsed());
    }
    assert!(trial.start_node(2).is_err(), "the row was applied again");
    let log = trial.node(2).log_text();
    let error = log
        .lines()
        .find(|line| line.contains("[ERROR]") && line.contains("has died 3 times in a row"))
        .unwrap_or_else(|| panic!("no error names the deaths"));
    let next = error
        .split_once("seqno ")
        .and_then(|(_, rest)| rest.split_once(' '))
        .map(|(number, _)| number.to_string())
        .expect("the error names the seqno");
    assert!(error.contains("grastate.dat"), "{error}");
    assert!(
        error.contains(&format!("repl.apply_again={next}")),
        "{error}"
    );
    let told = why(&trial, 2);
    assert!(
        told.contains("does not run") && told.contains("has died 3 times in a row"),
        "{told}"
    );

    // The others go on, and the node comes back when the cause is gone.
    trial.exec(1, "INSERT INTO d.t VALUES (2, 'harmless')");
    fs::remove_file(&armed).expect("the file is there");
    trial.settings_mut().provider_options = format!("repl.apply_again={next}");
    trial.restart(2);
    for i in 0..3 {
        trial.await_size(i, 3, JOIN);
    }
    let rows = |trial: &Trial| trial.value(2, "SELECT COUNT(*) FROM d.t");
    assert!(await_true(SOON, || rows(&trial) == "2"));
    trial.assert_equal();
}

/// Whether node 3 dies within `timeout`.
fn dies(trial: &mut Trial, timeout: Duration) -> bool {
    await_true(timeout, || trial.node(2).pid().is_none())
}
