//! The experiment `tpcc` with real servers, as small as it can be: it ends and leaves its files; and each consistency
//! condition finds data that violate it.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-lab --test real_tpcc -- --test-threads=1` runs them; without the variable
//! each does nothing. They need the `libtrireme.so` of the same build, or the one that TRIREME_PROVIDER names.

mod common;

use trireme_lab::frame::Record;
use trireme_lab::tpcc::consistency::{CONDITIONS, violations};
use trireme_lab::tpcc::scale::Scale;
use trireme_lab::tpcc::{self, Plan, loader};
use trireme_testbed::{Cluster, Settings};

#[test]
fn a_run_leaves_its_files() {
    if common::is_skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let text = "--quick --systems trireme,pxc --nodes 2 --to all --warehouses 1 \
                --connections 4 --seconds 2 --warmup-seconds 0 --out";
    let words = common::words_with_provider(text, &out);
    tpcc::run(&common::choices::<Plan>(&words)).unwrap_or_else(|error| panic!("{error}"));

    let records = common::records(&out);
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.complete));
    let figure = |record: &Record, name: &str| record.measured.figures.get(name).copied();
    for record in &records {
        match record.cell.level("part") {
            "load" => assert!(figure(record, "load_s") > Some(0.0)),
            _ => {
                assert!(figure(record, "notpm") > Some(0.0));
                assert_eq!(record.measured.per_second.len(), 2);
            }
        }
        // Conditions that were not checked would have no figure.
        for condition in CONDITIONS {
            let name = format!("condition_{}_violations", condition.number);
            assert_eq!(figure(record, &name), Some(0.0), "{name}");
        }
    }
    let report = common::report(&out);
    assert!(report.contains("<svg") && !report.contains("Partial"));
    assert!(report.contains("<td class=\"\">pxc</td>"));
}

/// For each condition a change that violates it, and one that takes that back.
const VIOLATIONS: [(u32, &str, &str); 11] = [
    (
        1,
        "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 2 AND d_id = 3",
        "UPDATE district SET d_ytd = d_ytd - 1 WHERE d_w_id = 2 AND d_id = 3",
    ),
    (
        2,
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 10",
        "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_w_id = 1 AND d_id = 10",
    ),
    (
        3,
        "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 25",
        "INSERT INTO new_order VALUES (25, 1, 1)",
    ),
    (
        4,
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1",
    ),
    (
        5,
        "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 2 AND o_d_id = 1 AND o_id = 1",
        "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 2 AND o_d_id = 1 AND o_id = 1",
    ),
    (
        6,
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + IF(o_id = 1, 1, -1) WHERE o_w_id = 1 AND o_d_id = 1 AND o_id < 3",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - IF(o_id = 1, 1, -1) WHERE o_w_id = 1 AND o_d_id = 1 AND o_id < 3",
    ),
    (
        7,
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1",
        "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1",
    ),
    (
        8,
        "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 1",
        "UPDATE warehouse SET w_ytd = w_ytd - 0.01 WHERE w_id = 1",
    ),
    (
        9,
        "UPDATE history SET h_d_id = 2 WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 1",
        "UPDATE history SET h_d_id = 1 WHERE h_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 1",
    ),
    (
        10,
        "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_id = 1",
        "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 WHERE c_id = 1",
    ),
    (
        12,
        "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_w_id = 2 AND c_id = 1",
        "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_w_id = 2 AND c_id = 1",
    ),
];

#[test]
fn each_condition_finds_what_violates_it() {
    if common::is_skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let settings = Settings::new(dir.path().join("c"), 1, None);
    let mut cluster = Cluster::create(settings, |_| {}).expect("a server");
    cluster.start().expect("it starts");
    loader::load(cluster.node(0), Scale::small(2)).unwrap_or_else(|error| panic!("{error}"));

    let found = || -> Vec<u32> {
        let counts = violations(cluster.node(0)).unwrap_or_else(|error| panic!("{error}"));
        let violated = CONDITIONS.iter().zip(counts).filter(|(_, n)| *n > 0);
        violated.map(|(condition, _)| condition.number).collect()
    };
    let mut sql = cluster.sql(0).expect("a connection");
    sql.exec("USE tpcc").expect("the database");
    assert!(found().is_empty());
    for (number, violate, repair) in VIOLATIONS {
        sql.exec(violate).expect(violate);
        assert!(found().contains(&number), "{violate}: {:?}", found());
        sql.exec(repair).expect(repair);
        assert!(found().is_empty(), "{repair}: {:?}", found());
    }
}
