//! Everybody dies at once, and is started again with the ordinary configuration: no bootstrap, no choice of a node.

use std::time::Duration;

use trireme_cli::StartMode;
use trireme_cli::node::snapshots_given;

use super::load::Load;
use super::trial::{JOIN, Trial, pause};

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
