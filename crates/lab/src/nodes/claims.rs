//! The claims of the article, as predicates on the records.
//!
//! The article also claims an optimum near 3 nodes and 40 connections. That needs a design of experiments: `trireme
//! bench optimum`.

use std::collections::BTreeSet;

use super::TPS;
use super::points::{Factor, Point, limited_runs, lines, planned_points};
use crate::client_processes::SATURATED;
use crate::frame::{
    By, Cell, Claim, Comparison, Record, Side, State, Verdict, Wanted, faster_everywhere, judge,
    values,
};

/// The cluster of the article's figure.
const MOST_NODES: u64 = 9;

/// The throughput of nine nodes as a share of that of one: 0.72 in the article, plus or minus five points.
const NINE_OF_ONE: (f64, f64) = (0.67, 0.77);

/// The connections beyond which further threads cost throughput in the article.
const SATURATED_AT: u64 = 80;

/// The threads of the article's client.
const THREADS: u64 = 8;

/// "Hardly matter": with more appliers the article had 0.92 and 0.95 of the throughput, and called that no effect.
const HARDLY: (f64, f64) = (0.9, 1.1);

/// All claims, judged for Galera and for Trireme.
pub fn claims(records: &[Record]) -> Vec<Claim> {
    type Predicate = fn(&Judge) -> Verdict;
    let all: [(&str, Predicate); 6] = [
        (
            "28 % less throughput with nine nodes than with one, one client of 8 threads (here: 9 / 1 nodes from 0.67 to 0.77).",
            |j| {
                j.to_one_node(|more| {
                    more.level(Factor::Nodes) == MOST_NODES
                        && more.level(Factor::Threads) == THREADS
                })
                .between(NINE_OF_ONE)
            },
        ),
        (
            "A cluster of any size is slower than one node, with one client.",
            |j| j.to_one_node(|_| true).judge(Wanted::Below(1.0)),
        ),
        (
            "More clients, each on a node of its own, give more throughput (most / fewest).",
            |j| {
                j.ends(Factor::Clients, |(most, _)| {
                    most.level(Factor::Clients) <= most.level(Factor::Nodes)
                })
                .judge(Wanted::Above(1.0))
            },
        ),
        (
            "Beyond about 80 connections, further threads of the clients cost throughput (160 / 40 connections: 0.92).",
            |j| {
                j.ends(Factor::Threads, |(most, fewest)| {
                    fewest.connections() <= SATURATED_AT && most.connections() > SATURATED_AT
                })
                .judge(Wanted::Below(1.0))
            },
        ),
        (
            "Applier threads hardly matter (4: 0.95, 8: 0.92 of one; here: from 0.9 to 1.1).",
            |j| j.to_fewest(Factor::Appliers).between(HARDLY),
        ),
        (
            "The length of the run matters: a longer one commits less per second (180 / 120 s: 0.65).",
            |j| {
                j.ends(Factor::Seconds, |ends| j.lasted(ends))
                    .judge(Wanted::Below(1.0))
            },
        ),
    ];
    let mut claims: Vec<Claim> = all
        .into_iter()
        .map(|(text, predicate)| Claim::of(text, |system| predicate(&Judge { records, system })))
        .collect();
    claims.push(against_galera(records));
    claims
}

/// The comparison with Galera, which the article could not make.
fn against_galera(records: &[Record]) -> Claim {
    let one_client: Vec<Point> = lines(&planned_points(records, "trireme"), Factor::Nodes)
        .into_iter()
        .max_by_key(Vec::len)
        .unwrap_or_default();
    let is_used = |point| one_client.contains(&point);
    let verdict = faster_everywhere(
        records,
        ("trireme", "galera"),
        TPS,
        Factor::Nodes.name(),
        |cell| is_used(Point::of(cell)),
    );
    let limited = ["trireme", "galera"].map(|system| limited(records, system, is_used));
    let limited = limited.into_iter().flatten().collect();
    Claim {
        text: "Beyond the article: Trireme is faster than Galera at each number of nodes."
            .to_string(),
        galera: Verdict {
            state: State::NotMeasured,
            evidence: "Galera is the reference".to_string(),
        },
        trireme: unless_limited(verdict, &limited),
    }
}

/// The verdict, unless the clients' rate limited the throughput at one of these points: then the claim stays open.
fn unless_limited(verdict: Verdict, limited: &BTreeSet<String>) -> Verdict {
    if limited.is_empty() || verdict.state == State::NotMeasured {
        return verdict;
    }
    let points = limited.iter().map(String::as_str).collect::<Vec<_>>();
    Verdict {
        state: State::Open,
        evidence: format!(
            "{}; the clients' rate limited the throughput ({}): measure with --rate 0",
            verdict.evidence,
            points.join("; ")
        ),
    }
}

/// The points at which the clients' rate limited a system's throughput, as text.
fn limited(records: &[Record], system: &str, is_used: impl Fn(Point) -> bool) -> BTreeSet<String> {
    planned_points(records, system)
        .into_iter()
        .filter(|point| is_used(*point) && limited_runs(records, system, *point) > 0)
        .map(|point| format!("{system} at {}", point.text()))
        .collect()
}

/// Two points that differ in one factor.
type Pair = (Point, Point);

/// Ratios of the throughputs at two points.
struct Ratios {
    /// Each ratio with its name.
    parts: Vec<(String, Option<Comparison>)>,
    /// The points whose throughput the clients' rate limited.
    limited: BTreeSet<String>,
}

impl Ratios {
    fn judge(&self, wanted: Wanted) -> Verdict {
        unless_limited(judge(&self.parts, wanted), &self.limited)
    }

    /// A claim that all ratios lie in a range. It holds if all do, and fails if one is outside.
    fn between(&self, (low, high): (f64, f64)) -> Verdict {
        let above = self.judge(Wanted::Above(low));
        let below = self.judge(Wanted::Below(high));
        let state = match (above.state, below.state) {
            (State::Fails, _) | (_, State::Fails) => State::Fails,
            (State::Holds, State::Holds) => State::Holds,
            (State::NotMeasured, _) => State::NotMeasured,
            _ => State::Open,
        };
        Verdict { state, ..above }
    }
}

/// The records, with the system to judge.
struct Judge<'a> {
    records: &'a [Record],
    system: &'a str,
}

impl Judge<'_> {
    fn lines(&self, factor: Factor) -> Vec<Vec<Point>> {
        lines(&planned_points(self.records, self.system), factor)
    }

    /// The throughput at the first point of each pair divided by that at the second.
    fn ratios(&self, factor: Factor, pairs: &[Pair]) -> Ratios {
        let is_used = |point| pairs.iter().any(|pair| pair.0 == point || pair.1 == point);
        Ratios {
            parts: pairs.iter().map(|pair| self.ratio(factor, *pair)).collect(),
            limited: limited(self.records, self.system, is_used),
        }
    }

    fn ratio(&self, factor: Factor, (first, second): Pair) -> (String, Option<Comparison>) {
        let side = |point: Point| move |cell: &Cell| Point::of(cell) == point;
        let (chosen, other) = (side(first), side(second));
        let first_side = Side {
            system: self.system,
            chosen: &chosen,
        };
        let second_side = Side {
            system: self.system,
            chosen: &other,
        };
        let name = format!(
            "{} / {} {} ({})",
            first.level(factor),
            second.level(factor),
            factor.name(),
            first.without(factor)
        );
        let ratio = Comparison::of(self.records, (&first_side, &second_side), TPS, By::Ratio);
        (name, ratio)
    }

    /// Compares the largest level with the smallest one, where the two are the claim's.
    fn ends(&self, factor: Factor, is_meant: impl Fn(&Pair) -> bool) -> Ratios {
        let lines = self.lines(factor).into_iter();
        let ends = lines.filter_map(|line| Some((*line.last()?, *line.first()?)));
        let ends = ends.filter(is_meant);
        self.ratios(factor, &ends.collect::<Vec<_>>())
    }

    /// False if a run of one of the points ended before its time, because the clients could not keep up with their
    /// rate: its length is not the one that the point names.
    fn lasted(&self, (first, second): &Pair) -> bool {
        let lasted = |point: &Point| {
            let all = values(self.records, self.system, SATURATED, |cell| {
                Point::of(cell) == *point
            });
            all.iter().all(|clients| *clients == 0.0)
        };
        lasted(first) && lasted(second)
    }

    /// Compares each larger level with the smallest one.
    fn to_fewest(&self, factor: Factor) -> Ratios {
        let lines = self.lines(factor).into_iter();
        let pairs = lines.flat_map(|line| pairs_with_first(&line));
        self.ratios(factor, &pairs.collect::<Vec<_>>())
    }

    /// With one client: compares each wanted cluster with one node.
    fn to_one_node(&self, is_wanted: fn(&Point) -> bool) -> Ratios {
        let is_single =
            |point: &Point| point.level(Factor::Nodes) == 1 && point.level(Factor::Clients) == 1;
        let lines = self.lines(Factor::Nodes).into_iter();
        let pairs = lines
            .filter(|line| is_single(&line[0]))
            .flat_map(|line| pairs_with_first(&line))
            .filter(|(more, _)| is_wanted(more));
        self.ratios(Factor::Nodes, &pairs.collect::<Vec<_>>())
    }
}

/// Each further point of a line with its first one.
fn pairs_with_first(line: &[Point]) -> Vec<Pair> {
    line[1..].iter().map(|more| (*more, line[0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;
    use crate::nodes::article::FIGURES;

    fn record(point: Point, system: &str, repetition: u32, tps: f64) -> Record {
        fixtures::record(point.cell(system, repetition), [(TPS, tps)])
    }

    /// The article's figures.
    fn article() -> Vec<Record> {
        let records = FIGURES.iter();
        records
            .map(|(point, tps)| record(*point, "galera", 1, *tps))
            .collect()
    }

    fn states(records: &[Record]) -> Vec<State> {
        claims(records).iter().map(|c| c.galera.state).collect()
    }

    fn set(records: &mut [Record], levels: [u64; 5], tps: f64) {
        let here = |r: &&mut Record| Point::of(&r.cell) == Point::new(levels);
        let found = records.iter_mut().find(here).unwrap();
        found.measured.figures.insert(TPS.to_string(), tps);
    }

    #[test]
    fn the_articles_own_figures_confirm_its_claims() {
        let records = article();
        assert_eq!(states(&records)[..6], [State::Holds; 6]);
        let trireme = |c: &Claim| c.trireme.state == State::NotMeasured;
        assert!(claims(&records).iter().all(trireme));
    }

    #[test]
    fn each_claim_can_fail() {
        let changes = [
            (0, [9, 1, 8, 1, 180], 500.0),
            (1, [2, 1, 8, 1, 180], 600.0),
            (2, [9, 5, 8, 1, 120], 900.0),
            (3, [9, 5, 32, 1, 120], 1300.0),
            (4, [9, 5, 8, 8, 120], 1400.0),
            (5, [9, 3, 8, 1, 180], 950.0),
        ];
        for (claim, levels, tps) in changes {
            let mut records = article();
            set(&mut records, levels, tps);
            assert_eq!(states(&records)[claim], State::Fails, "claim {claim}");
        }
    }

    #[test]
    fn a_run_that_a_full_queue_ended_has_no_length_to_compare() {
        let mut records = article();
        let long = |r: &&mut Record| Point::of(&r.cell) == Point::new([9, 3, 8, 1, 180]);
        let long = records.iter_mut().find(long).unwrap();
        let figures = &mut long.measured.figures;
        figures.insert("saturated_clients".to_string(), 1.0);
        assert_eq!(states(&records)[5], State::NotMeasured);
    }

    #[test]
    fn points_that_a_claim_does_not_mean_settle_nothing() {
        let points = [
            ([1, 1, 4, 1, 30], 600.0),
            ([9, 1, 4, 1, 30], 430.0),
            ([1, 2, 4, 1, 30], 700.0),
            ([1, 2, 16, 1, 30], 900.0),
        ];
        let records = points.map(|(levels, tps)| record(Point::new(levels), "galera", 1, tps));
        let found = states(&records);
        assert_eq!(
            (found[0], found[2], found[3]),
            (State::NotMeasured, State::NotMeasured, State::NotMeasured)
        );
    }

    #[test]
    fn a_range_is_settled_by_the_interval() {
        let points = [Point::new([1, 1, 8, 1, 30]), Point::new([9, 1, 8, 1, 30])];
        let runs = |ratios: [f64; 3]| -> Vec<Record> {
            let pair = |(n, ratio): (u32, f64)| {
                [
                    record(points[0], "galera", n, 100.0),
                    record(points[1], "galera", n, 100.0 * ratio),
                ]
            };
            (1..).zip(ratios).flat_map(pair).collect()
        };
        assert_eq!(states(&runs([0.72, 0.721, 0.719]))[0], State::Holds);
        assert_eq!(states(&runs([0.6, 0.72, 0.8]))[0], State::Open);
        assert_eq!(states(&runs([0.5, 0.501, 0.499]))[0], State::Fails);
    }

    #[test]
    fn a_throughput_that_the_rate_limits_settles_nothing() {
        let mut records = article();
        for record in article() {
            let cell = Cell {
                system: "trireme".to_string(),
                ..record.cell
            };
            records.push(Record { cell, ..record });
        }
        let is_one = |r: &&mut Record| Point::of(&r.cell) == Point::new([1, 1, 8, 1, 180]);
        let one_node = records.iter_mut().find(is_one).unwrap();
        (one_node.measured.figures).insert("limited_by_rate".to_string(), 1.0);
        let claims = claims(&records);
        // Nine nodes to one, each cluster to one, and Trireme to Galera.
        let open = |claim: usize| {
            let both = [&claims[claim].galera, &claims[claim].trireme];
            both.map(|verdict| verdict.state == State::Open)
        };
        assert_eq!((open(0), open(1)), ([true, false], [true, false]));
        assert_eq!((open(2), open(6)), ([false, false], [false, true]));
        let evidence = &claims[0].galera.evidence;
        let why = "limited the throughput (galera at nodes 1, clients 1, threads 8, appliers 1, seconds 180)";
        assert!(evidence.contains(why), "{evidence}");
    }

    #[test]
    fn systems_are_compared_at_each_number_of_nodes() {
        let mut records = Vec::new();
        for nodes in [1, 9] {
            let point = Point::new([nodes, 1, 8, 1, 30]);
            records.push(record(point, "galera", 1, 100.0));
            records.push(record(point, "trireme", 1, 110.0));
        }
        // This point is not on the line of the numbers of nodes.
        let other = Point::new([9, 5, 8, 1, 30]);
        records.push(record(other, "galera", 1, 100.0));
        records.push(record(other, "trireme", 1, 90.0));
        let last = |records: &[Record]| claims(records).pop().map(|c| c.trireme.state);
        assert_eq!(last(&records), Some(State::Holds));
        set(&mut records, [9, 1, 8, 1, 30], 120.0);
        assert_eq!(last(&records), Some(State::Fails));
    }
}
