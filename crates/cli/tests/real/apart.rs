//! A node cut off from the others, and back.

use std::time::Duration;

use super::load::Load;
use super::trial::{SOON, Trial, pause};

/// Silence is noticed after two seconds; Galera wants several keepalives within them.
pub const QUICK: &str = "evs.suspect_timeout=PT2S;evs.keepalive_period=PT0.5S";

#[test]
fn a_node_cut_off_stops_writing_and_merges_again() {
    let Some(mut trial) = Trial::start(3, QUICK) else {
        return;
    };
    // The last to join, then the first, who has led the group so far.
    for victim in [2, 0] {
        let others: Vec<usize> = (0..3).filter(|i| *i != victim).collect();
        let identity = trial.status(victim, "wsrep_gcomm_uuid");
        let load = Load::start(&trial, &others);

        trial.set_option(victim, "gmcast.isolate=1");
        trial.await_status(victim, "wsrep_cluster_status", "non-Primary", SOON);
        for i in &others {
            trial.await_size(*i, 2, SOON);
        }
        let write = format!("INSERT INTO d.t VALUES ({victim}, 0)");
        let refused = trial
            .try_exec(victim, &write)
            .expect_err("no quorum, no write");
        assert_eq!(refused.code(), Some(1047), "{refused}");
        trial.exec(others[0], &write);

        trial.set_option(victim, "gmcast.isolate=0");
        for i in 0..3 {
            trial.await_size(i, 3, SOON);
        }
        assert_eq!(
            trial.status(victim, "wsrep_gcomm_uuid"),
            identity,
            "it is not the same member"
        );
        load.stop().assert_undisturbed();
        trial.exec(victim, &format!("UPDATE d.t SET v = 1 WHERE id = {victim}"));
        trial.assert_equal();
    }
    assert_eq!(trial.value(1, "SELECT SUM(v) FROM d.t"), "2");
}

#[test]
fn a_write_on_a_node_just_cut_off_is_not_acknowledged() {
    let Some(mut trial) = Trial::start(3, QUICK) else {
        return;
    };
    trial.set_option(0, "gmcast.isolate=1");
    // The node does not know yet that it is alone.
    let refused = trial
        .try_exec(0, "INSERT INTO d.t VALUES (1, 1)")
        .expect_err("no majority, no acknowledgement");
    assert!(refused.code().is_some(), "no answer: {refused}");
    trial.await_size(1, 2, SOON);
    trial.set_option(0, "gmcast.isolate=0");
    for i in 0..3 {
        trial.await_size(i, 3, SOON);
    }
    trial.assert_equal();
}

#[test]
fn a_paused_node_is_expelled_and_comes_back_by_itself() {
    let Some(mut trial) = Trial::start(3, QUICK) else {
        return;
    };
    trial
        .pause_node(1)
        .expect("a process of ours can be paused");
    for i in [0, 2] {
        trial.await_size(i, 2, SOON);
    }
    trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
    trial.resume_node(1).expect("a process of ours can go on");
    // At first it still believes to be a member; the insert tells.
    trial.assert_equal();
    for i in 0..3 {
        trial.await_size(i, 3, SOON);
    }
    assert_eq!(trial.value(1, "SELECT COUNT(*) FROM d.t"), "1");
}

/// As by a backup that takes long; its server lets go by the state that it believes to be in.
#[test]
fn a_node_cut_off_under_a_global_read_lock_is_synced_again_when_that_ends() {
    let Some(mut trial) = Trial::start(3, QUICK) else {
        return;
    };
    for heals_first in [true, false] {
        let mut backup = trial.client(1);
        let statement = "FLUSH TABLES WITH READ LOCK";
        backup.exec(statement).expect(statement);
        trial.set_option(1, "gmcast.isolate=1");
        trial.await_size(0, 2, SOON);
        trial.exec(
            0,
            &format!("INSERT INTO d.t VALUES ({}, 1)", u8::from(heals_first)),
        );
        pause(Duration::from_secs(4)); // until it knows itself
        if heals_first {
            trial.set_option(1, "gmcast.isolate=0");
            trial.await_size(0, 3, SOON);
        }
        backup.exec("UNLOCK TABLES").expect("it holds them");
        if !heals_first {
            trial.await_status(1, "wsrep_cluster_status", "non-Primary", SOON);
            trial.set_option(1, "gmcast.isolate=0");
        }
        trial.await_status(1, "wsrep_local_state_comment", "Synced", SOON);
        trial.await_status(1, "wsrep_ready", "ON", SOON);
        assert_eq!(trial.status(1, "wsrep_desync_count"), "0");
        trial.exec(1, "UPDATE d.t SET v = v + 1");
        trial.exec(
            1,
            "CREATE OR REPLACE TABLE d.after_backup (id INT PRIMARY KEY)",
        );
        trial.assert_equal();
    }
}
