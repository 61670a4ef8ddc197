//! A large transaction beside small ones (rule 8).

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use trireme_testbed::Sql;
use trireme_testbed::node::snapshots_given;

use super::load::Load;
use super::trial::{JOIN, Trial, await_true, pause};

const MIB: usize = 96;

/// Time for a large transaction on a busy machine.
const LONG: Duration = Duration::from_secs(180);

/// A connection to node `i` in which the large transaction is ready to be committed.
fn ready(trial: &Trial, i: usize) -> Sql {
    trial.exec(i, "CREATE TABLE d.large (id INT PRIMARY KEY, v LONGTEXT)");
    let client = Sql::connect_socket(&trial.node(i).socket(), LONG);
    let mut client = client.expect("the node runs");
    let rows = MIB << 7;
    let insert = format!(
        "INSERT INTO d.large SELECT seq, REPEAT(CHAR(33 + seq % 90), 8192) FROM d.seq_1_to_{rows}"
    );
    for statement in ["BEGIN", &insert] {
        let done = client.exec(statement);
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    client
}

#[test]
fn small_commits_pass_a_large_one() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let mut client = ready(&trial, 1);
    let views = trial.status(0, "wsrep_cluster_conf_id");
    let load = Load::start(&trial, &[0, 1, 2]);
    pause(Duration::from_secs(1));
    let begun = Instant::now();
    client.exec("COMMIT").expect("it does not conflict");
    let took = begun.elapsed();
    trial.await_status(2, "wsrep_local_recv_queue", "0", LONG);
    pause(Duration::from_secs(1));
    let record = load.stop();
    record.assert_undisturbed();
    let meanwhile = record
        .commits
        .iter()
        .filter(|at| (begun..begun + took).contains(at));
    let meanwhile = meanwhile.count();
    eprintln!("  {meanwhile} small commits in the {took:?} of a commit of {MIB} MiB");
    assert!(meanwhile > 10, "only {meanwhile} small commits in {took:?}");
    assert_eq!(trial.status(0, "wsrep_cluster_conf_id"), views);
    trial.assert_equal();
}

/// The others go on without it, with all of it or nothing, and it comes back.
#[test]
fn a_node_dies_while_it_commits_a_large_transaction() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let mut client = ready(&trial, 1);
    let commit = thread::spawn(move || client.exec("COMMIT"));
    match trial.is_trireme() {
        true => {
            let travels = || staged_bytes(&trial, 0) > 1 << 20;
            let is_seen = await_true(LONG, || travels() || commit.is_finished());
            assert!(
                is_seen && !commit.is_finished(),
                "the payload was not seen on its way"
            );
        }
        false => pause(Duration::from_millis(120)),
    }
    trial.kill(1);
    let _ = commit.join().expect("a client does not panic");
    // What comes after it in the order waits until it is applied.
    for (i, insert) in [
        (0, "INSERT INTO d.t VALUES (1, 1)"),
        (2, "INSERT INTO d.t VALUES (2, 2)"),
    ] {
        trial.await_size(i, 2, LONG);
        trial.exec(i, insert);
    }
    let count = trial.value(0, "SELECT COUNT(*) FROM d.large");
    assert!(
        ["0".to_string(), (MIB << 7).to_string()].contains(&count),
        "{count}"
    );
    trial.assert_running_equal();
    trial.restart(1);
    trial.await_size(0, 3, JOIN);
    trial.assert_equal();
}

/// So much of a large payload is in the log's directory of node `i`, and has no place in the log yet.
fn staged_bytes(trial: &Trial, i: usize) -> u64 {
    let listing = fs::read_dir(trial.node(i).datadir()).expect("its directory can be read");
    let files = listing.filter_map(Result::ok);
    let staged =
        files.filter(|file| (file.file_name().to_string_lossy()).starts_with("trireme-staged-"));
    // It may get its place, and another name, meanwhile.
    let lengths = staged.filter_map(|file| file.metadata().ok());
    lengths.map(|metadata| metadata.len()).sum()
}

/// Its donor gives it in parts: what others commit does not wait for the whole.
#[test]
fn a_node_without_its_log_gets_a_large_transaction() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    let mut client = ready(&trial, 1);
    trial.stop(2);
    client.exec("COMMIT").expect("it does not conflict");
    let mut removed = 0;
    for file in fs::read_dir(trial.node(2).datadir()).expect("its directory can be read") {
        let path = file.expect("a file").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Without the notes on its database it would take a snapshot.
        let is_note = name == "trireme-state.log";
        if name.starts_with("trireme-") && name.ends_with(".log") && !is_note {
            fs::remove_file(&path).expect("it can be removed");
            removed += 1;
        }
    }
    assert!(removed > 0, "it has a log");
    let before = [0, 1].map(|i| trial.node(i).log_text().len());
    let load = Load::start(&trial, &[0, 1]);
    trial.restart(2);
    trial.await_size(0, 3, JOIN);
    load.stop().assert_undisturbed();
    let given = [0, 1].map(|i| snapshots_given(&trial.node(i).log_text()[before[i]..]));
    assert_eq!(given, [0, 0], "without a snapshot");
    trial.assert_equal();
}
