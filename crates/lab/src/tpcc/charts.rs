//! The report's charts.

use std::collections::BTreeSet;

use super::figures::{LOAD_S, NOTPM, of_kind};
use super::input::Kind;
use super::points::{RunPoint, is_load, levels, loaded_nodes, warehouses};
use crate::frame::{Axis, Cell, Chart, Point, Record, Series, values};
use crate::stats::standard_deviation;

/// The reference, which is drawn beside clusters of any size.
const REFERENCE: &str = "plain";

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

    /// The effect of more connections, for each size of cluster and target, each with the reference.
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
                        let (nodes, to) = match system {
                            REFERENCE => (1, "one"),
                            _ => (*nodes, to.as_str()),
                        };
                        let point = |c: u64| RunPoint {
                            warehouses: w,
                            nodes,
                            to: to.to_string(),
                            connections: c,
                        };
                        self.line(system, figure, &connections, |c| {
                            let point = point(c);
                            move |cell: &Cell| point.has(cell)
                        })
                    },
                ));
            }
        }
        charts
    }

    /// The commits of each second with the most connections to the largest cluster, and their distribution.
    fn seconds(&self, w: u64) -> Vec<Chart> {
        let points = self.points(|p| p.warehouses == w);
        let Some(most) = points.iter().map(|p| p.connections).max() else {
            return Vec::new();
        };
        let Some(nodes) = points.iter().map(|p| p.nodes).max() else {
            return Vec::new();
        };
        let targets: BTreeSet<&String> = points
            .iter()
            .filter(|p| p.nodes == nodes)
            .map(|p| &p.to)
            .collect();
        let mut charts = Vec::new();
        for to in targets {
            let samples = |system: &str| -> Vec<&Record> {
                let (nodes, to) = match system {
                    REFERENCE => (1, "one"),
                    _ => (nodes, to.as_str()),
                };
                let here = |record: &&Record| {
                    let point = RunPoint::of(&record.cell);
                    record.complete
                        && record.cell.system == system
                        && point.is_some_and(|p| {
                            p.warehouses == w
                                && p.connections == most
                                && p.nodes == nodes
                                && p.to == to
                        })
                };
                self.records.iter().filter(here).collect()
            };
            let at = format!("{most} connections to {to}, {nodes} nodes, {w} warehouses");
            charts.extend(self.chart(
                format!("commits in each second: {at}"),
                ("second", "transactions"),
                Axis::Linear,
                |system| {
                    let first = samples(system).into_iter().next();
                    let seconds = first.map(|r| r.measured.per_second.as_slice());
                    (0..)
                        .zip(seconds.unwrap_or_default())
                        .map(at_second)
                        .collect()
                },
            ));
            charts.extend(self.chart(
                format!("how the seconds are distributed: {at}"),
                ("transactions in a second", "density"),
                Axis::Linear,
                |system| {
                    let records = samples(system);
                    let seconds = records.iter().flat_map(|r| &r.measured.per_second);
                    density(&seconds.map(|n| *n as f64).collect::<Vec<_>>())
                },
            ));
        }
        charts
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

    #[test]
    fn a_density_has_the_area_one() {
        let curve = density(&[100.0, 110.0, 120.0, 130.0, 115.0, 112.0]);
        let step = curve[1].x - curve[0].x;
        let area: f64 = curve.iter().map(|p| p.y * step).sum();
        assert!((area - 1.0).abs() < 0.03, "{area}");
        assert!(density(&[5.0, 5.0, 5.0]).is_empty());
    }
}
