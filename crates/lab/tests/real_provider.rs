//! The experiment `provider` with real libraries, as small as it can be: it ends, leaves its files, and goes on where it ended.
//!
//! `TRIREME_REAL=1 TRIREME_PROVIDER=target/release/libtrireme.so cargo test --release -p trireme-lab --test real_provider` runs
//! it; without TRIREME_REAL it does nothing. The hosts are processes of this test, hence no harness.

mod common;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use trireme_lab::provider::{self, Plan};
use trireme_testbed::packages::GALERA_PROVIDER;

fn run(words: &[OsString]) -> Result<(), String> {
    provider::run(&common::choices::<Plan>(words)).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    if provider::is_host() {
        return provider::host();
    }
    if common::is_skipped() {
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
    let out = dir.path().join("out");
    let words = format!("--quick --systems mine={} --out", text.display());
    let error = run(&common::words(&words, &out)).expect_err("it is none");
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
    let small = format!(
        "--quick --clients 4 --conflicts 50 --durability os,disk --seconds 1 --warmup-seconds 0 \
         --systems trireme,null{galera} --out"
    );
    run(&common::words_with_provider(&small, &out)).unwrap_or_else(|error| panic!("{error}"));

    let first = common::records(&out);
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
    let report = common::report(&out);
    assert!(report.contains("<svg") && report.contains("Claims of this project"));
    assert!(!report.contains("Partial"));

    // One cell is lost; only that is measured again.
    let kept = first.len() - 1;
    common::lose_all_but(kept, &out);
    run(&common::words("--resume", &out)).unwrap_or_else(|error| panic!("{error}"));
    let second = common::records(&out);
    assert_eq!(second.len(), first.len());
    assert_eq!(first[..kept], second[..kept]);
}
