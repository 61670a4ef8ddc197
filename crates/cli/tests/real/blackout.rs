//! Everybody dies at once, and is started again with the ordinary configuration: no bootstrap, no choice of a node.

use std::time::Duration;

use trireme_testbed::StartMode;
use trireme_testbed::node::snapshots_given;

use super::inspect::check;
use super::load::Load;
use super::trial::{JOIN, Trial, await_true, pause};

#[test]
fn a_cluster_that_was_killed_whole_comes_back_by_itself() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    if !trial.is_trireme() {
        return; // Galera's users bootstrap by hand
    }
    let mut acknowledged = 0;
    // As a service does it, and as a container does: there nobody recovers the position first.
    let ways = [
        ([0, 1, 2], StartMode::Join),
        ([2, 0, 1], StartMode::JoinUnprepared),
        ([1, 2, 0], StartMode::Join),
    ];
    for (order, mode) in ways {
        let load = Load::start(&trial, &[0, 1, 2]);
        pause(Duration::from_secs(2));
        for victim in order {
            trial.kill(victim);
        }
        acknowledged += load.stop().commits.len();
        let logs_before: Vec<usize> = (0..3).map(|i| trial.node(i).log_text().len()).collect();

        if let Err(error) = trial.start_all(mode) {
            panic!("the cluster does not come back: {error}");
        }
        for i in 0..3 {
            trial.await_size(i, 3, JOIN);
        }
        for i in 0..3 {
            let log = trial.node(i).log_text();
            let name = trial.name(i);
            assert_eq!(
                snapshots_given(&log[logs_before[i]..]),
                0,
                "{name} gave a snapshot"
            );
        }
        let rows: usize = trial
            .value(0, "SELECT COUNT(*) FROM d.load")
            .parse()
            .expect("a count");
        assert!(
            rows >= acknowledged,
            "{rows} rows, {acknowledged} inserts acknowledged"
        );
        trial.exec(1, "INSERT INTO d.t SELECT COUNT(*), 0 FROM d.t");
        trial.assert_equal();
    }
}

/// In `memory` mode a kill of all is what a power loss of all is in `os` mode: each may have forgotten what it acknowledged.
/// They wait for the last voter, and go on with the best that they have.
#[test]
fn nodes_that_may_have_forgotten_wait_for_all_voters_and_go_on() {
    let Some(mut trial) = Trial::start(3, "repl.durability=memory") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
    trial.assert_equal();
    assert_eq!(check(&trial, 0, "lost-commits").0, "ok");
    for i in 0..3 {
        trial.kill(i);
    }
    let says = |trial: &Trial, i: usize, text: &str| trial.node(i).log_text().contains(text);
    let goes_on = "all members are here, and the cluster goes on";
    for i in [0, 1] {
        trial
            .spawn_node(i, StartMode::Join)
            .unwrap_or_else(|error| panic!("node {i} does not start: {error}"));
    }
    let all_say = await_true(JOIN, || {
        [0, 1]
            .iter()
            .all(|i| says(&trial, *i, "may have forgotten"))
    });
    assert!(all_say, "not all say what may be missing");
    pause(Duration::from_secs(11)); // two of three are a majority, and not all
    assert!(
        !(0..2).any(|i| says(&trial, i, goes_on)),
        "without the third"
    );
    trial
        .spawn_node(2, StartMode::Join)
        .unwrap_or_else(|error| panic!("node 2 does not start: {error}"));
    for i in 0..3 {
        trial.await_size(i, 3, JOIN);
    }
    let owners = (0..3).filter(|i| says(&trial, *i, goes_on)).count();
    assert_eq!(owners, 1, "one goes on, the others follow");
    assert_eq!(check(&trial, 0, "lost-commits").0, "failed");
    // InnoDB has kept the row: its servers were killed, their machine was not.
    assert_eq!(trial.value(2, "SELECT COUNT(*) FROM d.t"), "1");
    trial.exec(1, "INSERT INTO d.t VALUES (2, 2)");
    trial.assert_equal();
}

/// As galera_sr.galera_sr_kill_all_nobootstrap does it: nobody vouches for the data of the first, and the other one takes them.
#[test]
fn a_node_bootstrapped_without_grastate_is_joined_by_the_others() {
    let Some(mut trial) = Trial::start(2, "") else {
        return;
    };
    if !trial.is_trireme() {
        return; // Galera's history would be a new one
    }
    trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
    trial.assert_equal();
    let history = trial.status(0, "wsrep_cluster_state_uuid");
    trial.kill(0);
    trial.kill(1);
    let log_before = trial.node(0).log_text().len();
    let grastate = trial.node(0).datadir().join("grastate.dat");
    std::fs::remove_file(grastate).expect("a removable file");
    for (i, mode) in [(0, StartMode::Bootstrap), (1, StartMode::Join)] {
        trial
            .spawn_node(i, mode)
            .unwrap_or_else(|error| panic!("node {i} does not start: {error}"));
        trial.await_size(i, i + 1, JOIN);
    }
    assert_eq!(trial.status(1, "wsrep_cluster_state_uuid"), history);
    assert_eq!(trial.value(1, "SELECT COUNT(*) FROM d.t"), "1");
    let log = trial.node(0).log_text();
    assert_eq!(snapshots_given(&log[log_before..]), 1);
    trial.exec(1, "INSERT INTO d.t VALUES (2, 2)");
    trial.assert_equal();
}
