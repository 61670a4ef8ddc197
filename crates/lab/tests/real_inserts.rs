//! The experiment `inserts` with real servers, as small as it can be: it ends, leaves its files, and goes on where it ended.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_inserts` runs it; without the variable it does nothing.

use std::ffi::OsStr;
use std::fs;

use clap::Parser;
use trireme_lab::frame::Record;
use trireme_lab::inserts::{self, Plan};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    plan: Plan,
}

fn run(arguments: &[&OsStr]) {
    let arguments = [OsStr::new("inserts")]
        .into_iter()
        .chain(arguments.iter().copied());
    inserts::run(&Cli::parse_from(arguments).plan).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_run_leaves_its_files_and_goes_on() {
    if std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: TRIREME_REAL is not set");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let small = [
        "--quick",
        "--systems",
        "plain,semisync",
        "--connections",
        "4",
    ];
    let times = ["--seconds", "1", "--warmup-seconds", "0", "--out"];
    let mut arguments: Vec<&OsStr> = small.iter().chain(&times).map(OsStr::new).collect();
    arguments.push(out.as_os_str());
    run(&arguments);

    let records = |name: &str| -> Vec<Record> {
        let text = fs::read_to_string(out.join(name)).expect(name);
        serde_json::from_str(&text).expect(name)
    };
    let first = records("results.json");
    assert_eq!(first.len(), 6);
    assert!(
        first
            .iter()
            .all(|r| r.complete && r.measured.figures["inserts"] > 0.0)
    );
    let report = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(
        report.contains("<svg") && report.contains("not measured") && !report.contains("Partial")
    );

    // One cell is lost; only that is measured again.
    let lines = fs::read_to_string(out.join("records.jsonl")).expect("records");
    let kept: Vec<&str> = lines.lines().take(5).collect();
    fs::write(out.join("records.jsonl"), kept.join("\n")).expect("written");
    run(&[OsStr::new("--resume"), out.as_os_str()]);
    let second = records("results.json");
    assert_eq!(second.len(), 6);
    assert_eq!(first[..5], second[..5]);
}
