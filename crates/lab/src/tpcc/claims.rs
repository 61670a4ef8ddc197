//! The claims of the two articles, as predicates on the records.
//!
//! The first article gives each system its best number of connections, and so do the predicates on its claims. A run in
//! which a client committed nothing counts for none.

use super::figures::{CLIENTS_WITHOUT_COMMIT, LOAD_S, NOTPM, TX_PER_S, TX_SD_PERCENT, of_kind};
use super::input::Kind;
use super::points::{RunPoint, best, is_load, loaded_nodes, planned_points, warehouses};
use crate::frame::{By, Cell, Claim, Comparison, Record, Side, Verdict, Wanted, judge};

/// The reference of the first article.
const PLAIN: &str = "plain";

/// The other system of the second article.
const GROUP_REPLICATION: &str = "group-replication";

/// The score of one node as a share of the plain server's: in the first article 2900 of 3590, rounded down.
const ONE_NODE: f64 = 0.8;

/// "Hardly": in the first article the load took 1.10 times as long on four nodes as on one.
const HARDLY_LONGER: f64 = 1.15;

/// "Hardly more" in the second article, which gives no figure.
const HARDLY_LESS: f64 = 0.9;
/// "Much less": the ratio.
const MUCH_LESS: f64 = 0.5;

/// All claims, judged for Galera and for Trireme. `processors`: those that all nodes share; `None` if each node has a
/// share of its own.
pub fn claims(records: &[Record], processors: Option<usize>) -> Vec<Claim> {
    type Predicate = fn(&Judge) -> Verdict;
    let all: [(&str, Predicate); 12] = [
        (
            "2008: one node reaches four fifths of the plain server's New-Orders per minute (0.81).",
            |j| j.against_plain(|nodes| nodes == 1, ONE_NODE),
        ),
        (
            "2008: from two nodes on, the cluster is faster than the plain server (1.21, 1.41, 1.52).",
            |j| j.against_plain(|nodes| nodes > 1, 1.0),
        ),
        ("2008: each further node adds throughput.", |j| {
            j.node_steps(NOTPM, Wanted::Above(1.0))
        }),
        (
            "2008: New-Orders get shorter with each further node.",
            |j| j.node_steps(&of_kind(Kind::NewOrder, "mean_ms"), Wanted::Below(1.0)),
        ),
        (
            "2008: the time of the load hardly depends on the number of nodes (at most 1.15 times that of the smallest).",
            |j| j.load(),
        ),
        (
            "2008: New-Order's rollbacks rise with the nodes (difference in percent points).",
            |j| j.rollbacks_by_nodes(Kind::NewOrder),
        ),
        (
            "2008: Delivery's rollbacks rise with the nodes, too (to 18 % there; difference in percent points).",
            |j| j.rollbacks_by_nodes(Kind::Delivery),
        ),
        (
            "2008: New-Order's rollbacks fall with the warehouses (difference in percent points).",
            |j| j.rollbacks_by_warehouses(),
        ),
        (
            "2020: throughput grows with the connections (most / fewest; two nodes and more, as there).",
            |j| j.connections(),
        ),
        (
            "2020: five nodes cost hardly more than three (load to one node, at least 0.9 of the throughput).",
            |j| j.five_to_three(),
        ),
        ("2020: a better average than Group Replication.", |j| {
            j.against_group_replication(TX_PER_S, Wanted::Above(1.0))
        }),
        (
            "2020: much less variance than Group Replication (standard deviation / mean of the seconds, at most half of its).",
            |j| j.against_group_replication(TX_SD_PERCENT, Wanted::Below(MUCH_LESS)),
        ),
    ];
    let records: Vec<Record> = records.iter().map(as_evidence).collect();
    let judge = |system| Judge {
        records: &records,
        system,
        processors,
    };
    all.into_iter()
        .map(|(text, predicate)| Claim::of(text, |system| predicate(&judge(system))))
        .collect()
}

/// The record as the verdicts see it: a run that starved a client is no measurement of the system's throughput.
fn as_evidence(record: &Record) -> Record {
    let starved = record.measured.figures.get(CLIENTS_WITHOUT_COMMIT);
    Record {
        complete: record.complete && starved.is_none_or(|clients| *clients == 0.0),
        ..record.clone()
    }
}

type Part = (String, Option<Comparison>);

/// The records, with the system to judge.
struct Judge<'a> {
    records: &'a [Record],
    system: &'a str,
    processors: Option<usize>,
}

impl Judge<'_> {
    /// The difference to the articles, where each node was a machine of its own; empty if there is none.
    fn sharing(&self, nodes: u64) -> String {
        match self.processors {
            Some(processors) if nodes > 1 => {
                format!(" ({nodes} nodes share {processors} processors)")
            }
            _ => String::new(),
        }
    }

    fn compare(
        &self,
        (first, second): (&RunPoint, (&str, &RunPoint)),
        figure: &str,
        by: By,
    ) -> Option<Comparison> {
        let (second_system, second) = second;
        let first = Side {
            system: self.system,
            chosen: &|cell: &Cell| first.has(cell),
        };
        let second = Side {
            system: second_system,
            chosen: &|cell: &Cell| second.has(cell),
        };
        Comparison::of(self.records, (&first, &second), figure, by)
    }

    /// The best point with this number of nodes, with load to all of them.
    fn best(&self, warehouses: u64, nodes: u64) -> Option<RunPoint> {
        best(self.records, self.system, NOTPM, |p| {
            p.warehouses == warehouses && p.nodes == nodes && p.is_to_all()
        })
    }

    /// The numbers of nodes of the plan with this number of warehouses, with load to all.
    fn nodes(&self, warehouses: u64) -> Vec<u64> {
        let points = planned_points(self.records, self.system).into_iter();
        let mut nodes: Vec<u64> = points
            .filter(|p| p.warehouses == warehouses && p.is_to_all())
            .map(|p| p.nodes)
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn against_plain(&self, chosen: fn(u64) -> bool, bound: f64) -> Verdict {
        let mut parts: Vec<Part> = Vec::new();
        for w in warehouses(self.records) {
            let plain = best(self.records, PLAIN, NOTPM, |p| p.warehouses == w);
            for nodes in self.nodes(w).into_iter().filter(|n| chosen(*n)) {
                let both = self.best(w, nodes).zip(plain.as_ref());
                let ratio = both.and_then(|(own, plain)| {
                    self.compare((&own, (PLAIN, plain)), NOTPM, By::Ratio)
                });
                let sharing = self.sharing(nodes);
                parts.push((
                    format!("nodes {nodes} / plain, {w} warehouses{sharing}"),
                    ratio,
                ));
            }
        }
        judge(&parts, Wanted::Above(bound))
    }

    /// Compares each size of cluster with the next smaller one.
    fn node_steps(&self, figure: &str, wanted: Wanted) -> Verdict {
        let mut parts: Vec<Part> = Vec::new();
        for w in warehouses(self.records) {
            for pair in self.nodes(w).windows(2) {
                let (less, more) = (pair[0], pair[1]);
                let sharing = self.sharing(more);
                let name = format!("{more} / {less} nodes, {w} warehouses{sharing}");
                let both = self.best(w, more).zip(self.best(w, less));
                let ratio = both.and_then(|(more, less)| {
                    self.compare((&more, (self.system, &less)), figure, By::Ratio)
                });
                parts.push((name, ratio));
            }
        }
        judge(&parts, wanted)
    }

    fn load(&self) -> Verdict {
        let mut parts: Vec<Part> = Vec::new();
        for w in warehouses(self.records) {
            let is_planned = |nodes: &u64| {
                let mut of_system = self.records.iter().filter(|r| r.cell.system == self.system);
                of_system.any(|r| is_load(&r.cell, w, *nodes))
            };
            let nodes: Vec<u64> = loaded_nodes(self.records, w)
                .into_iter()
                .filter(is_planned)
                .collect();
            let (Some(&few), Some(&many)) = (nodes.first(), nodes.last()) else {
                continue;
            };
            if few == many {
                continue;
            }
            let side = |nodes: u64| move |cell: &Cell| is_load(cell, w, nodes);
            let (first, second) = (side(many), side(few));
            let first = Side {
                system: self.system,
                chosen: &first,
            };
            let second = Side {
                system: self.system,
                chosen: &second,
            };
            let ratio = Comparison::of(self.records, (&first, &second), LOAD_S, By::Ratio);
            let sharing = self.sharing(many);
            let name = format!("{many} / {few} nodes, {w} warehouses{sharing}");
            parts.push((name, ratio));
        }
        judge(&parts, Wanted::Below(HARDLY_LONGER))
    }

    fn rollbacks_by_nodes(&self, kind: Kind) -> Verdict {
        let figure = of_kind(kind, "conflict_percent");
        let mut parts: Vec<Part> = Vec::new();
        for w in warehouses(self.records) {
            let nodes = self.nodes(w);
            let (Some(&few), Some(&many)) = (nodes.first(), nodes.last()) else {
                continue;
            };
            // Both points have the same number of connections, because that decides about the rollbacks, too.
            if few == many {
                continue;
            }
            let Some(more) = self.best(w, many) else {
                parts.push((format!("{many} less {few} nodes, {w} warehouses"), None));
                continue;
            };
            let less = planned_points(self.records, self.system)
                .into_iter()
                .find(|p| {
                    p.nodes == few
                        && p.is_to_all()
                        && p.warehouses == w
                        && p.connections == more.connections
                });
            let difference = less.and_then(|less| {
                self.compare((&more, (self.system, &less)), &figure, By::Difference)
            });
            let c = more.connections;
            let shared = self.sharing(many);
            let name = format!("{many} less {few} nodes, {c} connections, {w} warehouses{shared}");
            parts.push((name, difference));
        }
        judge(&parts, Wanted::Above(0.0))
    }

    fn rollbacks_by_warehouses(&self) -> Verdict {
        let figure = of_kind(Kind::NewOrder, "conflict_percent");
        let all = warehouses(self.records);
        let (Some(&few), Some(&many)) = (all.first(), all.last()) else {
            return judge(&[], Wanted::Below(0.0));
        };
        let points = planned_points(self.records, self.system);
        let parts: Vec<Part> = points
            .iter()
            .filter(|p| p.warehouses == many && many != few && p.nodes > 1 && p.is_to_all())
            .map(|more| {
                let less = RunPoint {
                    warehouses: few,
                    ..more.clone()
                };
                let name = format!(
                    "{many} less {few} warehouses, {} nodes, {} connections",
                    more.nodes, more.connections
                );
                let side = (self.system, &less);
                (name, self.compare((more, side), &figure, By::Difference))
            })
            .collect();
        judge(&parts, Wanted::Below(0.0))
    }

    fn connections(&self) -> Verdict {
        let mut points = planned_points(self.records, self.system);
        points.retain(|p| p.nodes > 1);
        let connections = || points.iter().map(|p| p.connections);
        let (Some(few), Some(many)) = (connections().min(), connections().max()) else {
            return judge(&[], Wanted::Above(1.0));
        };
        let parts: Vec<Part> = points
            .iter()
            .filter(|p| p.connections == many && few != many)
            .map(|more| {
                let less = RunPoint {
                    connections: few,
                    ..more.clone()
                };
                let name = format!(
                    "{many} / {few} connections, {} nodes, to {}, {} warehouses",
                    more.nodes, more.to, more.warehouses
                );
                let side = (self.system, &less);
                (name, self.compare((more, side), TX_PER_S, By::Ratio))
            })
            .collect();
        judge(&parts, Wanted::Above(1.0))
    }

    fn five_to_three(&self) -> Verdict {
        let points = planned_points(self.records, self.system);
        let parts: Vec<Part> = points
            .iter()
            .filter(|p| p.nodes == 5 && p.is_to_one())
            .map(|five| {
                let three = RunPoint {
                    nodes: 3,
                    ..five.clone()
                };
                let name = format!(
                    "5 / 3 nodes, {} connections, {} warehouses{}",
                    five.connections,
                    five.warehouses,
                    self.sharing(5)
                );
                let side = (self.system, &three);
                (name, self.compare((five, side), TX_PER_S, By::Ratio))
            })
            .collect();
        judge(&parts, Wanted::Above(HARDLY_LESS))
    }

    /// Compares both systems at the same point, in clusters.
    fn against_group_replication(&self, figure: &str, wanted: Wanted) -> Verdict {
        let points = planned_points(self.records, self.system);
        let others = planned_points(self.records, GROUP_REPLICATION);
        let parts: Vec<Part> = points
            .iter()
            .filter(|p| p.nodes > 1 && others.contains(p))
            .map(|point| {
                let name = format!(
                    "{} nodes, to {}, {} connections, {} warehouses",
                    point.nodes, point.to, point.connections, point.warehouses
                );
                let side = (GROUP_REPLICATION, point);
                (name, self.compare((point, side), figure, By::Ratio))
            })
            .collect();
        judge(&parts, wanted)
    }
}

#[cfg(test)]
mod tests;
