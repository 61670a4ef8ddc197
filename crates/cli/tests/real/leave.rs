//! Nodes that leave in order and come back.

use std::fs;
use std::time::Duration;

use trireme_testbed::config::cluster_address;
use trireme_testbed::node::snapshots_given;
use trireme_testbed::ports::NodePorts;

use super::load::Load;
use super::trial::{JOIN, SOON, Trial, pause};

/// Who leaves in order is not waited for.
const AT_ONCE: Duration = Duration::from_secs(2);

#[test]
fn nodes_leave_one_by_one_and_the_last_may_begin_again() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let load = Load::start(&trial, &[0]);

    trial.stop(2);
    for i in [0, 1] {
        trial.await_size(i, 2, AT_ONCE);
    }
    trial.stop(1);
    trial.await_size(0, 1, AT_ONCE);
    pause(Duration::from_secs(1));
    load.stop().assert_undisturbed();
    assert_eq!(
        trial.status(0, "wsrep_cluster_size"),
        "1",
        "somebody who left has come back"
    );

    trial.restart(1);
    trial.restart(2);
    for i in 0..3 {
        trial.await_size(i, 3, JOIN);
    }
    trial.assert_equal();

    for i in [2, 1, 0] {
        trial.stop(i);
    }
    let safe: Vec<String> = (0..3).map(|i| safe_to_bootstrap(&trial, i)).collect();
    assert_eq!(
        safe,
        ["1", "0", "0"],
        "the last to leave, and nobody else, may bootstrap"
    );

    if let Err(error) = trial.start() {
        panic!("the cluster does not start again: {error}");
    }
    for i in 0..3 {
        trial.await_size(i, 3, JOIN);
    }
    trial.exec(1, "INSERT INTO d.t VALUES (1, 1)");
    trial.assert_equal();
}

fn safe_to_bootstrap(trial: &Trial, i: usize) -> String {
    let text = fs::read_to_string(trial.node(i).datadir().join("grastate.dat")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("safe_to_bootstrap:"));
    line.unwrap_or("no such line").trim().to_string()
}

#[test]
fn a_server_leaves_and_joins_again_by_its_address_variable() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let ports: Vec<NodePorts> = trial.nodes().iter().map(|node| node.ports).collect();
    let address = cluster_address(&ports);
    let pid = trial.node(1).pid();
    let log_before = [0, 2].map(|i| trial.node(i).log_text().len());

    for round in 0..3 {
        trial.exec(1, "SET GLOBAL wsrep_cluster_address = ''");
        for i in [0, 2] {
            trial.await_size(i, 2, SOON);
        }
        trial.exec(0, &format!("INSERT INTO d.t VALUES ({round}, 0)"));
        trial.exec(
            1,
            &format!("SET GLOBAL wsrep_cluster_address = '{address}'"),
        );
        trial.await_size(1, 3, JOIN);
        trial.exec(1, &format!("UPDATE d.t SET v = 1 WHERE id = {round}"));
        trial.assert_equal();
    }
    assert_eq!(trial.node(1).pid(), pid, "the server was started anew");
    for (i, before) in [0, 2].into_iter().zip(log_before) {
        assert_eq!(
            snapshots_given(&trial.node(i).log_text()[before..]),
            0,
            "{} gave a snapshot",
            trial.name(i)
        );
    }
    trial.await_value(1, "SELECT SUM(v) FROM d.t", "3");
}

/// The applier that cannot store a fragment ends with the transaction open, and its thread releases the handle of a
/// callback that has returned.
#[test]
fn a_server_that_cannot_store_a_fragment_leaves_and_lives_on() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let mut client = trial.client(2);
    for statement in [
        "SET SESSION wsrep_on = OFF",
        "DROP TABLE mysql.wsrep_streaming_log",
    ] {
        client.exec(statement).expect("it is dropped here alone");
    }
    let mut client = trial.client(0);
    for statement in [
        "SET SESSION wsrep_trx_fragment_unit = 'rows'",
        "SET SESSION wsrep_trx_fragment_size = 1",
        "BEGIN",
        "INSERT INTO d.t VALUES (1, 1)",
        "INSERT INTO d.t VALUES (2, 2)",
        "COMMIT",
    ] {
        client.exec(statement).expect("two of three have it");
    }
    trial.await_status(2, "wsrep_local_state_comment", "Inconsistent", SOON);
    for i in [0, 1] {
        trial.await_size(i, 2, SOON);
    }
    pause(Duration::from_secs(1));
    assert_eq!(trial.status(2, "wsrep_ready"), "OFF");
    // It refuses the pause, and the server must not wait for the end of that one before the next.
    let mut client = trial.client(2);
    for statement in [
        "SET SESSION wsrep_dirty_reads = ON",
        "FLUSH TABLES WITH READ LOCK",
        "UNLOCK TABLES",
        "FLUSH TABLES WITH READ LOCK",
        "UNLOCK TABLES",
    ] {
        client.exec(statement).expect("nobody holds it up");
    }
    let log = trial.node(2).log_text();
    assert!(!log.contains("got signal"), "the server has died");
}
