//! Everybody dies at once, and is started again with the ordinary configuration: no bootstrap, no choice of a node.

use std::time::Duration;

use trireme_cli::StartMode;
use trireme_cli::node::snapshots_given;

use super::load::Load;
use super::trial::{JOIN, SOON, Trial, await_true, pause};

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
#[test]
fn nodes_that_may_have_forgotten_say_what_to_do_and_it_can_be_done() {
    let Some(mut trial) = Trial::start(3, "repl.durability=memory") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
    trial.assert_equal();
    for i in 0..3 {
        trial.kill(i);
    }
    for i in 0..3 {
        trial
            .spawn_node(i, StartMode::Join)
            .unwrap_or_else(|error| panic!("node {i} does not start: {error}"));
    }
    // Their servers answer nobody yet: what to do must be possible all the same.
    let named = |trial: &Trial, i: usize| -> Option<String> {
        let log = trial.node(i).log_text();
        let line = log
            .lines()
            .rfind(|line| line.contains("may have forgotten"))?;
        let (_, rest) = line.split_once("safe_to_bootstrap: 1 into the grastate.dat of ")?;
        Some(rest.split_once(" and of no other")?.0.to_string())
    };
    let all_say = await_true(JOIN, || (0..3).all(|i| named(&trial, i).is_some()));
    assert!(all_say, "not all say what may be missing");
    pause(Duration::from_secs(11)); // and say it again when all are there
    let name = named(&trial, 0).expect("a node");
    for i in 0..3 {
        assert_eq!(named(&trial, i).as_ref(), Some(&name), "node {i}");
        trial.stop(i);
    }
    let chosen = (0..3)
        .find(|i| trial.name(*i) == name)
        .expect("one of ours");
    let grastate = trial.node(chosen).datadir().join("grastate.dat");
    let text = std::fs::read_to_string(&grastate).expect("a state file");
    let text = text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
    std::fs::write(&grastate, text).expect("it can be written");
    trial
        .bootstrap_node(chosen)
        .unwrap_or_else(|error| panic!("the named node cannot be bootstrapped: {error}"));
    for i in (0..3).filter(|i| *i != chosen) {
        trial.restart(i);
    }
    trial.await_size(0, 3, SOON);
    trial.exec(1, "INSERT INTO d.t VALUES (2, 2)");
    assert_eq!(trial.value(2, "SELECT COUNT(*) FROM d.t"), "2");
    trial.assert_equal();
}
