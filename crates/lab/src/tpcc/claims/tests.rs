//! Tests of the predicates on the claims.

use super::*;
use crate::frame::{State, fixtures};

fn record(
    system: &str,
    factors: [(&'static str, u64); 3],
    part: &str,
    figures: &[(&str, f64)],
) -> Record {
    let to = if factors[0].1 == 1 { "one" } else { "all" };
    let levels = factors.map(|(name, level)| (name, level.to_string()));
    let further = [("part", part), ("to", to)].map(|(name, level)| (name, level.to_string()));
    let cell = fixtures::cell(system, levels.into_iter().chain(further), 1);
    fixtures::record(cell, figures.iter().copied())
}

fn factors(nodes: u64, connections: u64) -> [(&'static str, u64); 3] {
    [
        ("nodes", nodes),
        ("connections", connections),
        ("warehouses", 15),
    ]
}

/// The figures of the first article, with load to all nodes.
fn article() -> Vec<Record> {
    let mut records = vec![
        record("plain", factors(1, 4), "run", &[(NOTPM, 3590.0)]),
        // This is not its best number of connections.
        record("plain", factors(1, 8), "run", &[(NOTPM, 2000.0)]),
    ];
    for (nodes, notpm, conflicts, mean_ms, load_min) in [
        (1, 2900.0, 0.0, 1400.0, 14.8),
        (2, 4330.0, 5.0, 900.0, 15.2),
        (3, 5050.0, 8.0, 750.0, 15.6),
        (4, 5450.0, 10.0, 670.0, 16.3),
    ] {
        let figures = [
            (NOTPM, notpm),
            (TX_PER_S, notpm / 27.0),
            ("new_order_conflict_percent", conflicts),
            ("delivery_conflict_percent", 2.0 * conflicts),
            ("new_order_mean_ms", mean_ms),
        ];
        records.push(record("galera", factors(nodes, 8), "run", &figures));
        let load = [(LOAD_S, 60.0 * load_min)];
        records.push(record("galera", factors(nodes, 4), "load", &load));
    }
    records
}

fn states(records: &[Record]) -> Vec<State> {
    let all = claims(records, None);
    all.iter().map(|c| c.galera.state).collect()
}

#[test]
fn the_articles_own_figures_confirm_its_claims() {
    let records = article();
    assert_eq!(states(&records)[..7], [State::Holds; 7]);
    // One size of database, one number of connections, no five nodes, no Group Replication.
    assert_eq!(states(&records)[7..], [State::NotMeasured; 5]);
    let trireme = |c: &Claim| c.trireme.state == State::NotMeasured;
    assert!(claims(&records, None).iter().all(trireme));
}

#[test]
fn group_replication_is_compared_point_by_point() {
    let run = |system, tx_per_s, sd_percent| {
        let figures = [(TX_PER_S, tx_per_s), (TX_SD_PERCENT, sd_percent)];
        record(system, factors(3, 8), "run", &figures)
    };
    let mut records = vec![
        run("galera", 100.0, 5.0),
        run(GROUP_REPLICATION, 80.0, 11.0),
    ];
    assert_eq!(states(&records)[10..], [State::Holds; 2]);
    records[0] = run("galera", 70.0, 6.0);
    assert_eq!(states(&records)[10..], [State::Fails; 2]);
    // Another point says nothing.
    records[1].cell.factors = run("x", 0.0, 0.0).cell.factors;
    records[1]
        .cell
        .factors
        .insert("connections".to_string(), "4".to_string());
    assert_eq!(states(&records)[10..], [State::NotMeasured; 2]);
}

#[test]
fn a_node_that_adds_nothing_refutes_the_scaling() {
    let mut records = article();
    let last = records.iter_mut().rfind(|r| r.cell.level("part") == "run");
    last.unwrap()
        .measured
        .figures
        .insert(NOTPM.to_string(), 5000.0);
    let found = states(&records);
    assert_eq!(found[1], State::Holds);
    assert_eq!(found[2], State::Fails);
}

/// The best number of connections is not known while one is missing.
#[test]
fn what_is_planned_and_not_measured_settles_nothing() {
    let mut records = article();
    let wide = record("galera", factors(3, 64), "run", &[]);
    records.push(Record::not_measured(wide.cell));
    let found = states(&records);
    assert_eq!(found[0], State::Holds);
    assert_eq!(found[1..4], [State::Open; 3]);
}

/// Records of earlier versions do not have this figure: those of [`article`].
#[test]
fn a_run_that_starved_a_client_settles_nothing() {
    let mut records = article();
    let three_nodes =
        |r: &&mut Record| r.cell.level("part") == "run" && r.cell.number("nodes") == 3;
    for (clients, state) in [(0.0, State::Holds), (2.0, State::Open)] {
        let run = records.iter_mut().find(three_nodes).unwrap();
        let figures = &mut run.measured.figures;
        figures.insert(CLIENTS_WITHOUT_COMMIT.to_string(), clients);
        assert_eq!(states(&records)[1..4], [state; 3]);
    }
}

#[test]
fn connections_are_judged_in_clusters() {
    let run = |nodes, connections, tx_per_s| {
        let figures = [(TX_PER_S, tx_per_s)];
        record("galera", factors(nodes, connections), "run", &figures)
    };
    // One node reaches its maximum with few connections.
    let mut records = vec![run(1, 8, 100.0), run(1, 64, 90.0)];
    assert_eq!(states(&records)[8], State::NotMeasured);
    records.extend([run(3, 8, 100.0), run(3, 64, 150.0)]);
    assert_eq!(states(&records)[8], State::Holds);
    records[3] = run(3, 64, 80.0);
    assert_eq!(states(&records)[8], State::Fails);
}

#[test]
fn shared_processors_are_told_beside_what_more_nodes_gave() {
    let evidence = |processors| -> Vec<String> {
        let all = claims(&article(), processors).into_iter();
        all.map(|claim| claim.galera.evidence).collect()
    };
    let shared = evidence(Some(2));
    for (claim, text) in [
        (
            1,
            "nodes 4 / plain, 15 warehouses (4 nodes share 2 processors): ",
        ),
        (
            2,
            "3 / 2 nodes, 15 warehouses (3 nodes share 2 processors): ",
        ),
        (
            3,
            "2 / 1 nodes, 15 warehouses (2 nodes share 2 processors): ",
        ),
        (
            4,
            "4 / 1 nodes, 15 warehouses (4 nodes share 2 processors): ",
        ),
    ] {
        assert!(shared[claim].contains(text), "{}", shared[claim]);
    }
    // One node has the whole machine, as the plain server.
    assert!(!shared[0].contains("share"));
    assert!(evidence(None).iter().all(|text| !text.contains("share")));
}
