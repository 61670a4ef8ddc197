//! A goal that each trial of a system meets or misses.

use std::collections::BTreeSet;

use trireme_testbed::interrupt::Interrupted;

use super::case::PART;
use super::report::{row_name, short};
use crate::frame::{Cell, Claim, NOT_MEASURED, Record, State, Verdict};

/// The systems in the two columns of a claim.
pub const GALERA: &str = "galera";
pub const TRIREME: &str = "trireme";

/// The limit of a goal for a figure of a trial.
#[derive(Clone, Copy)]
pub enum Bound {
    /// At most this value.
    Most(f64),
    /// At least this value.
    Least(f64),
}

/// Judges a goal that each trial must meet. `text` says it in words; `value` and `bound` are in `unit`.
pub fn in_every_trial(
    records: &[Record],
    (text, unit): (&str, &str),
    chosen: impl Fn(&Cell) -> bool,
    value: impl Fn(&Record) -> Option<f64>,
    bound: impl Fn(&Record) -> Bound,
) -> Claim {
    let judge = |system: &str| {
        let of_system: Vec<&Record> = records
            .iter()
            .filter(|r| r.cell.system == system && chosen(&r.cell))
            .collect();
        let complete: Vec<_> = of_system.iter().filter(|r| r.complete).collect();
        let trials = complete.iter();
        let trials = trials.filter_map(|r| Some((row_name(r), value(r)?, bound(r))));
        let trials: Vec<_> = trials.collect();
        let (failed, not_measured) = not_made(&of_system);
        let unseen = Unseen {
            failed,
            not_measured,
            without_figure: complete.len() - trials.len(),
        };
        verdict(&trials, unseen, unit).of_one_build(of_system)
    };
    Claim::of(text, judge)
}

/// The numbers of trials that failed and were not repeated, and of all others that are still to be measured: planned,
/// or interrupted by the user.
fn not_made(records: &[&Record]) -> (usize, usize) {
    let interrupted = Interrupted.to_string();
    let made: BTreeSet<&Cell> = records
        .iter()
        .filter(|r| r.complete)
        .map(|r| &r.cell)
        .collect();
    let open = || records.iter().filter(|r| !made.contains(&r.cell));
    let all: BTreeSet<&Cell> = open().map(|r| &r.cell).collect();
    let failed: BTreeSet<&Cell> = open()
        .filter(|r| r.note != interrupted && r.note != NOT_MEASURED)
        .map(|r| &r.cell)
        .collect();
    (failed.len(), all.len() - failed.len())
}

/// The numbers of trials without a value.
#[derive(Clone, Copy, Default)]
struct Unseen {
    /// They failed and were not repeated.
    failed: usize,
    /// They are planned, or were interrupted.
    not_measured: usize,
    /// They have no such figure: nothing was there to measure.
    without_figure: usize,
}

/// The verdict on trials with the names of their cases. The evidence gives for each case the number of trials that meet
/// the goal, and the worst value. The goal does not hold while some trials are unseen, because they may have missed it.
fn verdict(trials: &[(String, f64, Bound)], unseen: Unseen, unit: &str) -> Verdict {
    let is_met = |(_, value, bound): &(String, f64, Bound)| match bound {
        Bound::Most(most) => value <= most,
        Bound::Least(least) => value >= least,
    };
    let mut names: Vec<&String> = trials.iter().map(|(name, ..)| name).collect();
    names.sort_unstable();
    names.dedup();
    let cases = names.into_iter().map(|case| {
        let own: Vec<_> = trials.iter().filter(|(name, ..)| name == case).collect();
        let met = own.iter().filter(|trial| is_met(trial)).count();
        let worst = own.iter().map(|(_, value, bound)| match bound {
            Bound::Most(_) => (*value, *value),
            Bound::Least(_) => (-*value, *value),
        });
        let worst = worst.max_by(|a, b| a.0.total_cmp(&b.0));
        let worst = worst.map_or(0.0, |(_, value)| value);
        format!(
            "{case}: {met} of {}, worst {} {unit}",
            own.len(),
            short(worst)
        )
    });
    let mut evidence: Vec<String> = cases.collect();
    if unseen.failed > 0 {
        evidence.push(format!("{} trials failed", unseen.failed));
    }
    if unseen.not_measured > 0 {
        evidence.push(format!("{} trials not measured yet", unseen.not_measured));
    }
    if unseen.without_figure > 0 {
        evidence.push(format!(
            "{} trials without the figure",
            unseen.without_figure
        ));
    }
    Verdict {
        state: match trials.iter().all(is_met) {
            false => State::Fails,
            true if unseen.failed > 0 => State::Open,
            true if trials.is_empty() => State::NotMeasured,
            true if unseen.without_figure > 0 || unseen.not_measured > 0 => State::Open,
            true => State::Holds,
        },
        evidence: match evidence.is_empty() {
            true => "no data".to_string(),
            false => evidence.join("; "),
        },
    }
}

/// A figure of a trial.
pub fn number(record: &Record, figure: &str) -> Option<f64> {
    record.measured.figures.get(figure).copied()
}

/// Whether a cell belongs to a part.
pub fn is_part(cell: &Cell, part: &str) -> bool {
    cell.level(PART) == part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    #[test]
    fn trials_of_several_builds_settle_no_goal() {
        let trial = |repetition, build: &str| Record {
            commit: build.to_string(),
            ..fixtures::record(
                fixtures::cell(TRIREME, [(PART, "far")], repetition),
                [("x", 1.0)],
            )
        };
        let state = |records: &[Record]| {
            let value = |record: &Record| number(record, "x");
            let any = |_: &Cell| true;
            let claim = in_every_trial(records, ("g", "ms"), any, value, |_| Bound::Most(2.0));
            claim.trireme.state
        };
        assert_eq!(state(&[trial(1, "new"), trial(2, "new")]), State::Holds);
        assert_eq!(state(&[trial(1, "old"), trial(2, "new")]), State::Open);
    }

    #[test]
    fn the_worst_of_a_least_is_the_smallest() {
        let trials = [
            ("x".to_string(), 0.95, Bound::Least(0.9)),
            ("x".to_string(), 0.5, Bound::Least(0.9)),
        ];
        let verdict = verdict(&trials, Unseen::default(), "x");
        assert_eq!(verdict.evidence, "x: 1 of 2, worst 0.50 x");
        assert_eq!(verdict.state, State::Fails);
    }

    #[test]
    fn a_trial_without_the_figure_leaves_the_goal_open() {
        let unseen = Unseen {
            without_figure: 1,
            ..Unseen::default()
        };
        let met = [("x".to_string(), 0.95, Bound::Least(0.9))];
        let open = verdict(&met, unseen, "x");
        assert_eq!(open.state, State::Open);
        assert!(open.evidence.ends_with("; 1 trials without the figure"));
        assert_eq!(verdict(&[], unseen, "x").state, State::NotMeasured);
    }
}
