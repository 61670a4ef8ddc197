//! The experiment `nodes` with real servers, as small as it can be: each client has a schema and a node of its own, and a load
//! above what the servers hold is saturation, not a failure.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_nodes -- --test-threads=1` runs them; without the variable
//! each does nothing. They need the `libtrireme.so` of the same build, or TRIREME_PROVIDER.

mod common;

use trireme_lab::frame::Record;
use trireme_lab::nodes::{self, Plan};

/// The records and the report of a run; `None` without TRIREME_REAL.
fn run(arguments: &str) -> Option<(Vec<Record>, String)> {
    if common::is_skipped() {
        return None;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let words = common::words_with_provider(&format!("{arguments} --out"), &out);
    nodes::run(&common::choices::<Plan>(&words)).unwrap_or_else(|error| panic!("{error}"));
    Some((common::records(&out), common::report(&out)))
}

#[test]
fn each_client_has_a_schema_and_a_node() {
    let arguments = "--quick --systems trireme --nodes 2 --clients 2 --threads 2 --appliers 2 --seconds 3 \
                     --warmup-seconds 0 --rate 0";
    let Some((records, report)) = run(arguments) else {
        return;
    };
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert!(record.complete, "{}", record.note);
    assert_eq!(record.measured.per_second.len(), 3);
    let figure = |name: &str| record.measured.figures[name];
    assert!(figure("tps") > 0.0 && figure("p95_ms") > 0.0);
    // Neither client waits for the other's rows.
    assert!(figure("least_to_most_client") > 0.0);
    assert_eq!(figure("saturated_clients"), 0.0);
    let seconds: u64 = record.measured.per_second.iter().sum();
    assert!((seconds as f64 - figure("transactions")).abs() <= 0.1 * figure("transactions") + 20.0);
    assert!(report.contains("<svg") && !report.contains("Partial"));
    let settings = [
        "wsrep-cluster-name=&quot;Galera Cluster&quot;",
        ",127.0.1.3:1",
    ];
    assert!(settings.iter().all(|line| report.contains(line)));
}

#[test]
fn a_rate_above_what_the_servers_hold_is_saturation() {
    let arguments = "--quick --systems trireme --nodes 1 --clients 1 --threads 1 --appliers 1 --seconds 30 \
                     --warmup-seconds 0 --rate 40000";
    let Some((records, report)) = run(arguments) else {
        return;
    };
    let record = &records[0];
    assert!(record.complete, "{}", record.note);
    let figure = |name: &str| record.measured.figures.get(name).copied();
    assert_eq!(figure("saturated_clients"), Some(1.0));
    assert!(figure("seconds") < Some(30.0) && figure("tps") > Some(0.0));
    assert_eq!(figure("p95_ms"), None);
    assert!(report.contains("1 of 1"));
}
