//! The report's charts.

use super::points::{Factor, Point, limited_runs, lines, points_of};
use super::{TPS, article};
use crate::frame::{self, Axis, Chart, Record, Series, values};
use crate::stats::median;

/// The name of the article's line.
const ARTICLE: &str = "article (2025)";

/// All charts.
pub fn charts(records: &[Record], systems: &[String]) -> Vec<Chart> {
    let drawing = Drawing { records, systems };
    let mut all = drawing.by_nodes();
    all.extend(drawing.by_connections());
    all.extend(drawing.by_appliers());
    all.extend(drawing.timeline());
    all
}

struct Drawing<'a> {
    records: &'a [Record],
    systems: &'a [String],
}

impl Drawing<'_> {
    /// The throughput of one client by the size of the cluster; the same as a share of one node, beside the article;
    /// and the processor time of a transaction on all nodes together.
    fn by_nodes(&self) -> Vec<Chart> {
        let mut charts = Vec::new();
        for line in lines(&self.points(), Factor::Nodes) {
            let place = |point: &Point| point.level(Factor::Nodes) as f64;
            let at = line[0].without(Factor::Nodes);
            for (figure, y) in [
                (TPS, "transactions/s"),
                (
                    "server_cpu_ms_per_tx",
                    "processor time of all nodes, ms per transaction",
                ),
            ] {
                charts.push(Chart {
                    title: format!("{y}: {at}"),
                    x: "nodes".to_string(),
                    y: y.to_string(),
                    axis: Axis::Linear,
                    series: self.series(&line, figure, place),
                });
            }
            if line[0].level(Factor::Nodes) == 1 {
                charts.push(self.shares(&line, &at));
            }
        }
        charts
    }

    fn shares(&self, line: &[Point], at: &str) -> Chart {
        let share = |series: Vec<(f64, f64)>| -> Vec<frame::Point> {
            let Some((_, one)) = series.iter().find(|(nodes, _)| *nodes == 1.0).copied() else {
                return Vec::new();
            };
            let point = |(x, tps): (f64, f64)| frame::Point {
                x,
                y: 100.0 * tps / one,
                interval: None,
            };
            series.into_iter().map(point).collect()
        };
        let nodes = |point: &Point| point.level(Factor::Nodes) as f64;
        let mut series: Vec<Series> = Vec::new();
        for system in self.systems {
            if limited_runs(self.records, system, line[0]) > 0 {
                continue; // these would be shares of the clients' rate
            }
            let tps = |point: &Point| median(&self.values(system, TPS, *point));
            let all = line.iter().filter_map(|p| Some((nodes(p), tps(p)?)));
            series.push(Series {
                name: system.clone(),
                points: share(all.collect()),
            });
        }
        let article = article::FIGURES
            .iter()
            .take_while(|(point, _)| point.connections() == 8);
        series.push(Series {
            name: ARTICLE.to_string(),
            points: share(article.map(|(p, tps)| (nodes(p), *tps)).collect()),
        });
        Chart {
            title: format!("throughput, % of one node: {at}"),
            x: "nodes".to_string(),
            y: "%".to_string(),
            axis: Axis::Linear,
            series,
        }
    }

    /// The throughput by connections, from more clients or from more threads.
    fn by_connections(&self) -> Vec<Chart> {
        // Points that differ only in clients and threads become the same.
        let rest = |p: &Point| p.with(Factor::Clients, 0).with(Factor::Threads, 0);
        let points = self.points();
        let mut rests: Vec<Point> = points.iter().map(rest).collect();
        rests.sort_unstable();
        rests.dedup();
        let mut charts = Vec::new();
        for other in rests {
            let mut line: Vec<Point> = points
                .iter()
                .copied()
                .filter(|p| rest(p) == other)
                .collect();
            line.sort_by_key(|p| (p.connections(), *p));
            if line.len() < 2 {
                continue;
            }
            let [nodes, appliers, seconds] =
                [Factor::Nodes, Factor::Appliers, Factor::Seconds].map(|f| other.level(f));
            charts.push(Chart {
                title: format!(
                    "transactions/s: nodes {nodes}, appliers {appliers}, seconds {seconds}"
                ),
                x: "connections".to_string(),
                y: "transactions/s".to_string(),
                axis: Axis::Doubling,
                series: self.series(&line, TPS, |p| p.connections() as f64),
            });
        }
        charts
    }

    fn by_appliers(&self) -> Vec<Chart> {
        let lines = lines(&self.points(), Factor::Appliers).into_iter();
        let chart = |line: Vec<Point>| Chart {
            title: format!("transactions/s: {}", line[0].without(Factor::Appliers)),
            x: "applier threads of each node".to_string(),
            y: "transactions/s".to_string(),
            axis: Axis::Doubling,
            series: self.series(&line, TPS, |p| p.level(Factor::Appliers) as f64),
        };
        lines.map(chart).collect()
    }

    /// The commits of each second in the first repetition: of one client on the largest cluster, and of the most
    /// connections.
    fn timeline(&self) -> Vec<Chart> {
        let points = self.points();
        let one_client = points.iter().filter(|p| p.level(Factor::Clients) == 1);
        let largest = one_client.max_by_key(|p| (p.level(Factor::Nodes), p.level(Factor::Seconds)));
        let busiest = points
            .iter()
            .max_by_key(|p| (p.connections(), p.level(Factor::Seconds)));
        let mut chosen: Vec<Point> = [largest, busiest].into_iter().flatten().copied().collect();
        chosen.dedup();
        let charts = chosen.into_iter().map(|point| {
            let series = self.systems.iter().map(|system| Series {
                name: system.clone(),
                points: self.seconds(system, point),
            });
            Chart {
                title: format!("commits in each second: {}", point.text()),
                x: "second".to_string(),
                y: "transactions".to_string(),
                axis: Axis::Linear,
                series: series.filter(|s| s.points.len() > 2).collect(),
            }
        });
        charts.filter(|chart| !chart.series.is_empty()).collect()
    }

    fn seconds(&self, system: &str, point: Point) -> Vec<frame::Point> {
        let here =
            |r: &&Record| r.complete && r.cell.system == system && Point::of(&r.cell) == point;
        let record = self.records.iter().find(here);
        let commits = record.map_or(&[][..], |r| &r.measured.per_second);
        let at_second = |(second, commits): (u32, &u64)| frame::Point {
            x: f64::from(second),
            y: *commits as f64,
            interval: None,
        };
        (1..).zip(commits).map(at_second).collect()
    }

    /// The points at which a system was measured.
    fn points(&self) -> Vec<Point> {
        let of = |system: &String| points_of(self.records, system);
        let mut all: Vec<Point> = self.systems.iter().flat_map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn values(&self, system: &str, figure: &str, point: Point) -> Vec<f64> {
        values(self.records, system, figure, |cell| {
            Point::of(cell) == point
        })
    }

    /// A line per system.
    fn series(&self, line: &[Point], figure: &str, place: impl Fn(&Point) -> f64) -> Vec<Series> {
        let of = |system: &String| Series {
            name: system.clone(),
            points: line
                .iter()
                .filter_map(|point| {
                    let all = self.values(system, figure, *point);
                    frame::Point::of(place(point), &all)
                })
                .collect(),
        };
        self.systems.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    #[test]
    fn no_share_is_one_of_the_clients_rate() {
        let record = |system: &str, nodes: u64, limited: f64| {
            let cell = Point::new([nodes, 1, 8, 1, 30]).cell(system, 1);
            fixtures::record(cell, [(TPS, 900.0), ("limited_by_rate", limited)])
        };
        let systems = ["galera", "trireme"].map(String::from);
        let records = [
            record("galera", 1, 0.0),
            record("galera", 9, 0.0),
            record("trireme", 1, 1.0),
            record("trireme", 9, 0.0),
        ];
        let charts = charts(&records, &systems);
        let shares = charts.iter().find(|chart| chart.y == "%").unwrap();
        let names: Vec<&str> = shares.series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["galera", ARTICLE]);
    }
}
