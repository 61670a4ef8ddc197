//! The report of the inserts: its texts, charts, tables and verdicts, from the records.

use trireme_testbed::systems::SEMISYNC_SOURCE_FLUSH;

use super::load::Extent;
use super::{FULL, Plan, RATE, SETTINGS};
use crate::frame::{
    Axis, BRACKETS, Cell, Chart, Claim, Place, Point, Record, Series, State, Table, Verdict,
    beside_galera, faster_everywhere, shown, values,
};

/// The system with which the article compares Galera. In full durability its replica flushes, too.
const RIVAL: &str = "semisync";

pub fn description(plan: &Plan, extent: Extent, nodes: usize) -> Vec<String> {
    let extent = match extent {
        Extent::Time(time) => format!("{} s of inserts", time.as_secs()),
        Extent::Inserts(n) => format!("{n} inserts"),
    };
    let order = match plan.frame.preset() {
        crate::frame::Preset::Quick => {
            "In this quick pass each system runs all of its points before the next one starts."
        }
        _ => {
            "Systems take turns at each point (A B C D, A B C D, ...), each time on fresh servers."
        }
    };
    vec![
        "\"Momentum Galera\" (2011) inserted 100,000 single rows into one simple table at 1 to 256 connections, into Galera \
         0.8 and into MySQL 5.5 with semi-synchronous replication, one source and one replica, without flushing at commit. \
         It found Galera faster at every concurrency."
            .to_string(),
        format!(
            "Here: {extent} per point after a warm-up that is not counted; {nodes} servers of each system that replicates, all \
             on this machine, which also runs the clients; all clients on one node. \"article\" are the article's settings \
             (innodb_flush_log_at_trx_commit=0, no doublewrite); \"origin\" flushes each commit on the client's node before it is acknowledged (innodb_flush_log_at_trx_commit=1, \
             sync_binlog=1); \"full\" does so on every node that acknowledges (semisync: sync_relay_log=1; trireme: \
             repl.durability=disk). Beside them in \"full\" are systems without such a flush, with innodb_flush_log_at_trx_commit=1: \
             galera, and semisync-source-flush, whose replica acknowledges from memory (sync_binlog=1). \
             {order} After every run the rows of all nodes were compared with each other and counted against the inserts \
             acknowledged."
        ),
        BRACKETS.to_string(),
    ]
}

pub fn charts(records: &[Record], systems: &[String]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (settings, _) in SETTINGS {
        for (figure, y) in [(RATE, "inserts/s"), ("p95_ms", "95th percentile, ms")] {
            charts.push(Chart {
                title: format!("{y}, settings \"{settings}\""),
                x: "connections".to_string(),
                y: y.to_string(),
                axis: Axis::Doubling,
                series: systems
                    .iter()
                    .map(|system| line(records, system, settings, figure))
                    .collect(),
            });
        }
        charts.extend(timeline(records, systems, settings));
    }
    charts
}

fn line(records: &[Record], system: &str, settings: &str, figure: &str) -> Series {
    let points = levels(records).into_iter().filter_map(|level| {
        let all = values(records, system, figure, at(settings, level));
        Point::of(level as f64, &all)
    });
    Series {
        name: system.to_string(),
        points: points.collect(),
    }
}

/// The chart of the seconds in the first repetition with the most connections; None if the seconds are too few for a
/// line.
fn timeline(records: &[Record], systems: &[String], settings: &str) -> Option<Chart> {
    let level = *levels(records).last()?;
    let series: Vec<Series> = systems
        .iter()
        .filter_map(|system| {
            let record = records
                .iter()
                .find(|r| r.complete && r.cell.system == *system && at(settings, level)(&r.cell))?;
            let seconds = record.measured.per_second.iter().enumerate();
            let points = seconds.map(|(second, commits)| Point {
                x: second as f64,
                y: *commits as f64,
                interval: None,
            });
            Some(Series {
                name: system.clone(),
                points: points.collect(),
            })
        })
        .filter(|series: &Series| series.points.len() >= 3)
        .collect();
    (!series.is_empty()).then(|| Chart {
        title: format!("inserts in each second, {level} connections, settings \"{settings}\""),
        x: "second".to_string(),
        y: "inserts".to_string(),
        axis: Axis::Linear,
        series,
    })
}

pub fn tables(records: &[Record], systems: &[String]) -> Vec<Table> {
    let mut tables = Vec::new();
    for (settings, _) in SETTINGS {
        for (figure, what, digits) in [
            (RATE, "inserts/s", 0),
            ("p95_ms", "95th percentile, ms", 2),
            (
                "server_cpu_ms_per_insert",
                "processor time of all servers per insert, ms",
                3,
            ),
            (
                "client_cpu_ms_per_insert",
                "processor time of the clients per insert, ms",
                3,
            ),
        ] {
            tables.push(Table {
                title: format!("{what}, settings \"{settings}\""),
                header: std::iter::once("connections".to_string())
                    .chain(systems.iter().cloned())
                    .collect(),
                rows: levels(records)
                    .into_iter()
                    .map(|level| {
                        let cells = systems.iter().map(|system| {
                            shown(
                                &values(records, system, figure, at(settings, level)),
                                digits,
                            )
                        });
                        std::iter::once(level.to_string()).chain(cells).collect()
                    })
                    .collect(),
            });
        }
    }
    tables.push(against_galera(records));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn against_galera(records: &[Record]) -> Table {
    let levels = levels(records);
    let place = |settings: &'static str, level: u64| Place {
        levels: vec![settings.to_string(), level.to_string()],
        has: Box::new(at(settings, level)),
    };
    let all = |(settings, _): &(&'static str, _)| {
        let settings = *settings;
        levels.iter().map(move |level| place(settings, *level))
    };
    let places: Vec<Place> = SETTINGS.iter().flat_map(all).collect();
    let figures = [
        (RATE, "inserts/s"),
        ("p95_ms", "95th percentile"),
        ("server_cpu_ms_per_insert", "servers, CPU per insert"),
    ];
    beside_galera(records, &["settings", "connections"], &places, &figures)
}

pub fn claims(records: &[Record]) -> Vec<Claim> {
    let is_faster = |settings: &str, system: &str, rival: &str| {
        faster_everywhere(records, (system, rival), RATE, "connections", |cell| {
            cell.level("settings") == settings
        })
    };
    let against = |settings: &str, rival: &str, text: &str| {
        Claim::of(text, |system| is_faster(settings, system, rival))
    };
    vec![
        against(
            "article",
            RIVAL,
            "Synchronous replication by certification is faster than semi-synchronous replication at every concurrency (the \
             article's settings).",
        ),
        against(
            "origin",
            RIVAL,
            "Beyond the article: the same with a flush on the client's node (\"origin\").",
        ),
        Claim {
            text: "Beyond the article: the same with a flush on every node that acknowledges (\"full\")."
                .to_string(),
            galera: Verdict {
                state: State::NotMeasured,
                evidence: "Galera has no setting by which other nodes flush before it answers"
                    .to_string(),
            },
            trireme: is_faster(FULL, "trireme", RIVAL),
        },
        against(
            FULL,
            SEMISYNC_SOURCE_FLUSH,
            "Beyond the article: the same against a replica that acknowledges from memory (\"full\", \
             semisync-source-flush; Galera, too, flushes only on the client's node).",
        ),
    ]
}

fn at(settings: &str, connections: u64) -> impl Fn(&Cell) -> bool + '_ {
    move |cell| cell.level("settings") == settings && cell.number("connections") == connections
}

fn levels(records: &[Record]) -> Vec<u64> {
    let mut all: Vec<u64> = records
        .iter()
        .map(|record| record.cell.number("connections"))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}
