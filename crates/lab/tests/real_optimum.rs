//! The experiment `optimum` with real servers, as small as it can be: its phases follow from each other, and it goes on where it
//! ended.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_optimum` runs it; without the variable it does nothing.

use std::ffi::OsStr;
use std::fs;

use clap::Parser;
use trireme_lab::frame::Record;
use trireme_lab::optimum::{self, Plan};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    plan: Plan,
}

fn run(arguments: &[&OsStr]) {
    let arguments = [OsStr::new("optimum")]
        .into_iter()
        .chain(arguments.iter().copied());
    optimum::run(&Cli::parse_from(arguments).plan).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn phases_follow_and_a_run_goes_on() {
    if std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: TRIREME_REAL is not set");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let small = ["--quick", "--systems", "galera", "--threads", "2"];
    let factors = [
        "--factor=nodes=1..3",
        "--factor=option:gcs.fc_limit=16..256:log",
    ];
    let times = ["--seconds", "1", "--warmup-seconds", "0", "--out"];
    let all = small.iter().chain(&factors).chain(&times);
    let mut arguments: Vec<&OsStr> = all.map(OsStr::new).collect();
    arguments.push(out.as_os_str());
    run(&arguments);

    let records = |name: &str| -> Vec<Record> {
        let text = fs::read_to_string(out.join(name)).expect(name);
        serde_json::from_str(&text).expect(name)
    };
    let first = records("results.json");
    // 4 corners and 3 centres, 4 stars and a centre, 2 to confirm.
    assert_eq!(first.len(), 7 + 5 + 2);
    assert!(
        first
            .iter()
            .all(|r| r.complete && r.measured.figures["tps"] > 0.0)
    );
    let settings = fs::read_to_string(out.join("settings.json")).expect("settings");
    assert!(settings.contains("gcs.fc_limit="));
    let report = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(report.contains("fitted surface along nodes") && !report.contains("Partial"));

    // The last runs of the surface and those that confirm are lost; they are measured again, and no others.
    let lines = fs::read_to_string(out.join("records.jsonl")).expect("records");
    let kept: Vec<&str> = lines.lines().take(9).collect();
    fs::write(out.join("records.jsonl"), kept.join("\n")).expect("written");
    run(&[OsStr::new("--resume"), out.as_os_str()]);
    let second = records("results.json");
    assert_eq!(second.len(), 7 + 5 + 2);
    assert_eq!(first[..9], second[..9]);
}
