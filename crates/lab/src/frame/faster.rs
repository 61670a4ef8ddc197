//! Whether one system is faster than another at every level of a factor.

use super::claims::{State, Verdict};
use super::compare::{By, Comparison, Side, Wanted, judge};
use super::record::{Cell, Record};

/// Judges whether `figure` (more is better) of `system` is above that of `other` at every level of `factor`, among the
/// cells that `chosen` picks. A level counts as faster or slower if the 95 % interval of the paired ratios excludes 1;
/// with one repetition, the ratio alone decides.
pub fn faster_everywhere(
    records: &[Record],
    (system, other): (&str, &str),
    figure: &str,
    factor: &str,
    chosen: impl Fn(&Cell) -> bool,
) -> Verdict {
    let mut levels: Vec<u64> = records
        .iter()
        .filter(|r| chosen(&r.cell))
        .map(|r| r.cell.number(factor))
        .collect();
    levels.sort_unstable();
    levels.dedup();
    let parts: Vec<(String, Option<Comparison>)> = levels
        .iter()
        .map(|&level| {
            let here = |cell: &Cell| chosen(cell) && cell.number(factor) == level;
            let side = |system| Side {
                system,
                chosen: &here,
            };
            let sides = (&side(system), &side(other));
            let ratio = Comparison::of(records, sides, figure, By::Ratio);
            (level.to_string(), ratio)
        })
        .collect();
    let wanted = Wanted::Above(1.0);
    let Verdict { state, evidence } = judge(&parts, wanted);
    let is_faster = |part: &&(String, Option<Comparison>)| {
        judge(std::slice::from_ref(*part), wanted).state == State::Holds
    };
    let faster = parts.iter().filter(is_faster).count();
    let evidence = match parts.iter().filter(|(_, ratio)| ratio.is_some()).count() {
        0 => evidence,
        n => format!(
            "faster at {faster} of {n} levels; {system} / {other} at {factor} {evidence}{}",
            if n < levels.len() {
                "; not all levels were measured"
            } else {
                ""
            },
        ),
    };
    Verdict { state, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn record(system: &str, level: u64, repetition: u32, value: f64) -> Record {
        fixtures::record(
            fixtures::cell(system, [("c", level)], repetition),
            [("x", value)],
        )
    }

    fn judge(records: &[Record]) -> State {
        faster_everywhere(records, ("a", "b"), "x", "c", |_| true).state
    }

    #[test]
    fn one_slower_level_refutes_every() {
        let mut records = vec![
            record("a", 1, 1, 2.0),
            record("b", 1, 1, 1.0),
            record("a", 8, 1, 3.0),
            record("b", 8, 1, 1.0),
        ];
        assert_eq!(judge(&records), State::Holds);
        records[2].measured.figures.insert("x".to_string(), 0.5);
        assert_eq!(judge(&records), State::Fails);
    }

    #[test]
    fn repetitions_that_disagree_settle_nothing() {
        let ratios = [2.0, 0.5, 1.1];
        let records: Vec<Record> = (1..)
            .zip(ratios)
            .flat_map(|(n, ratio)| [record("a", 1, n, ratio), record("b", 1, n, 1.0)])
            .collect();
        assert_eq!(judge(&records), State::Open);
    }

    #[test]
    fn incomplete_records_count_nowhere() {
        let mut records = vec![record("a", 1, 1, 2.0), record("b", 1, 1, 1.0)];
        records[1].complete = false;
        assert_eq!(judge(&records), State::NotMeasured);
        records.extend([record("a", 8, 1, 2.0), record("b", 8, 1, 1.0)]);
        assert_eq!(judge(&records), State::Open);
    }
}
