//! Each reason of docs/state-and-event-file.md for which a node waits is made real, and `why-waiting` names it. Those of the
//! bad days (`majority`, `disk`) are in `bad_days`. No test sees `admission`, which lasts milliseconds, nor `refused` and
//! `failed`, which need a leader that refuses, and a process that outlives its failure.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;
use trireme_testbed::{StartMode, preload};

use super::bad_days::{alter, await_told, prepared, spawn, start, table_to_alter, why};
use super::ddl_blackout::is_unsafe;
use super::trial::{JOIN, SOON, Trial, await_true};

/// The donor's script sends nothing while the file named here is there, for two minutes at most.
const HELD: &str = "TRIREME_HELD_DONOR";
const HELD_DONOR: &str = "[[ \" $* \" != *' --role donor '* ]] || \
     for _ in {1..600}; do [ -e \"$TRIREME_HELD_DONOR\" ] || break; sleep 0.2; done\n";

/// What node `i` waits for, by its state file.
fn reason(trial: &Trial, i: usize) -> String {
    let file = trial.node(i).datadir().join("trireme-state.json");
    let state: Value = (fs::read(file).ok())
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let reason = state["waits_for"]["reason"].as_str();
    reason.unwrap_or_default().to_owned()
}

#[track_caller]
fn await_reason(trial: &Trial, i: usize, wanted: &str, words: &[&str]) {
    await_told(JOIN, &[&[wanted][..], words].concat(), || {
        format!("{}: {}", reason(trial, i), why(trial, i))
    });
}

/// The file is written about once a second.
#[track_caller]
fn await_nothing(trial: &Trial, i: usize) {
    let waits = || reason(trial, i);
    assert!(await_true(SOON, || waits().is_empty()), "{}", waits());
}

#[test]
fn founders_wait_for_each_other() {
    let Some(mut trial) = prepared("pc.bootstrap_expect=3") else {
        return;
    };
    spawn(&mut trial, 0, StartMode::Join);
    let missing = format!("127.0.0.1:{}", trial.node(2).ports.group);
    let words = ["to found the cluster: missing are", &missing];
    await_reason(&trial, 0, "founders", &words);
    for i in [1, 2] {
        spawn(&mut trial, i, StartMode::Join);
    }
    for i in 0..3 {
        trial.await_size(i, 3, JOIN);
        await_nothing(&trial, i);
    }
}

#[test]
fn a_new_node_waits_for_the_cluster_a_donor_and_its_snapshot() {
    let Some(mut trial) = prepared("") else {
        return;
    };
    let held = hold_donors(&mut trial);
    fs::write(&held, "").expect("a file");
    spawn(&mut trial, 1, StartMode::Join);
    let words = ["has looked for the cluster", "no answer at"];
    await_reason(&trial, 1, "component", &words);

    trial
        .bootstrap_node(0)
        .unwrap_or_else(|error| panic!("it does not begin: {error}"));
    await_reason(&trial, 1, "state-transfer", &["(SST)", "from node1"]);
    fs::remove_file(&held).expect("the file is there");
    trial.await_size(1, 2, JOIN);

    for i in 0..2 {
        trial.exec(i, "SET GLOBAL wsrep_desync = ON");
    }
    fs::write(&held, "").expect("a file");
    spawn(&mut trial, 2, StartMode::Join);
    await_reason(&trial, 2, "donor", &["for a donor", "Synced"]);
    for i in 0..2 {
        trial.exec(i, "SET GLOBAL wsrep_desync = OFF");
    }
    await_reason(&trial, 2, "state-transfer", &["(SST)"]);
    fs::remove_file(&held).expect("the file is there");
    trial.await_size(2, 3, JOIN);
}

#[test]
fn a_node_that_was_away_catches_up() {
    let Some(mut trial) = prepared("") else {
        return;
    };
    start(&mut trial);
    table_to_alter(&mut trial);
    trial.kill(2);
    let toi = "SET SESSION wsrep_OSU_method = TOI";
    (alter(&trial, 0, toi).join()).expect("it ends by itself");
    spawn(&mut trial, 2, StartMode::Join);
    let words = ["has caught up for", "write-sets"];
    await_reason(&trial, 2, "incremental-transfer", &words);
    trial.await_size(2, 3, JOIN);
    await_nothing(&trial, 2);
    trial.assert_equal();
}

#[test]
fn a_node_that_was_killed_waits_for_its_position_and_a_script() {
    let Some(mut trial) = prepared("") else {
        return;
    };
    let source = include_str!("slow_recovery.c");
    if let Err(error) = preload::into(&mut trial, [2], "slow_recovery", source) {
        eprintln!("skipped: needs a C compiler: {error}");
        return;
    }
    let slow = trial.node(2).dir.join("slow");
    trial.set_environment(2, "TRIREME_SLOW_RECOVERY", &slow);
    let held = hold_donors(&mut trial);
    start(&mut trial);
    table_to_alter(&mut trial);
    trial.kill(2);
    trial.exec(0, "INSERT INTO d.u VALUES (0, 1)");

    for file in [&slow, &held] {
        fs::write(file, "").expect("a file");
    }
    // Two write-sets that wait are too many for a node that is Synced.
    trial.settings_mut().provider_options = "gcs.fc_limit=0".to_owned();
    spawn(&mut trial, 2, StartMode::JoinUnprepared);
    await_reason(&trial, 2, "database-position", &["--wsrep-recover"]);
    fs::remove_file(&slow).expect("the file is there");
    await_reason(&trial, 2, "script", &["script of the state transfer"]);
    // What is ordered while the script runs still counts as missed; what is ordered later does not.
    let toi = "SET SESSION wsrep_OSU_method = TOI";
    let missed = alter(&trial, 0, toi);
    assert!(await_true(SOON, || is_unsafe(&trial, 1)), "it has begun");
    fs::remove_file(&held).expect("the file is there");
    await_reason(&trial, 2, "incremental-transfer", &["has caught up for"]);
    let later = [(); 3].map(|()| alter(&trial, 0, toi));
    await_reason(&trial, 2, "catch-up", &["has caught up for"]);
    for client in [missed].into_iter().chain(later) {
        client.join().expect("it ends by itself");
    }
    trial.await_size(2, 3, JOIN);
    await_nothing(&trial, 2);
    trial.assert_equal();
}

/// Makes all donors wait whenever the returned file exists; the test makes it. bash reads a file of ours before each
/// script of a state transfer.
fn hold_donors(trial: &mut Trial) -> PathBuf {
    let dir = trial.settings().dir.clone();
    let of_root = dir.join("rsync-as-root.bash");
    let file = match of_root.is_file() {
        true => of_root,
        false => dir.join("slow-donor.bash"),
    };
    let mut text = (fs::File::options().create(true).append(true))
        .open(&file)
        .expect("it can be written");
    text.write_all(HELD_DONOR.as_bytes()).expect("likewise");
    let held = dir.join("held-donor");
    for i in 0..trial.nodes().len() {
        trial.set_environment(i, "BASH_ENV", &file);
        trial.set_environment(i, HELD, &held);
    }
    held
}
