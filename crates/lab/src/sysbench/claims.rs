//! The article's claims, as predicates on the records.

use super::figures::{ATTEMPTS_PER_S, DEADLOCKS_PER_S, TX_PER_S};
use super::plan::PLAIN;
use super::points::{Part, Point, planned_points};
use crate::frame::{By, Cell, Claim, Comparison, Record, Side, State, Verdict, Wanted, judge};

/// "Is what limits": if its deadlocks committed, the small table would reach this share of the large table's
/// throughput.
const WITHOUT_DEADLOCKS: f64 = 0.95;

/// All claims, judged for Galera and for Trireme.
pub fn claims(records: &[Record]) -> Vec<Claim> {
    type Predicate = fn(&Judge) -> Verdict;
    let all: [(&str, Predicate); 6] = [
        (
            "Two nodes and more are always faster than the plain server (transactions/s, ratio to it at each table size).",
            |j| j.against_plain(),
        ),
        (
            "Throughput scales steadily: each further node adds transactions/s at each table size.",
            |j| j.node_steps(),
        ),
        (
            "The deadlock rate falls with the table: fewer deadlocks/s at each larger size (difference, most nodes).",
            |j| j.deadlocks_fall(),
        ),
        (
            "It falls steeply: from the smallest to the largest table by more than the square root of their ratio \
             (deadlocks/s of the largest, less the allowed part of the smallest's).",
            |j| j.deadlocks_fall_steeply(),
        ),
        (
            "The small table scales less (transactions/s, smallest / largest table, most nodes).",
            |j| j.small_to_large(TX_PER_S, Wanted::Below(1.0)),
        ),
        (
            "Deadlocks are what limits it: its commits do not reach 0.95 of the largest table's, but commits and deadlocks \
             together do (ratio, most nodes).",
            |j| j.deadlocks_limit(),
        ),
    ];
    all.into_iter()
        .map(|(text, predicate)| Claim::of(text, |system| predicate(&Judge { records, system })))
        .collect()
}

type Compared = (String, Option<Comparison>);

/// The records, with the system to judge.
struct Judge<'a> {
    records: &'a [Record],
    system: &'a str,
}

impl Judge<'_> {
    fn points(&self) -> Vec<Point> {
        planned_points(self.records, self.system, Part::Run)
    }

    /// The points with the most nodes, by table size; none for one node, which has no conflicts between nodes.
    fn largest_cluster(&self) -> Vec<Point> {
        let points = self.points();
        let most = points.iter().map(|p| p.nodes).max().filter(|n| *n > 1);
        let largest = points.into_iter().filter(|p| Some(p.nodes) == most);
        largest.collect()
    }

    /// Compares a point of this system with a point of `other`.
    fn compare(
        &self,
        point: Point,
        (other, other_point): (&str, Point),
        figure: &str,
        by: By,
    ) -> Option<Comparison> {
        let first = Side {
            system: self.system,
            chosen: &|cell: &Cell| point.has(cell),
        };
        let second = Side {
            system: other,
            chosen: &|cell: &Cell| other_point.has(cell),
        };
        Comparison::of(self.records, (&first, &second), figure, by)
    }

    fn against_plain(&self) -> Verdict {
        let points = self.points().into_iter().filter(|p| p.nodes > 1);
        let parts: Vec<Compared> = points
            .map(|point| {
                let plain = (PLAIN, point.reference());
                (
                    format!("{} rows, {} nodes", point.rows, point.nodes),
                    self.compare(point, plain, TX_PER_S, By::Ratio),
                )
            })
            .collect();
        judge(&parts, Wanted::Above(1.0))
    }

    /// Compares each size of cluster with the next smaller one.
    fn node_steps(&self) -> Verdict {
        let points = self.points();
        let steps = points
            .windows(2)
            .filter(|pair| pair[0].rows == pair[1].rows);
        let parts: Vec<Compared> = steps
            .map(|pair| {
                let (less, more) = (pair[0], pair[1]);
                let name = format!("{} rows, {} / {} nodes", less.rows, more.nodes, less.nodes);
                let ratio = self.compare(more, (self.system, less), TX_PER_S, By::Ratio);
                (name, ratio)
            })
            .collect();
        judge(&parts, Wanted::Above(1.0))
    }

    fn deadlocks_fall(&self) -> Verdict {
        let parts: Vec<Compared> = self
            .largest_cluster()
            .windows(2)
            .map(|pair| {
                let (small, large) = (pair[0], pair[1]);
                let name = format!(
                    "{} less {} rows, {} nodes",
                    large.rows, small.rows, large.nodes
                );
                let side = (self.system, small);
                let difference = self.compare(large, side, DEADLOCKS_PER_S, By::Difference);
                (name, difference)
            })
            .collect();
        judge(&parts, Wanted::Below(0.0))
    }

    /// The smallest and the largest table on the most nodes; None if only one size was measured.
    fn smallest_and_largest(&self) -> Option<(Point, Point)> {
        let points = self.largest_cluster();
        let (small, large) = (*points.first()?, *points.last()?);
        (small.rows < large.rows).then_some((small, large))
    }

    fn deadlocks_fall_steeply(&self) -> Verdict {
        let Some((small, large)) = self.smallest_and_largest() else {
            return judge(&[], Wanted::Below(0.0));
        };
        let part = (f64::from(small.rows) / f64::from(large.rows)).sqrt();
        let name = format!(
            "{} rows less {part:.2} of {} rows, {} nodes",
            large.rows, small.rows, large.nodes
        );
        let side = (self.system, small);
        let less = self.compare(large, side, DEADLOCKS_PER_S, By::LessPart(part));
        judge(&[(name, less)], Wanted::Below(0.0))
    }

    fn deadlocks_limit(&self) -> Verdict {
        let limited = self.small_to_large(TX_PER_S, Wanted::Below(WITHOUT_DEADLOCKS));
        match limited.state {
            State::Holds => self.small_to_large(ATTEMPTS_PER_S, Wanted::Above(WITHOUT_DEADLOCKS)),
            State::NotMeasured => limited,
            _ => Verdict {
                state: State::Open,
                evidence: format!(
                    "{} transactions/s: nothing limits the small table for certain",
                    limited.evidence
                ),
            },
        }
    }

    fn small_to_large(&self, figure: &str, wanted: Wanted) -> Verdict {
        let Some((small, large)) = self.smallest_and_largest() else {
            return judge(&[], wanted);
        };
        let name = format!(
            "{} / {} rows, {} nodes",
            small.rows, large.rows, large.nodes
        );
        let ratio = self.compare(small, (self.system, large), figure, By::Ratio);
        judge(&[(name, ratio)], wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;
    use crate::sysbench::report::ARTICLE;

    fn record(
        system: &str,
        (rows, nodes): (u32, u16),
        tx_per_s: f64,
        deadlocks_per_s: f64,
    ) -> Record {
        let point = Point {
            part: Part::Run,
            rows,
            nodes,
            threads: 6,
        };
        let figures = [
            (TX_PER_S, tx_per_s),
            (DEADLOCKS_PER_S, deadlocks_per_s),
            (ATTEMPTS_PER_S, tx_per_s + deadlocks_per_s),
        ];
        fixtures::record(point.cell(system, 1), figures)
    }

    /// The article's own figures: the plain server and four nodes.
    fn article() -> Vec<Record> {
        let rows = ARTICLE.iter().flat_map(|row| {
            [
                record("plain", (row.rows, 1), row.plain.0, row.plain.1),
                record("galera", (row.rows, 4), row.four_nodes.0, row.four_nodes.1),
            ]
        });
        rows.collect()
    }

    fn states(records: &[Record]) -> Vec<State> {
        claims(records).iter().map(|c| c.galera.state).collect()
    }

    #[test]
    fn the_articles_own_figures_confirm_its_claims() {
        let found = states(&article());
        assert_eq!(found[0], State::Holds);
        // Its text gives no figures of one, two and three nodes.
        assert_eq!(found[1], State::NotMeasured);
        assert_eq!(found[2..], [State::Holds; 4]);
        let trireme = |c: &Claim| c.trireme.state == State::NotMeasured;
        assert!(claims(&article()).iter().all(trireme));
    }

    #[test]
    fn a_node_that_adds_nothing_refutes_the_scaling() {
        let mut records = article();
        records.push(record("galera", (10_000, 2), 250.0, 10.0));
        assert_eq!(states(&records)[1], State::Holds);
        records.push(record("galera", (10_000, 3), 240.0, 10.0));
        assert_eq!(states(&records)[1], State::Fails);
    }

    #[test]
    fn a_cluster_slower_than_the_plain_server_refutes_the_first_claim() {
        let mut records = article();
        records.push(record("galera", (10_000, 2), 150.0, 10.0));
        assert_eq!(states(&records)[0], State::Fails);
    }

    #[test]
    fn no_deadlocks_at_all_are_a_steep_fall() {
        let mut records = article();
        records.retain(|r| r.cell.number("rows") == 10_000);
        records.push(record("galera", (100_000, 4), 400.0, 0.0));
        assert_eq!(states(&records)[2..4], [State::Holds; 2]);
        let last = records.len() - 1;
        records[last] = record("galera", (100_000, 4), 400.0, 60.0);
        // 60 of 109.51: less, but not steeply.
        assert_eq!(states(&records)[2..4], [State::Holds, State::Fails]);
        // With those committed it would still lag behind.
        assert_eq!(states(&records)[5], State::Fails);
    }

    /// Commits and deadlocks of a small table that is as fast as the large one say nothing about its limit.
    #[test]
    fn deadlocks_do_not_limit_what_is_not_limited() {
        let with_small = |tx_per_s: f64, deadlocks_per_s: f64| {
            let mut records = article();
            records.retain(|r| r.cell.system == "plain");
            records.push(record("galera", (10_000, 4), tx_per_s, deadlocks_per_s));
            records.push(record("galera", (100_000, 4), 400.0, 1.0));
            states(&records)[5]
        };
        assert_eq!(with_small(500.0, 40.0), State::Open);
        assert_eq!(with_small(385.0, 0.0), State::Open);
        assert_eq!(with_small(350.0, 50.0), State::Holds);
        assert_eq!(with_small(300.0, 50.0), State::Fails);
    }
}
