//! The experiment `sysbench` with real servers, as small as it can be: the sweep decides the threads, all nodes are loaded, every
//! error is told apart, and a run goes on where it ended.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_sysbench` runs it; without the variable it does nothing.

use std::ffi::OsStr;
use std::fs;

use clap::Parser;
use trireme_lab::frame::Record;
use trireme_lab::sysbench::{self, Plan};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    plan: Plan,
}

fn run(arguments: &[&OsStr]) {
    let arguments = [OsStr::new("sysbench")]
        .into_iter()
        .chain(arguments.iter().copied());
    sysbench::run(&Cli::parse_from(arguments).plan).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_run_leaves_its_files_and_goes_on() {
    if std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: TRIREME_REAL is not set");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let what = ["--quick", "--systems", "plain,galera", "--nodes", "2"];
    // So few rows that the two nodes meet conflicts.
    let extent = ["--rows", "200", "--sweep", "1,4", "--seconds", "2"];
    let small = what.iter().chain(&extent);
    let mut arguments: Vec<&OsStr> = small.map(OsStr::new).collect();
    arguments.extend([OsStr::new("--out"), out.as_os_str()]);
    run(&arguments);

    let records = |name: &str| -> Vec<Record> {
        let text = fs::read_to_string(out.join(name)).expect(name);
        serde_json::from_str(&text).expect(name)
    };
    let first = records("results.json");
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
    let report = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(report.contains("<svg") && report.contains("best") && !report.contains("Partial"));

    // One cell is lost; only that is measured again, with the threads of the same sweep.
    let lines = fs::read_to_string(out.join("records.jsonl")).expect("records");
    let kept: Vec<&str> = lines.lines().take(3).collect();
    fs::write(out.join("records.jsonl"), kept.join("\n")).expect("written");
    run(&[OsStr::new("--resume"), out.as_os_str()]);
    let second = records("results.json");
    assert_eq!(second.len(), 4);
    assert_eq!(first[..3], second[..3]);
    assert_eq!(first[3].cell, second[3].cell);
}
