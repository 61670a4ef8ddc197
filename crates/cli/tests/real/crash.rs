//! Servers killed with -9.

use std::time::{Duration, Instant};

use trireme_testbed::node::snapshots_given;

use super::apart::QUICK;
use super::load::Load;
use super::trial::{JOIN, SOON, Trial, pause};

/// Galera's default `evs.suspect_timeout` is 5 s, after which the others go on without the dead.
const LONGEST_GAP: Duration = Duration::from_secs(8);

/// Trireme learns of a dead process from its connections, and does not wait for that timeout.
const LONGEST_GAP_OF_OURS: Duration = Duration::from_secs(3);

#[test]
fn the_others_go_on_when_a_node_is_killed_and_it_comes_back_without_a_snapshot() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    // The last to join, then the first, who has led the group so far.
    for victim in [2, 0] {
        let survivors: Vec<usize> = (0..3).filter(|i| *i != victim).collect();
        let logs_before: Vec<usize> = (0..3).map(|i| trial.node(i).log_text().len()).collect();
        let load = Load::start(&trial, &survivors);
        let load_on_victim = Load::start(&trial, &[victim]);
        pause(Duration::from_secs(2));

        let killed = Instant::now();
        trial.kill(victim);
        for i in &survivors {
            trial.await_size(*i, 2, SOON);
        }
        pause(Duration::from_secs(1));
        let until = Instant::now();
        drop(load_on_victim);

        trial.restart(victim);
        for i in 0..3 {
            trial.await_size(i, 3, JOIN);
        }
        let record = load.stop();
        record.assert_undisturbed();
        let gap = record.longest_gap(killed, until);
        eprintln!(
            "  {} killed: longest time without a commit {gap:?}",
            trial.name(victim)
        );
        let limit = match trial.is_trireme() {
            true => LONGEST_GAP_OF_OURS,
            false => LONGEST_GAP,
        };
        assert!(gap < limit, "nobody could commit for {gap:?}");

        let news: Vec<String> = (0..3)
            .map(|i| trial.node(i).log_text()[logs_before[i]..].to_string())
            .collect();
        for i in survivors {
            assert_eq!(
                snapshots_given(&news[i]),
                0,
                "{} gave a snapshot",
                trial.name(i)
            );
        }
        // The joiner's script runs in any case, and is told to do nothing, unless its operator wants none.
        let runs_script = news[victim].contains("Running: 'wsrep_sst_");
        assert_eq!(runs_script, victim == 2 || !trial.is_trireme());
        if trial.is_trireme() {
            trial.settings_mut().provider_options = "repl.ist_script=no".to_owned();
        }
        trial.assert_equal();
    }
}

#[test]
fn of_two_nodes_the_survivor_waits_unless_it_is_told_otherwise() {
    let Some(mut trial) = Trial::start(2, QUICK) else {
        return;
    };
    let write = "INSERT INTO d.t SELECT COUNT(*), 0 FROM d.t";

    // It cannot know whether the other is dead or merely out of reach.
    trial.kill(1);
    trial.await_status(0, "wsrep_cluster_status", "non-Primary", SOON);
    let refused = trial.try_exec(0, write).expect_err("no quorum, no write");
    assert_eq!(refused.code(), Some(1047), "{refused}");
    trial.restart(1);
    trial.await_size(0, 2, SOON);
    trial.exec(0, write);
    trial.assert_equal();

    // Told to ignore the split brain, it goes on alone.
    trial.set_option(0, "pc.ignore_sb=true");
    trial.kill(1);
    trial.await_size(0, 1, SOON);
    trial.exec(0, write);
    trial.restart(1);
    trial.await_size(0, 2, SOON);
    trial.assert_equal();

    // Told to be the primary component, it is.
    trial.set_option(0, "pc.ignore_sb=false");
    trial.kill(1);
    trial.await_status(0, "wsrep_cluster_status", "non-Primary", SOON);
    trial.set_option(0, "pc.bootstrap=1");
    trial.await_size(0, 1, SOON);
    trial.exec(0, write);
    trial.restart(1);
    trial.await_size(0, 2, SOON);
    trial.assert_equal();
}
