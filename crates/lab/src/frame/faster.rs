//! Whether one system is faster than another at every level of a factor.

use super::claims::{State, Verdict};
use super::compare::{Side, ratios};
use super::record::{Cell, Record};
use crate::stats::{geometric_mean, mean_interval};

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
    let mut states = Vec::new();
    let mut parts = Vec::new();
    let mut single = false;
    for &level in &levels {
        let ratios = paired_ratios(records, (system, other), figure, |cell| {
            chosen(cell) && cell.number(factor) == level
        });
        let Some(mean) = geometric_mean(&ratios) else {
            continue;
        };
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let (low, high) = mean_interval(&logs).unwrap_or((mean.ln(), mean.ln()));
        single |= ratios.len() == 1;
        states.push(match (low > 0.0, high < 0.0) {
            (true, _) => State::Holds,
            (_, true) => State::Fails,
            _ => State::Open,
        });
        let range = match ratios.len() {
            1 => String::new(),
            _ => format!(" [{:.2}, {:.2}]", low.exp(), high.exp()),
        };
        parts.push(format!("{level}: {mean:.2}{range}"));
    }
    let state = match states.as_slice() {
        [] => State::NotMeasured,
        all if all.contains(&State::Fails) => State::Fails,
        all if all.contains(&State::Open) => State::Open,
        // If a level has no data, the claim about every level stays open.
        all if all.len() < levels.len() => State::Open,
        _ => State::Holds,
    };
    let faster = states.iter().filter(|s| **s == State::Holds).count();
    let evidence = match states.len() {
        0 => "no data".to_string(),
        n => format!(
            "faster at {faster} of {n} levels; {system} / {other} at {factor} {}{}{}",
            parts.join(", "),
            if n < levels.len() {
                "; not all levels were measured"
            } else {
                ""
            },
            if single { "; single runs" } else { "" }
        ),
    };
    Verdict { state, evidence }
}

/// The ratios of two systems' figures, in the repetitions that both have.
pub fn paired_ratios(
    records: &[Record],
    (system, other): (&str, &str),
    figure: &str,
    chosen: impl Fn(&Cell) -> bool,
) -> Vec<f64> {
    let side = |system| Side {
        system,
        chosen: &chosen,
    };
    ratios(records, (&side(system), &side(other)), figure)
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
