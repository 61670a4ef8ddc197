//! The experiment `inserts` with real servers, as small as it can be: it ends, leaves its files, and goes on where it ended.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_inserts` runs it; without the variable it does nothing.

mod common;

use std::ffi::OsString;

use trireme_lab::inserts::{self, Plan};

fn run(words: &[OsString]) {
    inserts::run(&common::choices::<Plan>(words)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_run_leaves_its_files_and_goes_on() {
    if common::is_skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let small =
        "--quick --systems plain,semisync --connections 4 --seconds 1 --warmup-seconds 0 --out";
    run(&common::words(small, &out));

    let first = common::records(&out);
    assert_eq!(first.len(), 6);
    assert!(
        first
            .iter()
            .all(|r| r.complete && r.measured.figures["inserts"] > 0.0)
    );
    let report = common::report(&out);
    assert!(
        report.contains("<svg") && report.contains("not measured") && !report.contains("Partial")
    );

    // One cell is lost; only that is measured again.
    common::lose_all_but(5, &out);
    run(&common::words("--resume", &out));
    let second = common::records(&out);
    assert_eq!(second.len(), 6);
    assert_eq!(first[..5], second[..5]);
}
