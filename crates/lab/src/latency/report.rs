//! The report of the trials: the introduction, and a table per part.

use super::case::{CASE, PART, VICTIM};
use super::distance::ROUND_TRIP;
use super::failover::FAULT_AT;
use super::plan::{Part, Plan};
use super::{away, distance, failover, large, restart, slow, trace, windows};
use crate::frame::{Cell, Record, Table, number, values};
use crate::stats::median;
use clap::ValueEnum;

/// The report's introduction.
pub fn description(plan: &Plan) -> Vec<String> {
    let parts: Vec<String> = plan.parts().into_iter().map(Part::name).collect();
    vec![
        format!(
            "How long commits take, and for how long none come, when a member of three is lost, far, slow, away or restarted. \
             Parts measured: {}. docs/bench-latency.md says how each is done and what the figures mean.",
            parts.join(", ")
        ),
        "Every trial has a fresh cluster of its own, and the systems take turns. Members that are far or cut off live in \
         network namespaces; this program carries their packets, late or not at all. A gap is the longest time between two \
         commits of one client, the worst of the clients; a gap that began before the fault counts whole, and one that does not end up to the end of the trial."
            .to_string(),
        "Tables show the median of the trials, and in parentheses the least and the greatest, which are also the bars of the \
         charts; verdicts on ratios show their geometric mean with its 95 % interval in brackets. A trial that failed is kept, \
         marked, and counted nowhere. Claims for which this run has no data are left out."
            .to_string(),
    ]
}

/// The figure that progress shows for a part.
pub fn headline(part: &str) -> &'static str {
    match part {
        "failover" => failover::GAP,
        "restart" => restart::GAP,
        "far" => "pair_p50_ms",
        "regions" => "node1_p50_ms",
        "slow" => slow::P99_RATIO,
        "large" => large::UNTIL_P99,
        "away" => away::SPEED_RATIO,
        "durability" => "update_non_index_18_commits_per_s",
        "trace" => trace::MAJORITY,
        _ => windows::CONFLICTS,
    }
}

/// The figures in the first columns of a part's table, in this order.
fn first_columns(part: Part) -> Vec<String> {
    let names: &[&str] = match part {
        Part::Failover => &[
            failover::GAP,
            failover::QUIET_GAP,
            "gap_begins_at_s",
            "all_silent_ms",
        ],
        Part::Far => return percentiles(&["pair", "third"]),
        Part::Regions => return percentiles(&["node1", "node2", "node3"]),
        Part::Restart => &[restart::GAP, "all_silent_ms", restart::BACK, "failed"],
        Part::Slow => &["rate_per_s", slow::P99_RATIO, slow::COMMITS_RATIO],
        Part::Large => &[
            "usual_p99_ms",
            large::UNTIL_P99,
            slow::P99_RATIO,
            "ordered_after_s",
            "applied_after_s",
        ],
        Part::Away => &[
            away::SNAPSHOTS,
            "start_s",
            "catch_up_s",
            away::SPEED_RATIO,
            slow::P99_RATIO,
        ],
        Part::Trace => &["commits", trace::MAJORITY],
        Part::Durability | Part::Windows => &[],
    };
    names.iter().map(|name| name.to_string()).collect()
}

fn percentiles(nodes: &[&str]) -> Vec<String> {
    let nodes = nodes.iter();
    let of = |node: &&str| distance::PERCENTILES.map(|percent| distance::figure(node, percent));
    nodes.flat_map(of).collect()
}

/// A table per part, with a row per case and system; and a table of the restarted nodes.
pub fn tables(records: &[Record]) -> Vec<Table> {
    let parts = Part::value_variants().iter();
    let mut tables: Vec<Table> = parts.filter_map(|part| table(records, *part)).collect();
    tables.extend(restarted_nodes(records));
    tables
}

/// The table of the restart times of each node.
fn restarted_nodes(records: &[Record]) -> Option<Table> {
    let restarts = |cell: &Cell| cell.level(PART) == Part::Restart.name();
    let systems = records.iter().filter(|r| r.complete && restarts(&r.cell));
    let systems = distinct(systems.map(|r| r.cell.system.as_str()));
    let names = restart::OF_NODE;
    let rows = systems.iter().flat_map(|system| {
        (1..=restart::NODES).map(move |node| {
            let mut cells = vec![format!("node{node}"), system.to_string()];
            cells.extend(names.iter().map(|name| {
                let figure = restart::figure_of_node(node, name);
                spread(&values(records, system, &figure, restarts))
            }));
            cells
        })
    });
    let header = ["node", "system"].into_iter().chain(names);
    (!systems.is_empty()).then(|| Table {
        title: "restart, each node".to_string(),
        header: header.map(|name| name.replace('_', " ")).collect(),
        rows: rows.collect(),
    })
}

fn table(records: &[Record], part: Part) -> Option<Table> {
    let of_part: Vec<&Record> = records
        .iter()
        .filter(|r| r.complete && r.cell.level(PART) == part.name())
        .collect();
    let mut names = first_columns(part);
    let mut others: Vec<String> = of_part
        .iter()
        .flat_map(|r| r.measured.figures.keys().cloned())
        .filter(|name| !names.contains(name) && name != FAULT_AT)
        // These figures have a table of their own.
        .filter(|name| part != Part::Restart || !name.starts_with("node"))
        .collect();
    others.sort_unstable();
    others.dedup();
    names.extend(others);
    let rows = distinct(
        of_part
            .iter()
            .map(|r| (row_name(r), r.cell.system.as_str())),
    );
    let rows = rows.into_iter().map(|(case, system)| {
        let own = of_part
            .iter()
            .filter(|r| row_name(r) == case && r.cell.system == system);
        let own: Vec<&&Record> = own.collect();
        let mut cells = vec![case, system.to_string(), own.len().to_string()];
        cells.extend(names.iter().map(|name| {
            let values = own.iter().filter_map(|r| r.measured.figures.get(name));
            spread(&values.copied().collect::<Vec<f64>>())
        }));
        cells
    });
    let header = ["case", "system", "trials"].map(String::from).into_iter();
    let titles = names.iter().map(|name| name.replace('_', " "));
    (!of_part.is_empty()).then(|| Table {
        title: part.name(),
        header: header.chain(titles).collect(),
        rows: rows.collect(),
    })
}

/// The name of a row: case, distance and victim.
pub fn row_name(record: &Record) -> String {
    let cell = &record.cell;
    let mut name = cell.level(CASE).to_string();
    match (cell.level(ROUND_TRIP), cell.level(VICTIM)) {
        ("", "") => {}
        ("", victim) => name += &format!(", {victim}"),
        (trip, _) => name += &format!(", {trip} ms"),
    }
    name
}

/// The median, the minimum and the maximum, as text.
fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().reduce(f64::min);
    let greatest = values.iter().copied().reduce(f64::max);
    match (median(values), least, greatest) {
        (Some(middle), Some(least), Some(greatest)) if least < greatest => {
            let [middle, least, greatest] = [middle, least, greatest].map(short);
            format!("{middle} ({least} to {greatest})")
        }
        (Some(middle), ..) => short(middle),
        _ => "-".to_string(),
    }
}

/// A whole number without decimals, any other number with as few digits as its size allows.
pub fn short(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => number(value),
    }
}

/// The values in order of their first appearance.
pub fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn record(system: &str, repetition: u32, gap: f64, complete: bool) -> Record {
        let factors = [(PART, "failover"), (CASE, "kill -9"), (VICTIM, "other")];
        let cell = fixtures::cell(system, factors, repetition);
        let figures = [(failover::GAP, gap), (FAULT_AT, 12.0), ("x_ms", 1.0)];
        Record {
            complete,
            ..fixtures::record(cell, figures)
        }
    }

    #[test]
    fn trials_are_summed_up_by_case_and_system() {
        let records = [
            record("trireme", 1, 10.0, true),
            record("galera", 1, 5000.0, true),
            record("trireme", 2, 30.0, true),
            record("galera", 2, 9.0, false),
        ];
        let all = tables(&records);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].header[3], "gap ms");
        assert_eq!(all[0].header.last().unwrap(), "x ms");
        assert_eq!(all[0].title, "failover");
        let row = &all[0].rows[0];
        assert_eq!(
            row[..4],
            ["kill -9, other", "trireme", "2", "20 (10 to 30)"]
        );
        assert_eq!(all[0].rows[1][2..4], ["1", "5000"]);
        assert!(tables(&[]).is_empty());
    }

    #[test]
    fn restarted_nodes_have_rows_of_their_own() {
        let mut restarted = record("trireme", 1, 76.0, true);
        let part = Part::Restart.name();
        restarted.cell.factors.insert(PART.to_string(), part);
        for (node, seconds) in [(1, 0.5), (3, 0.75)] {
            let name = restart::figure_of_node(node, "back_s");
            restarted.measured.figures.insert(name, seconds);
        }
        let all = tables(&[restarted]);
        assert!(!all[0].header.iter().any(|name| name.starts_with("node")));
        let back = all[1]
            .header
            .iter()
            .position(|name| name == "back s")
            .unwrap();
        let shown: Vec<&str> = all[1].rows.iter().map(|row| row[back].as_str()).collect();
        assert_eq!(shown, ["0.50", "-", "0.75"]);
    }
}
