//! Compares a figure between two sets of cells, paired by repetition, and judges claims by the result.

use super::claims::{State, Verdict};
use super::record::{Cell, Record, values};
use crate::stats::{geometric_mean, mean_interval};

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

/// The values of `figure` on both sides, in each repetition that both have.
fn pairs(records: &[Record], (first, second): (&Side, &Side), figure: &str) -> Vec<(f64, f64)> {
    let mut repetitions: Vec<u32> = records.iter().map(|r| r.cell.repetition).collect();
    repetitions.sort_unstable();
    repetitions.dedup();
    let value = |side: &Side, n: u32| {
        let here = |cell: &Cell| (side.chosen)(cell) && cell.repetition == n;
        values(records, side.system, figure, here).first().copied()
    };
    repetitions
        .into_iter()
        .filter_map(|n| Some((value(first, n)?, value(second, n)?)))
        .collect()
}

/// The ratios of `figure` of the first side to that of the second, in each repetition that both have.
pub fn ratios(records: &[Record], sides: (&Side, &Side), figure: &str) -> Vec<f64> {
    let pairs = pairs(records, sides, figure).into_iter();
    pairs
        .filter(|(_, second)| *second > 0.0)
        .map(|(first, second)| first / second)
        .collect()
}

/// The result of a comparison over the repetitions that both sides have: its mean and 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    mean: f64,
    low: f64,
    high: f64,
    single: bool,
}

impl Comparison {
    /// Compares `figure` of the two sides; None without a repetition that both have.
    pub fn of(records: &[Record], sides: (&Side, &Side), figure: &str, by: By) -> Option<Self> {
        let difference = |part: f64| {
            let pairs = pairs(records, sides, figure).into_iter();
            let all: Vec<f64> = pairs.map(|(a, b)| a - part * b).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            (!all.is_empty()).then(|| Self::new(mean, mean_interval(&all), all.len()))
        };
        match by {
            By::Difference => difference(1.0),
            By::LessPart(part) => difference(part),
            By::Ratio => {
                let all = ratios(records, sides, figure);
                let mean = geometric_mean(&all)?;
                let logs: Vec<f64> = all.iter().map(|ratio| ratio.ln()).collect();
                let interval = mean_interval(&logs).map(|(low, high)| (low.exp(), high.exp()));
                Some(Self::new(mean, interval, all.len()))
            }
        }
    }

    fn new(mean: f64, interval: Option<(f64, f64)>, runs: usize) -> Self {
        let (low, high) = interval.unwrap_or((mean, mean));
        Self {
            mean,
            low,
            high,
            single: runs == 1,
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
            true => format!("{:.2}", self.mean),
            false => format!("{:.2} [{:.2}, {:.2}]", self.mean, self.low, self.high),
        }
    }
}

/// Judges several named comparisons: a claim holds if all of them hold, and fails if one fails.
pub fn judge(parts: &[(String, Option<Comparison>)], wanted: Wanted) -> Verdict {
    let measured: Vec<(&String, Comparison)> = parts
        .iter()
        .filter_map(|(name, comparison)| Some((name, (*comparison)?)))
        .collect();
    let states: Vec<State> = measured.iter().map(|(_, c)| c.state(wanted)).collect();
    let state = match states.as_slice() {
        [] => State::NotMeasured,
        all if all.contains(&State::Fails) => State::Fails,
        all if all.contains(&State::Open) || all.len() < parts.len() => State::Open,
        _ => State::Holds,
    };
    let texts: Vec<String> = measured
        .iter()
        .map(|(name, comparison)| format!("{name}: {}", comparison.text()))
        .collect();
    let evidence = match texts.is_empty() {
        true => "no data".to_string(),
        false => {
            let single = measured.iter().any(|(_, comparison)| comparison.single);
            texts.join(", ") + if single { "; single runs" } else { "" }
        }
    };
    Verdict { state, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Comparison = Comparison {
        mean: 1.1,
        low: 1.05,
        high: 1.15,
        single: false,
    };

    fn state(parts: &[Option<Comparison>], wanted: Wanted) -> State {
        let parts: Vec<(String, Option<Comparison>)> =
            parts.iter().map(|c| ("x".to_string(), *c)).collect();
        judge(&parts, wanted).state
    }

    #[test]
    fn an_interval_around_the_bound_settles_nothing() {
        assert_eq!(state(&[Some(ONE)], Wanted::Above(1.0)), State::Holds);
        assert_eq!(state(&[Some(ONE)], Wanted::Above(1.1)), State::Open);
        assert_eq!(state(&[Some(ONE)], Wanted::Above(1.2)), State::Fails);
        assert_eq!(state(&[Some(ONE)], Wanted::Below(1.2)), State::Holds);
    }

    #[test]
    fn all_parts_must_hold_and_be_measured() {
        let low = Comparison::new(0.9, None, 1);
        assert_eq!(state(&[Some(ONE), None], Wanted::Above(1.0)), State::Open);
        assert_eq!(
            state(&[Some(ONE), Some(low)], Wanted::Above(1.0)),
            State::Fails
        );
        assert_eq!(state(&[None], Wanted::Above(1.0)), State::NotMeasured);
    }
}
