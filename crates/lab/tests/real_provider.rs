//! The experiment `provider` with real libraries, as small as it can be: it ends, leaves its files, and goes on where it ended.
//!
//! `TRIREME_REAL=1 TRIREME_PROVIDER=target/release/libtrireme.so cargo test --release -p trireme-lab --test real_provider` runs
//! it; without TRIREME_REAL it does nothing. The hosts are processes of this test, hence no harness.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use trireme_lab::frame::Record;
use trireme_lab::provider::{self, Plan};
use trireme_testbed::packages::GALERA_PROVIDER;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    plan: Plan,
}

fn run(arguments: &[OsString]) -> Result<(), String> {
    let program = OsString::from("provider");
    let plan = Cli::parse_from([&program].into_iter().chain(arguments)).plan;
    provider::run(&plan).map_err(|error| error.to_string())
}

fn arguments(texts: &[&str], path: &Path) -> Vec<OsString> {
    let texts = texts.iter().map(OsString::from);
    texts.chain([path.as_os_str().to_os_string()]).collect()
}

fn main() -> ExitCode {
    if provider::is_host() {
        return provider::host();
    }
    if std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: TRIREME_REAL is not set");
        return ExitCode::SUCCESS;
    }
    a_library_that_is_none_is_named();
    a_run_leaves_its_files_and_goes_on();
    ExitCode::SUCCESS
}

fn a_library_that_is_none_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = dir.path().join("libtext.so");
    fs::write(&text, "not a library").expect("written");
    let entry = format!("mine={}", text.display());
    let out = dir.path().join("out");
    let error =
        run(&arguments(&["--quick", "--systems", &entry, "--out"], &out)).expect_err("it is none");
    assert!(
        error.starts_with("mine: ") && error.contains("--systems") && !error.contains('\n'),
        "{error}"
    );
}

fn a_run_leaves_its_files_and_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let galera = if Path::new(GALERA_PROVIDER).exists() {
        ",galera"
    } else {
        ""
    };
    let systems = format!("trireme,null{galera}");
    let mut small = arguments(
        &[
            "--quick",
            "--clients",
            "4",
            "--conflicts",
            "50",
            "--durability",
            "os,disk",
            "--seconds",
            "1",
            "--warmup-seconds",
            "0",
            "--systems",
            &systems,
            "--out",
        ],
        &out,
    );
    if let Some(library) = std::env::var_os("TRIREME_PROVIDER") {
        small.extend([OsString::from("--provider"), library]);
    }
    run(&small).unwrap_or_else(|error| panic!("{error}"));

    let records = |name: &str| -> Vec<Record> {
        let text = fs::read_to_string(out.join(name)).expect(name);
        serde_json::from_str(&text).expect(name)
    };
    let first = records("results.json");
    assert_eq!(first.len(), if galera.is_empty() { 3 } else { 4 });
    for record in &first {
        let figure = |name: &str| record.measured.figures[name];
        assert!(
            record.complete && figure("write_sets_per_s") > 0.0,
            "{record:?}"
        );
        assert!(figure("cpu_us_per_write_set") > 0.0, "{record:?}");
        // Twelve clients and sixteen rows: whoever certifies finds conflicts.
        let is_null = record.cell.system == "null";
        assert_eq!(figure("conflicts_per_s") > 0.0, !is_null, "{record:?}");
    }
    let report = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(report.contains("<svg") && report.contains("Claims of this project"));
    assert!(!report.contains("Partial"));

    // One cell is lost; only that is measured again.
    let lines = fs::read_to_string(out.join("records.jsonl")).expect("records");
    let kept: Vec<&str> = lines.lines().take(first.len() - 1).collect();
    fs::write(out.join("records.jsonl"), kept.join("\n")).expect("written");
    run(&arguments(&["--resume"], &out)).unwrap_or_else(|error| panic!("{error}"));
    let second = records("results.json");
    assert_eq!(second.len(), first.len());
    assert_eq!(first[..kept.len()], second[..kept.len()]);
}
