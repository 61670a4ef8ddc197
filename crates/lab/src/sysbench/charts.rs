//! The report's charts.

use trireme_testbed::systems::is_single;

use super::figures::{DEADLOCKS_PER_S, TX_PER_S};
use super::plan::PLAIN;
use super::points::{Part, Point, points_of};
use crate::frame::{Axis, Chart, Record, Series, values};

/// All charts.
pub fn charts(records: &[Record], systems: &[String]) -> Vec<Chart> {
    let mut charts = vec![sweep(records)];
    for rows in table_sizes(records, systems) {
        for (figure, y) in [
            (TX_PER_S, "transactions/s"),
            (DEADLOCKS_PER_S, "deadlocks/s"),
        ] {
            charts.push(by_nodes(records, systems, rows, (figure, y)));
        }
        charts.extend(timeline(records, systems, rows));
    }
    charts.push(by_rows(records, systems));
    charts.retain(|chart| chart.series.iter().any(|series| !series.points.is_empty()));
    charts
}

fn sweep(records: &[Record]) -> Chart {
    let points = points_of(records, PLAIN, Part::Sweep).into_iter();
    let points = points.filter_map(|p| place(records, PLAIN, &p, TX_PER_S, p.threads.into()));
    Chart {
        title: "Thread sweep on the plain server".to_string(),
        x: "threads".to_string(),
        y: "transactions/s".to_string(),
        axis: Axis::Linear,
        series: vec![Series {
            name: PLAIN.to_string(),
            points: points.collect(),
        }],
    }
}

/// A figure by the number of nodes. A single server is a horizontal line.
fn by_nodes(records: &[Record], systems: &[String], rows: u32, (figure, y): (&str, &str)) -> Chart {
    let of = |system: &String| -> Vec<Point> {
        let points = points_of(records, system, Part::Run).into_iter();
        points.filter(|p| p.rows == rows).collect()
    };
    let most = systems.iter().flat_map(of).map(|p| p.nodes).max();
    let series = systems.iter().map(|system| {
        let mut points: Vec<_> = of(system)
            .iter()
            .filter_map(|p| place(records, system, p, figure, p.nodes.into()))
            .collect();
        let reference = points.first().filter(|_| is_single(system));
        if let (Some(most), Some(first)) = (most, reference) {
            let end = crate::frame::Point {
                x: most.into(),
                interval: None,
                ..*first
            };
            points.push(end);
        }
        Series {
            name: system.clone(),
            points,
        }
    });
    Chart {
        title: format!("{y}, {rows} rows"),
        x: "nodes".to_string(),
        y: y.to_string(),
        axis: Axis::Linear,
        series: series.collect(),
    }
}

/// Deadlocks by table size, on the most nodes.
fn by_rows(records: &[Record], systems: &[String]) -> Chart {
    let run = |system: &String| points_of(records, system, Part::Run);
    let most = systems.iter().flat_map(run).map(|p| p.nodes).max();
    let series = systems.iter().filter(|s| !is_single(s)).map(|system| {
        let points = run(system).into_iter();
        let points = points.filter(|p| Some(p.nodes) == most).filter_map(|p| {
            place(
                records,
                system,
                &p,
                DEADLOCKS_PER_S,
                f64::from(p.rows) / 1000.0,
            )
        });
        Series {
            name: system.clone(),
            points: points.collect(),
        }
    });
    Chart {
        title: format!("deadlocks/s by table size, {} nodes", most.unwrap_or(0)),
        x: "thousand rows".to_string(),
        y: "deadlocks/s".to_string(),
        axis: Axis::Linear,
        series: series.collect(),
    }
}

/// The seconds in the first repetition on each system's most nodes; None if they are too few for a line.
fn timeline(records: &[Record], systems: &[String], rows: u32) -> Option<Chart> {
    let line = |system: &String| -> Option<Series> {
        let mut points = points_of(records, system, Part::Run).into_iter();
        let point = points.rfind(|p| p.rows == rows)?;
        let mut complete = records.iter().filter(|r| r.complete);
        let record = complete.find(|r| r.cell.system == *system && point.has(&r.cell))?;
        let seconds = record.measured.per_second.iter().enumerate();
        let points: Vec<_> = seconds
            .map(|(second, commits)| crate::frame::Point {
                x: second as f64,
                y: *commits as f64,
                interval: None,
            })
            .collect();
        (points.len() >= 3).then(|| Series {
            name: format!("{system}, {} node{}", point.nodes, plural(point.nodes)),
            points,
        })
    };
    let series: Vec<Series> = systems.iter().filter_map(line).collect();
    (!series.is_empty()).then(|| Chart {
        title: format!("transactions in each second, {rows} rows"),
        x: "second".to_string(),
        y: "transactions".to_string(),
        axis: Axis::Linear,
        series,
    })
}

fn plural(n: u16) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// A point of a chart.
fn place(
    records: &[Record],
    system: &str,
    point: &Point,
    figure: &str,
    x: f64,
) -> Option<crate::frame::Point> {
    let all = values(records, system, figure, |cell| point.has(cell));
    crate::frame::Point::of(x, &all)
}

/// The measured sizes of the table.
fn table_sizes(records: &[Record], systems: &[String]) -> Vec<u32> {
    let run = |system: &String| points_of(records, system, Part::Run);
    let mut sizes: Vec<u32> = systems.iter().flat_map(run).map(|p| p.rows).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
