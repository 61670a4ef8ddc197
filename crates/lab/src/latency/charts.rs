//! The report's charts: gaps by trial, latency by distance, restarted nodes, and commits around each fault.

use super::case::{CASE, PART};
use super::distance::{PERCENTILES, Place, ROUND_TRIP, figure};
use super::failover::{FAULT_AT, GAP};
use super::report::{distinct, row_name};
use super::restart;
use crate::frame::{Axis, Cell, Chart, Point, Record, Series, values};

/// All charts that have data.
pub fn charts(records: &[Record], systems: &[String]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = systems.iter().map(|s| gaps(records, s)).collect();
    charts.push(distance(
        records,
        systems,
        "pair",
        "a node of the near pair",
    ));
    charts.push(distance(records, systems, "third", "the third node"));
    charts.push(restarts(records, systems, "gap_ms", "longest gap, ms"));
    charts.push(restarts(records, systems, "back_s", "synced again after s"));
    charts.extend(around_faults(records, systems));
    charts.retain(|chart| !chart.series.is_empty());
    charts
}

/// The gap of each trial, with a line per fault.
fn gaps(records: &[Record], system: &str) -> Chart {
    let of_system: Vec<&Record> = records
        .iter()
        .filter(|r| r.complete && r.cell.system == system && r.cell.level(PART) == "failover")
        .collect();
    let faults = distinct(of_system.iter().map(|r| row_name(r))).into_iter();
    let series = faults.map(|fault| {
        let own = of_system.iter().filter(|r| row_name(r) == fault);
        let mut points: Vec<Point> = own
            .filter_map(|r| {
                let gap_ms = *r.measured.figures.get(GAP)?;
                Some(point(f64::from(r.cell.repetition), gap_ms))
            })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series {
            name: fault,
            points,
        }
    });
    Chart {
        title: format!("longest gap in the others' commits, {system}"),
        x: "trial".to_string(),
        y: "ms".to_string(),
        axis: Axis::Linear,
        series: series.collect(),
    }
}

/// Percentiles of the commits at `node` by the distance of the third node, in the cases in which that node joined last.
fn distance(records: &[Record], systems: &[String], node: &str, title: &str) -> Chart {
    let is_last = |case: &str| {
        let of = |round_trip_ms| Place {
            round_trip_ms,
            is_first: false,
        };
        case == Place::NEAR.name() || case == of(2).name()
    };
    let mut trips: Vec<u64> = records
        .iter()
        .map(|r| r.cell.number(ROUND_TRIP))
        .filter(|trip| *trip > 0)
        .collect();
    trips.sort_unstable();
    trips.dedup();
    let line = |system: &String, percent: u32| Series {
        name: format!("{system}, {percent} %"),
        points: summed_up(trips.iter().map(|trip| {
            let all = values(records, system, &figure(node, percent), |cell| {
                cell.number(ROUND_TRIP) == *trip && is_last(cell.level(CASE))
            });
            (*trip as f64, all)
        })),
    };
    let lines = systems
        .iter()
        .flat_map(|system| PERCENTILES.map(|percent| line(system, percent)));
    Chart {
        title: format!("commits at {title}, by the third node's distance"),
        x: "round trip to the third node, ms".to_string(),
        y: "ms (percentiles)".to_string(),
        axis: Axis::Doubling,
        series: lines.filter(|line| !line.points.is_empty()).collect(),
    }
}

/// A figure of each restarted node.
fn restarts(records: &[Record], systems: &[String], name: &str, title: &str) -> Chart {
    let line = |system: &String| Series {
        name: system.clone(),
        points: summed_up((1..=restart::NODES).map(|node| {
            let figure = restart::figure_of_node(node, name);
            let restarts = |cell: &Cell| cell.level(PART) == "restart";
            (node as f64, values(records, system, &figure, restarts))
        })),
    };
    Chart {
        title: format!("rolling restart: {title}"),
        x: "node that is restarted".to_string(),
        y: title.to_string(),
        axis: Axis::Linear,
        series: systems
            .iter()
            .map(line)
            .filter(|line| !line.points.is_empty())
            .collect(),
    }
}

/// The seconds of the first trial of each case with an event at a known second.
fn around_faults(records: &[Record], systems: &[String]) -> Vec<Chart> {
    let timed: Vec<&Record> = records
        .iter()
        .filter(|r| r.complete && r.measured.figures.contains_key(FAULT_AT))
        .collect();
    let name = |r: &Record| (r.cell.level(PART).to_string(), row_name(r));
    let cases = distinct(timed.iter().map(|r| name(r))).into_iter();
    let chart = |(part, case): (String, String)| {
        let series = systems.iter().filter_map(|system| {
            let own =
                |r: &&&Record| r.cell.system == *system && name(r) == (part.clone(), case.clone());
            let first = timed.iter().filter(own).min_by_key(|r| r.cell.repetition)?;
            let fault_at = first.measured.figures.get(FAULT_AT)?;
            let seconds = first.measured.per_second.iter().enumerate();
            Some(Series {
                name: system.clone(),
                points: seconds
                    .map(|(second, commits)| point(second as f64 - fault_at, *commits as f64))
                    .collect(),
            })
        });
        Chart {
            title: format!("commits in each second: {part}, {case}"),
            x: "seconds from the event on".to_string(),
            y: "commits".to_string(),
            axis: Axis::Linear,
            series: series.collect(),
        }
    };
    cases.map(chart).collect()
}

/// Medians with the least and the greatest, as in tables.
fn summed_up(levels: impl Iterator<Item = (f64, Vec<f64>)>) -> Vec<Point> {
    let points = levels.filter_map(|(x, all)| Point::of(x, &all));
    points.collect()
}

fn point(x: f64, y: f64) -> Point {
    Point {
        x,
        y,
        interval: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn record(system: &str, factors: &[(&'static str, &str)], figures: &[(&str, f64)]) -> Record {
        let cell = fixtures::cell(system, factors.iter().copied(), 1);
        let mut record = fixtures::record(cell, figures.iter().copied());
        record.measured.per_second = vec![7, 8, 0, 9];
        record
    }

    #[test]
    fn a_fault_is_at_zero_of_its_time_series() {
        let factors = [(PART, "failover"), (CASE, "kill -9")];
        let killed = record("trireme", &factors, &[(GAP, 20.0), (FAULT_AT, 2.0)]);
        let charts = charts(&[killed], &["galera".to_string(), "trireme".to_string()]);
        let titles: Vec<&str> = charts.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "longest gap in the others' commits, trireme",
                "commits in each second: failover, kill -9"
            ]
        );
        let line = &charts[1].series[0];
        assert_eq!(line.name, "trireme");
        assert_eq!(
            (line.points[0].x, line.points[2].x, line.points[2].y),
            (-2.0, 0.0, 0.0)
        );
    }

    #[test]
    fn percentiles_are_drawn_by_distance() {
        let at = |trip: &str, case: &str, median| {
            let factors = [(PART, "far"), (CASE, case), (ROUND_TRIP, trip)];
            record("trireme", &factors, &[("pair_p50_ms", median)])
        };
        let records = [
            at("1", "third near", 1.0),
            at("100", "third far, joined last", 1.5),
            at("100", "third far, first started", 9.0),
        ];
        let chart = distance(&records, &["trireme".to_string()], "pair", "x");
        assert_eq!(chart.series.len(), 1);
        let points: Vec<(f64, f64)> = chart.series[0].points.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(points, [(1.0, 1.0), (100.0, 1.5)]);
    }
}
