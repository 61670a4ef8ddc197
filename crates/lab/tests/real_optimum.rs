//! The experiment `optimum` with real servers, as small as it can be: its phases follow from each other, and it goes on where it
//! ended.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_optimum` runs it; without the variable it does nothing.

mod common;

use std::ffi::OsString;
use std::fs;

use trireme_lab::optimum::{self, Plan};

fn run(words: &[OsString]) {
    optimum::run(&common::choices::<Plan>(words)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn phases_follow_and_a_run_goes_on() {
    if common::is_skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let small = "--quick --systems galera --threads 2 --factor=nodes=1..3 --factor=option:gcs.fc_limit=16..256:log \
                 --seconds 1 --warmup-seconds 0 --out";
    run(&common::words(small, &out));

    let first = common::records(&out);
    // 4 corners and 3 centres, 4 stars and a centre, 2 to confirm.
    assert_eq!(first.len(), 7 + 5 + 2);
    assert!(
        first
            .iter()
            .all(|r| r.complete && r.measured.figures["tps"] > 0.0)
    );
    let settings = fs::read_to_string(out.join("settings.json")).expect("settings");
    assert!(settings.contains("gcs.fc_limit="));
    let report = common::report(&out);
    assert!(report.contains("fitted surface along nodes") && !report.contains("Partial"));

    // The last runs of the surface and those that confirm are lost; they are measured again, and no others.
    common::lose_all_but(9, &out);
    run(&common::words("--resume", &out));
    let second = common::records(&out);
    assert_eq!(second.len(), 7 + 5 + 2);
    assert_eq!(first[..9], second[..9]);
}
