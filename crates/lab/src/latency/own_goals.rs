//! The goals of Trireme alone: the cost of durable commits, and conflicts. Galera is the reference.

use super::case::CASE;
use super::durability::{Point, Strength};
use super::goals::{Bound, GALERA, TRIREME, in_every_trial, is_part, number};
use super::trace::{MAJORITY, Promise};
use super::windows::CONFLICTS;
use crate::frame::{By, Cell, Claim, Comparison, Record, Side, State, Verdict, Wanted, judge};

/// Judges these goals.
pub fn claims(records: &[Record]) -> Vec<Claim> {
    let disk = (TRIREME, Strength::Disk);
    let against = |other: (&str, Strength), single: Option<bool>, least: f64| {
        let points = Point::ALL.into_iter();
        let points = points.filter(|point| single.is_none_or(|single| point.is_single == single));
        let parts = points.map(|point| {
            let is = |wanted: Strength| {
                move |cell: &Cell| is_part(cell, "durability") && cell.level(CASE) == wanted.name()
            };
            let (own, others) = (is(disk.1), is(other.1));
            let sides = (
                &Side {
                    system: disk.0,
                    chosen: &own,
                },
                &Side {
                    system: other.0,
                    chosen: &others,
                },
            );
            let ratio = Comparison::of(records, sides, &point.commits(), By::Ratio);
            (point.name(), ratio)
        });
        judge(&parts.collect::<Vec<_>>(), Wanted::Above(least))
    };
    let galera = (GALERA, Strength::Galera);
    let own = |text: &str, trireme: Verdict| Claim {
        text: text.to_string(),
        galera: not_asked(),
        trireme,
    };
    let windows = |cell: &Cell| is_part(cell, "windows");
    let sides = [TRIREME, GALERA].map(|system| Side {
        system,
        chosen: &windows,
    });
    let conflicts = Comparison::of(records, (&sides[0], &sides[1]), CONFLICTS, By::Ratio);
    let flushed = in_every_trial(
        records,
        (
            "With repl.durability=disk every commit is flushed on a majority before it is acknowledged.",
            "%",
        ),
        |cell| is_part(cell, "trace") && cell.level(CASE) == Promise::Disk.name(),
        |record| number(record, MAJORITY),
        |_| Bound::Least(100.0),
    );
    vec![
        own(
            "Flushed on a majority, one thread commits more than 1.15 times as much as under Galera with flush=1.",
            against(galera, Some(true), 1.15),
        ),
        own(
            "18 threads: more than 1.25 times as much.",
            against(galera, Some(false), 1.25),
        ),
        own(
            "18 threads: more than 0.85 times as much as with repl.durability=os.",
            against((TRIREME, Strength::Os), Some(false), 0.85),
        ),
        own(&flushed.text, flushed.trireme.clone()),
        own(
            "Four nodes on 10,000 rows have fewer conflicts per commit than under Galera (ratio).",
            judge(&[("ratio".to_string(), conflicts)], Wanted::Below(1.0)),
        ),
    ]
}

/// The verdict on Galera, which is only the reference.
fn not_asked() -> Verdict {
    Verdict {
        state: State::NotMeasured,
        evidence: "the goal is Trireme's alone".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;
    use crate::latency::case::PART;

    #[test]
    fn durable_commits_are_compared_with_both() {
        let at = |system: &str, strength: Strength, single: f64, many: f64| {
            let factors = [(PART, "durability"), (CASE, strength.name())];
            let figures: Vec<(String, f64)> = (Point::ALL.into_iter())
                .map(|point| (point.commits(), if point.is_single { single } else { many }))
                .collect();
            fixtures::record(fixtures::cell(system, factors, 1), figures)
        };
        let records = [
            at(GALERA, Strength::Galera, 100.0, 100.0),
            at(TRIREME, Strength::Os, 200.0, 200.0),
            at(TRIREME, Strength::Disk, 120.0, 120.0),
        ];
        let states: Vec<State> = claims(&records).iter().map(|c| c.trireme.state).collect();
        let expected = [State::Holds, State::Fails, State::Fails];
        assert_eq!(states[..3], expected);
        assert_eq!(states[3], State::NotMeasured);
    }
}
