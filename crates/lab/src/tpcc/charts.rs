//! The report's charts.

use std::collections::BTreeSet;

use trireme_testbed::systems::is_single;

use super::figures::{LOAD_S, NOTPM, of_kind};
use super::input::Kind;
use super::points::{RunPoint, is_load, levels, loaded_nodes, warehouses};
use crate::frame::{Axis, Cell, Chart, Point, Record, Series, values};
use crate::stats::standard_deviation;

/// The nodes and connections of the second article's timeline; its densities have as many nodes.
const TIMELINE: (u64, u64) = (3, 64);

/// The number of points of a density curve.
const CURVE: usize = 60;

/// All charts.
pub fn charts(records: &[Record], systems: &[String]) -> Vec<Chart> {
    let drawing = Drawing { records, systems };
    let mut all = Vec::new();
    for w in warehouses(records) {
        all.extend(drawing.by_nodes(w));
        all.extend(drawing.by_connections(w));
        all.extend(drawing.seconds(w));
        all.extend(drawing.load(w));
    }
    all
}

struct Drawing<'a> {
    records: &'a [Record],
    systems: &'a [String],
}

impl Drawing<'_> {
    /// With load to all nodes: the effect of more nodes, at each number of connections.
    fn by_nodes(&self, w: u64) -> Vec<Chart> {
        let points = self.points(|p| p.warehouses == w && p.is_to_all());
        let nodes: BTreeSet<u64> = points.iter().map(|p| p.nodes).collect();
        let connections: BTreeSet<u64> = points.iter().map(|p| p.connections).collect();
        let figures = [
            (NOTPM.to_string(), "New-Orders per minute"),
            (
                of_kind(Kind::NewOrder, "conflict_percent"),
                "conflicts, % of New-Order attempts",
            ),
            (
                of_kind(Kind::NewOrder, "p95_ms"),
                "New-Order, 95th percentile, ms",
            ),
        ];
        let mut charts = Vec::new();
        for c in connections {
            for (figure, y) in &figures {
                let chosen = |n: u64| {
                    move |cell: &Cell| {
                        RunPoint::of(cell).is_some_and(|p| {
                            p.warehouses == w && p.is_to_all() && p.connections == c && p.nodes == n
                        })
                    }
                };
                charts.extend(self.chart(
                    format!("{y}: {c} connections to all nodes, {w} warehouses"),
                    ("nodes", y),
                    Axis::Linear,
                    |system| self.line(system, figure, &nodes, chosen),
                ));
            }
        }
        charts
    }

    /// The effect of more connections, for each size of cluster and target, each with the single servers.
    fn by_connections(&self, w: u64) -> Vec<Chart> {
        let points = self.points(|p| p.warehouses == w);
        let connections: BTreeSet<u64> = points.iter().map(|p| p.connections).collect();
        let targets: BTreeSet<(u64, String)> =
            points.into_iter().map(|p| (p.nodes, p.to)).collect();
        let figures = [
            (NOTPM.to_string(), "New-Orders per minute"),
            (
                of_kind(Kind::NewOrder, "p95_ms"),
                "New-Order, 95th percentile, ms",
            ),
        ];
        let mut charts = Vec::new();
        for (nodes, to) in &targets {
            for (figure, y) in &figures {
                charts.extend(self.chart(
                    format!("{y}: {nodes} nodes, load to {to}, {w} warehouses"),
                    ("connections", y),
                    Axis::Doubling,
                    |system| {
                        self.line(system, figure, &connections, |connections| {
                            let point = RunPoint {
                                warehouses: w,
                                nodes: *nodes,
                                to: to.clone(),
                                connections,
                            };
                            let point = beside(system, &point);
                            move |cell: &Cell| point.has(cell)
                        })
                    },
                ));
            }
        }
        charts
    }

    /// The second article's charts of the seconds: their distribution at each number of connections, each on a scale of
    /// its own, and the timeline at 64 connections. Without its 3 nodes or 64 connections: those of the most.
    fn seconds(&self, w: u64) -> Vec<Chart> {
        let points = self.points(|p| p.warehouses == w);
        let Some(nodes) = wanted_or_most(points.iter().map(|p| p.nodes), TIMELINE.0) else {
            return Vec::new();
        };
        let points: Vec<RunPoint> = points.into_iter().filter(|p| p.nodes == nodes).collect();
        let connections = wanted_or_most(points.iter().map(|p| p.connections), TIMELINE.1);
        let mut charts = Vec::new();
        for point in &points {
            if Some(point.connections) == connections {
                charts.extend(self.timeline(point));
            }
            charts.extend(self.distribution(point));
        }
        charts
    }

    /// The commits of each second in the first repetition.
    fn timeline(&self, point: &RunPoint) -> Option<Chart> {
        self.chart(
            format!("commits in each second: {}", title(point)),
            ("second", "transactions"),
            Axis::Linear,
            |system| {
                let first = self.samples(system, point).into_iter().next();
                let seconds = first.map(|r| r.measured.per_second.as_slice());
                (0..)
                    .zip(seconds.unwrap_or_default())
                    .map(at_second)
                    .collect()
            },
        )
    }

    /// The distribution of the commits of a second, over all repetitions.
    fn distribution(&self, point: &RunPoint) -> Option<Chart> {
        self.chart(
            format!("how the seconds are distributed: {}", title(point)),
            ("transactions in a second", "density"),
            Axis::Linear,
            |system| {
                let records = self.samples(system, point).into_iter();
                let seconds = records.flat_map(|r| &r.measured.per_second);
                density(&seconds.map(|n| *n as f64).collect::<Vec<_>>())
            },
        )
    }

    /// The complete records of a system at a point.
    fn samples(&self, system: &str, point: &RunPoint) -> Vec<&Record> {
        let point = beside(system, point);
        let of_system = |r: &&Record| r.complete && r.cell.system == system;
        let records = self.records.iter().filter(of_system);
        records.filter(|r| point.has(&r.cell)).collect()
    }

    /// The time for loading the tables, by the size of the cluster.
    fn load(&self, w: u64) -> Option<Chart> {
        let nodes: BTreeSet<u64> = loaded_nodes(self.records, w).into_iter().collect();
        self.chart(
            format!("load of {w} warehouses"),
            ("nodes", "seconds"),
            Axis::Linear,
            |system| {
                self.line(system, LOAD_S, &nodes, |n| {
                    move |cell: &Cell| is_load(cell, w, n)
                })
            },
        )
    }

    fn points(&self, chosen: impl Fn(&RunPoint) -> bool) -> Vec<RunPoint> {
        levels(self.records, |cell| RunPoint::of(cell).filter(&chosen))
    }

    /// A line with a point for each level that has values.
    fn line<P: Fn(&Cell) -> bool>(
        &self,
        system: &str,
        figure: &str,
        levels: &BTreeSet<u64>,
        chosen: impl Fn(u64) -> P,
    ) -> Vec<Point> {
        let points = levels.iter().filter_map(|level| {
            let all = values(self.records, system, figure, chosen(*level));
            Point::of(*level as f64, &all)
        });
        points.collect()
    }

    /// A chart with a line per system; None unless the lines have at least two places on the horizontal axis.
    fn chart(
        &self,
        title: String,
        (x, y): (&str, &str),
        axis: Axis,
        points: impl Fn(&str) -> Vec<Point>,
    ) -> Option<Chart> {
        let series: Vec<Series> = self
            .systems
            .iter()
            .map(|system| Series {
                name: system.clone(),
                points: points(system),
            })
            .filter(|series| !series.points.is_empty())
            .collect();
        let mut places = series.iter().flat_map(|s| &s.points).map(|p| p.x);
        let first = places.next()?;
        places.any(|x| x != first).then(|| Chart {
            title,
            x: x.to_string(),
            y: y.to_string(),
            axis,
            series,
        })
    }
}

/// The point of a system that is drawn at `point`. A single server is drawn beside clusters of any size.
fn beside(system: &str, point: &RunPoint) -> RunPoint {
    let mut point = point.clone();
    if is_single(system) {
        (point.nodes, point.to) = (1, "one".to_string());
    }
    point
}

/// The wanted level if it is among `levels`, otherwise the largest.
fn wanted_or_most(levels: impl Iterator<Item = u64>, wanted: u64) -> Option<u64> {
    levels.max_by_key(|level| (*level == wanted, *level))
}

fn title(point: &RunPoint) -> String {
    format!(
        "{} connections to {}, {} nodes, {} warehouses",
        point.connections, point.to, point.nodes, point.warehouses
    )
}

fn at_second((second, commits): (u32, &u64)) -> Point {
    Point {
        x: f64::from(second),
        y: *commits as f64,
        interval: None,
    }
}

/// The density of samples, by Gaussian kernels of Silverman's width; empty for fewer than three different samples.
fn density(samples: &[f64]) -> Vec<Point> {
    let deviation = standard_deviation(samples).unwrap_or(0.0);
    if samples.len() < 3 || deviation == 0.0 {
        return Vec::new();
    }
    let n = samples.len() as f64;
    let width = 1.06 * deviation * n.powf(-0.2);
    let low = samples.iter().copied().fold(f64::INFINITY, f64::min) - 3.0 * width;
    let high = samples.iter().copied().fold(0.0, f64::max) + 3.0 * width;
    let at = |x: f64| -> f64 {
        let kernels = samples
            .iter()
            .map(|s| (-((x - s) / width).powi(2) / 2.0).exp());
        kernels.sum::<f64>() / (n * width * (2.0 * std::f64::consts::PI).sqrt())
    };
    (0..CURVE)
        .map(|i| low.max(0.0) + (high - low.max(0.0)) * i as f64 / (CURVE - 1) as f64)
        .map(|x| Point {
            x,
            y: at(x),
            interval: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    /// Titles of the charts of the seconds, after runs at these nodes and connections.
    fn of_seconds(runs: &[(u64, u64)]) -> Vec<String> {
        let systems = ["plain".to_string(), "trireme".to_string()];
        let run = |(system, nodes, connections): (&str, u64, u64)| {
            let levels = [
                ("part", "run".to_string()),
                ("to", if nodes == 1 { "one" } else { "all" }.to_string()),
                ("warehouses", "10".to_string()),
                ("nodes", nodes.to_string()),
                ("connections", connections.to_string()),
            ];
            let mut record = fixtures::record(fixtures::cell(system, levels, 1), [("x", 1.0)]);
            record.measured.per_second = vec![10, 20, 30, 20];
            record
        };
        let runs = runs.iter();
        let records: Vec<Record> = runs
            .flat_map(|&(nodes, c)| [run(("plain", 1, c)), run(("trireme", nodes, c))])
            .collect();
        let (records, systems) = (&records[..], &systems[..]);
        let charts = Drawing { records, systems }.seconds(10);
        assert!(charts.iter().all(|chart| chart.series.len() == 2));
        charts.into_iter().map(|chart| chart.title).collect()
    }

    #[test]
    fn the_seconds_are_those_of_the_second_article() {
        let timeline = "commits in each second: ";
        let density = "how the seconds are distributed: ";
        let at =
            |c: u64, nodes: u64| format!("{c} connections to all, {nodes} nodes, 10 warehouses");
        assert_eq!(
            of_seconds(&[(3, 8), (3, 64), (3, 256), (5, 64), (5, 256)]),
            [
                format!("{density}{}", at(8, 3)),
                format!("{timeline}{}", at(64, 3)),
                format!("{density}{}", at(64, 3)),
                format!("{density}{}", at(256, 3)),
            ]
        );
        // Without its points: the largest cluster, and the most connections.
        assert_eq!(
            of_seconds(&[(2, 4), (5, 8)]),
            [
                format!("{timeline}{}", at(8, 5)),
                format!("{density}{}", at(8, 5)),
            ]
        );
    }

    #[test]
    fn a_density_has_the_area_one() {
        let curve = density(&[100.0, 110.0, 120.0, 130.0, 115.0, 112.0]);
        let step = curve[1].x - curve[0].x;
        let area: f64 = curve.iter().map(|p| p.y * step).sum();
        assert!((area - 1.0).abs() < 0.03, "{area}");
        assert!(density(&[5.0, 5.0, 5.0]).is_empty());
    }
}
