//! The experiment `sysbench` with real servers, as small as it can be: the sweep decides the threads, all nodes are loaded, every
//! error is told apart, and a run goes on where it ended.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_sysbench` runs it; without the variable it does nothing.

mod common;

use std::ffi::OsString;

use trireme_lab::sysbench::{self, Plan};

fn run(words: &[OsString]) {
    sysbench::run(&common::choices::<Plan>(words)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_run_leaves_its_files_and_goes_on() {
    if common::is_skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    // So few rows that the two nodes meet conflicts.
    let small = "--quick --systems plain,galera --nodes 2 --rows 200 --sweep 1,4 --seconds 2 --out";
    run(&common::words(small, &out));

    let first = common::records(&out);
    // Two of the sweep, the plain server, Galera.
    assert_eq!(first.len(), 4);
    for record in &first {
        let figure = |name: &str| record.measured.figures[name];
        assert!(record.complete && figure("transactions") > 0.0);
        assert!(figure("queries_total") > figure("queries_read"));
        let kinds = [
            "deadlocks",
            "snapshot_errors",
            "lock_wait_timeouts",
            "duplicates",
        ];
        let told: f64 = kinds.map(figure).iter().sum();
        assert_eq!(told, figure("ignored_errors"), "{:?}", record.cell);
        assert_eq!(figure("other_errors"), 0.0);
    }
    let cluster = &first[3];
    let figure = |name: &str| cluster.measured.figures[name];
    assert_eq!(
        (cluster.cell.system.as_str(), cluster.cell.number("nodes")),
        ("galera", 2)
    );
    assert!(figure("node1_commits") > 0.0 && figure("node2_commits") > 0.0);
    assert!(figure("deadlocks") > 0.0);
    let report = common::report(&out);
    assert!(report.contains("<svg") && report.contains("best") && !report.contains("Partial"));

    // One cell is lost; only that is measured again, with the threads of the same sweep.
    common::lose_all_but(3, &out);
    run(&common::words("--resume", &out));
    let second = common::records(&out);
    assert_eq!(second.len(), 4);
    assert_eq!(first[..3], second[..3]);
    assert_eq!(first[3].cell, second[3].cell);
}
