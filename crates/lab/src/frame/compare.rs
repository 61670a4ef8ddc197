//! Compares a figure between two sets of cells, paired by repetition, and judges claims by the result.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::{State, Verdict};
use super::record::{Cell, Record};
use crate::stats::{geometric_mean_interval, mean_interval};

/// The kind of comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum By {
    /// The first divided by the second; both are positive.
    Ratio,
    /// The first minus the second.
    Difference,
    /// The first minus this part of the second. Unlike a ratio, this works with zeros.
    LessPart(f64),
}

/// The demand of a claim on a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// The result must lie above this.
    Above(f64),
    /// The result must lie below this.
    Below(f64),
}

/// One side of a comparison: the cells of a system that `chosen` picks, one for each repetition.
pub struct Side<'a> {
    /// The system.
    pub system: &'a str,
    /// Whether a cell belongs to this side.
    pub chosen: &'a dyn Fn(&Cell) -> bool,
}

/// The figure of both sides in a repetition.
struct Pair {
    repetition: u32,
    first: f64,
    second: f64,
}

/// The pairs of two sides.
#[derive(Default)]
struct Pairs {
    all: Vec<Pair>,
    /// Their builds.
    builds: BTreeSet<String>,
    /// The repetitions in which the sides are of different parts of the run, or of different builds. Another part may be
    /// of another hour, machine, load or settings, so such cells do not compare.
    apart: Vec<u32>,
}

/// The origin of a value: cells of one origin compare.
#[derive(PartialEq)]
struct Origin<'a> {
    part: Option<usize>,
    // Records without a part are of one origin if they are of one build.
    build: &'a str,
}

impl<'a> Origin<'a> {
    fn of(record: &'a Record) -> Self {
        Self {
            part: record.part,
            build: &record.commit,
        }
    }
}

impl Pairs {
    /// The pairs of `figure` in the repetitions that both sides have.
    fn of(records: &[Record], (first, second): (&Side, &Side), figure: &str) -> Self {
        let side = |side: &Side| -> BTreeMap<u32, (f64, Origin)> {
            let own = records
                .iter()
                .filter(|r| r.complete && r.cell.system == side.system && (side.chosen)(&r.cell));
            let value = |r: &Record| r.measured.figures.get(figure).copied();
            let found = own.filter_map(|r| Some((r.cell.repetition, (value(r)?, Origin::of(r)))));
            found.collect()
        };
        let (first, second) = (side(first), side(second));
        let mut pairs = Self::default();
        for (repetition, (first, origin)) in first {
            match second.get(&repetition) {
                Some((second, other)) if origin == *other => {
                    pairs.builds.insert(origin.build.to_string());
                    pairs.all.push(Pair {
                        repetition,
                        first,
                        second: *second,
                    });
                }
                Some(_) => pairs.apart.push(repetition),
                None => {}
            }
        }
        pairs
    }

    /// The ratios by repetition; none if a side is 0 in one of them. Without that repetition the others would look
    /// better, or worse, than all of them.
    fn ratios(&self) -> BTreeMap<u32, f64> {
        let is_ratio = |pair: &Pair| pair.first > 0.0 && pair.second > 0.0;
        if !self.all.iter().all(is_ratio) {
            return BTreeMap::new();
        }
        let ratios = self.all.iter();
        ratios
            .map(|pair| (pair.repetition, pair.first / pair.second))
            .collect()
    }
}

/// The ratios of `figure` of the first side to that of the second, by repetition. Both sides must be of one part of the run
/// there.
pub fn ratios(records: &[Record], sides: (&Side, &Side), figure: &str) -> BTreeMap<u32, f64> {
    Pairs::of(records, sides, figure).ratios()
}

/// The ratios of two systems' figures in the same cells, by repetition.
pub fn paired_ratios(
    records: &[Record],
    (system, other): (&str, &str),
    figure: &str,
    chosen: impl Fn(&Cell) -> bool,
) -> BTreeMap<u32, f64> {
    let side = |system| Side {
        system,
        chosen: &chosen,
    };
    ratios(records, (&side(system), &side(other)), figure)
}

/// The mean of a comparison over the repetitions, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mean {
    value: f64,
    low: f64,
    high: f64,
    single: bool,
}

/// The result of a comparison over the repetitions that both sides have.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// None if no repetition has both sides of one build.
    mean: Option<Mean>,
    /// The builds of the repetitions.
    builds: BTreeSet<String>,
    /// The repetitions that do not count, because their sides are of different parts of the run.
    apart: Vec<u32>,
}

impl Comparison {
    /// Compares `figure` of the two sides; None without a repetition that both have.
    pub fn of(records: &[Record], sides: (&Side, &Side), figure: &str, by: By) -> Option<Self> {
        let pairs = Pairs::of(records, sides, figure);
        let difference = |part: f64| {
            let all: Vec<f64> = pairs
                .all
                .iter()
                .map(|p| p.first - part * p.second)
                .collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            (!all.is_empty()).then(|| Mean::new(mean, mean_interval(&all)))
        };
        let mean = match by {
            By::Difference => difference(1.0),
            By::LessPart(part) => difference(part),
            By::Ratio => {
                let all: Vec<f64> = pairs.ratios().into_values().collect();
                geometric_mean_interval(&all).map(|(mean, interval)| Mean::new(mean, interval))
            }
        };
        let Pairs { builds, apart, .. } = pairs;
        (mean.is_some() || !apart.is_empty()).then_some(Self {
            mean,
            builds,
            apart,
        })
    }

    /// Its mean, if it has one, as text.
    fn text(&self) -> String {
        let apart: Vec<String> = self.apart.iter().map(u32::to_string).collect();
        let apart = apart.join(", ");
        match self.mean {
            Some(mean) if apart.is_empty() => mean.text(),
            Some(mean) => {
                format!(
                    "{} without repetition {apart} (of different parts of the run)",
                    mean.text()
                )
            }
            None => format!("no pair of one part of the run (repetition {apart})"),
        }
    }
}

impl Mean {
    /// The interval is None for a single run.
    fn new(value: f64, interval: Option<(f64, f64)>) -> Self {
        let (low, high) = interval.unwrap_or((value, value));
        Self {
            value,
            low,
            high,
            single: interval.is_none(),
        }
    }

    /// Whether the 95 % interval lies on the wanted side of the bound; for a single run, whether the value does.
    fn state(&self, wanted: Wanted) -> State {
        let (holds, fails) = match wanted {
            Wanted::Above(bound) => (self.low > bound, self.high < bound),
            Wanted::Below(bound) => (self.high < bound, self.low > bound),
        };
        match (holds, fails) {
            (true, _) => State::Holds,
            (_, true) => State::Fails,
            _ => State::Open,
        }
    }

    fn text(&self) -> String {
        match self.single {
            true => format!("{:.2}", self.value),
            false => format!("{:.2} [{:.2}, {:.2}]", self.value, self.low, self.high),
        }
    }
}

/// Judges several named comparisons: a claim holds if all of them hold, and fails if one fails.
pub fn judge(parts: &[(String, Option<Comparison>)], wanted: Wanted) -> Verdict {
    let compared: Vec<(&String, &Comparison)> = parts
        .iter()
        .filter_map(|(name, comparison)| Some((name, comparison.as_ref()?)))
        .collect();
    let means: Vec<Mean> = compared.iter().filter_map(|(_, c)| c.mean).collect();
    let states: Vec<State> = means.iter().map(|mean| mean.state(wanted)).collect();
    let state = match states.as_slice() {
        _ if compared.is_empty() => State::NotMeasured,
        all if all.contains(&State::Fails) => State::Fails,
        all if all.contains(&State::Open) || all.len() < parts.len() => State::Open,
        _ => State::Holds,
    };
    let texts: Vec<String> = compared
        .iter()
        .map(|(name, comparison)| format!("{name}: {}", comparison.text()))
        .collect();
    let mut evidence = match texts.is_empty() {
        true => "no data".to_string(),
        false => texts.join(", "),
    };
    if means.iter().any(|mean| mean.single) {
        evidence += "; single runs";
    }
    let builds: BTreeSet<&str> = compared
        .iter()
        .flat_map(|(_, c)| c.builds.iter().map(String::as_str))
        .collect();
    if builds.len() > 1 {
        let names: Vec<&str> = builds.into_iter().collect();
        evidence += &format!("; cells of builds {}", names.join(", "));
    }
    Verdict { state, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn mean(value: f64, interval: Option<(f64, f64)>) -> Option<Comparison> {
        Some(Comparison {
            mean: Some(Mean::new(value, interval)),
            builds: BTreeSet::new(),
            apart: Vec::new(),
        })
    }

    fn one() -> Option<Comparison> {
        mean(1.1, Some((1.05, 1.15)))
    }

    fn state(parts: &[Option<Comparison>], wanted: Wanted) -> State {
        let parts: Vec<(String, Option<Comparison>)> = parts
            .iter()
            .map(|comparison| ("x".to_string(), comparison.clone()))
            .collect();
        judge(&parts, wanted).state
    }

    #[test]
    fn an_interval_around_the_bound_settles_nothing() {
        assert_eq!(state(&[one()], Wanted::Above(1.0)), State::Holds);
        assert_eq!(state(&[one()], Wanted::Above(1.1)), State::Open);
        assert_eq!(state(&[one()], Wanted::Above(1.2)), State::Fails);
        assert_eq!(state(&[one()], Wanted::Below(1.2)), State::Holds);
    }

    #[test]
    fn all_parts_must_hold_and_be_measured() {
        let low = mean(0.9, None);
        assert_eq!(state(&[one(), None], Wanted::Above(1.0)), State::Open);
        assert_eq!(state(&[one(), low], Wanted::Above(1.0)), State::Fails);
        assert_eq!(state(&[None], Wanted::Above(1.0)), State::NotMeasured);
    }

    /// The verdict on `a` being above `b`, from repetitions with the builds of both sides.
    fn of_builds(builds: &[(&str, &str)]) -> Verdict {
        let record = |system: &str, repetition: u32, value: f64, build: &str| Record {
            commit: build.to_string(),
            ..fixtures::record(
                fixtures::cell(system, [("c", 1)], repetition),
                [("x", value)],
            )
        };
        let pair = |(n, (a, b)): (u32, &(&str, &str))| {
            let value = 2.0 + 0.01 * f64::from(n);
            [record("a", n, value, a), record("b", n, 1.0, b)]
        };
        let records: Vec<Record> = (1..).zip(builds).flat_map(pair).collect();
        let side = |system| Side {
            system,
            chosen: &|_: &Cell| true,
        };
        let sides = (&side("a"), &side("b"));
        let ratio = Comparison::of(&records, sides, "x", By::Ratio);
        judge(&[("a / b".to_string(), ratio)], Wanted::Above(1.0))
    }

    #[test]
    fn a_repetition_with_a_zero_is_not_left_out_of_ratios() {
        let ratios = |galera: [f64; 2]| {
            let record = |system: &str, (repetition, figure): (u32, f64)| {
                let cell = fixtures::cell(system, [("c", 1)], repetition);
                fixtures::record(cell, [("x", figure)])
            };
            let trireme = [(1, 2.0), (2, 3.0)].map(|of| record("trireme", of));
            let galera = [(1, galera[0]), (2, galera[1])].map(|of| record("galera", of));
            let records: Vec<Record> = trireme.into_iter().chain(galera).collect();
            paired_ratios(&records, ("trireme", "galera"), "x", |_| true).len()
        };
        assert_eq!((ratios([1.0, 1.0]), ratios([0.0, 1.0])), (2, 0));
    }

    #[test]
    fn cells_of_different_parts_are_no_pair() {
        let cell = |system| fixtures::cell(system, [("c", 1)], 1);
        let record = |system, part| Record {
            part,
            ..fixtures::record(cell(system), [("x", 1.0)])
        };
        for (a, b, pairs) in [
            (None, None, 1),
            (Some(1), Some(1), 1),
            (Some(1), Some(2), 0),
            (None, Some(0), 0),
        ] {
            let records = [record("a", a), record("b", b)];
            let ratios = paired_ratios(&records, ("a", "b"), "x", |_| true);
            assert_eq!(ratios.len(), pairs, "{a:?}, {b:?}");
        }
    }

    #[test]
    fn cells_of_different_builds_are_no_pair() {
        let verdict = of_builds(&[("new", "new"), ("new", "new"), ("new", "old")]);
        assert_eq!(verdict.state, State::Holds);
        let evidence = &verdict.evidence;
        assert!(evidence.starts_with("a / b: 2.01 ["), "{evidence}");
        assert!(
            evidence.ends_with("] without repetition 3 (of different parts of the run)"),
            "{evidence}"
        );
        let verdict = of_builds(&[("new", "old")]);
        assert_eq!(verdict.state, State::Open);
        let why = "a / b: no pair of one part of the run (repetition 1)";
        assert_eq!(verdict.evidence, why);
    }

    #[test]
    fn a_figure_of_several_builds_names_them() {
        let verdict = of_builds(&[("new", "new"), ("old", "old")]);
        assert!(verdict.evidence.ends_with("; cells of builds new, old"));
    }
}
