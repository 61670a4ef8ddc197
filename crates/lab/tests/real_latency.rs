//! The experiment `latency` with real servers, as small as it can be: a node that is killed in a network of its own (needs
//! root), and a rolling restart.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_latency -- --test-threads=1` runs it; without the variable it
//! does nothing. It needs the `libtrireme.so` of the same build, or one that TRIREME_PROVIDER names.

mod common;

use std::path::Path;

use trireme_lab::frame::Record;
use trireme_lab::latency::{self, Plan};

/// Runs it with Trireme alone, unless SYSTEMS is set; returns the records.
fn run(arguments: &str, out: &Path) -> Vec<Record> {
    let systems = std::env::var("SYSTEMS").unwrap_or("trireme".to_string());
    let text = format!("--quick --systems {systems} {arguments} --out");
    let words = common::words_with_provider(&text, out);
    latency::run(&common::choices::<Plan>(&words)).unwrap_or_else(|error| panic!("{error}"));
    common::records(out)
}

fn figure(record: &Record, name: &str) -> f64 {
    *record
        .measured
        .figures
        .get(name)
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_kill_and_a_restart_leave_their_figures() {
    if common::is_skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = std::env::var_os("OUT").map_or(dir.path().join("out"), Into::into);
    let parts = match rustix::process::getuid().is_root() {
        true => "failover,restart",
        false => "restart",
    };
    let records = run(&format!("--part {parts}"), &out);
    for record in &records {
        assert!(record.complete, "{}", record.note);
        assert!(figure(record, "gap_ms") > 0.0);
        let seconds = &record.measured.per_second;
        let fault_at = figure(record, "fault_at_s") as usize;
        assert!(seconds.len() > fault_at && seconds[..fault_at].iter().all(|n| *n > 0));
        if record.cell.level("part") == "restart" {
            assert!(figure(record, "node3_back_s") > 0.0);
            // Each client loses its node at least once.
            assert!(figure(record, "failed") >= 3.0);
        }
    }
    let report = common::report(&out);
    assert!(report.contains("<svg") && report.contains("Claims of this project"));
    assert!(!report.contains("Partial"));
}
