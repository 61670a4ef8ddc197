//! A factor: a number that the experiment varies, with its range, which is coded as -1 to 1.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::designs::MAX_FACTORS;

/// The most levels of a linear factor in a full grid.
const GRID_LEVELS: f64 = 9.0;

/// The significant digits of a level, if the factor is no whole number.
const DIGITS: i32 = 3;

/// The measure of the distance between levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Levels with equal differences are equally far apart.
    Linear,
    /// Levels with equal ratios are equally far apart.
    Log,
}

/// A number that the experiment varies between two bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    name: String,
    low: f64,
    high: f64,
    scale: Scale,
    /// The levels are multiples of this; `None` if every number is a level.
    step: Option<f64>,
}

/// The reason why factors make no experiment.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FactorError {
    /// The text has another form.
    #[error("\"{0}\" is no factor: write NAME=LOW..HIGH or NAME=LOW..HIGH:log")]
    Form(String),
    /// There is no level between the bounds, which a quadratic needs.
    #[error(
        "\"{0}\" has no level between its bounds: widen the range, a whole number needs at least LOW+2"
    )]
    Narrow(String),
    /// A bound is no level.
    #[error("the bounds of \"{factor}\" must be multiples of {step}")]
    Step {
        /// The factor.
        factor: String,
        /// The number of which all levels are multiples.
        step: f64,
    },
    /// The factor is unknown.
    #[error("there is no factor \"{name}\": choose {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: &'static str,
    },
    /// The factor is given twice.
    #[error("the factor \"{0}\" is there twice: give it one range")]
    Twice(String),
    /// There are too few or too many factors.
    #[error("{0} factors: choose 2 to {MAX_FACTORS} (option --factor)")]
    Number(usize),
    /// The range is too large.
    #[error("\"{factor}\" goes beyond 1..{limit}: narrow the range")]
    Limit {
        /// The factor.
        factor: String,
        /// The largest possible level.
        limit: String,
    },
    /// A logarithmic range begins at or below 0.
    #[error("\"{0}\" begins at or below 0: a logarithmic range begins above 0")]
    NotPositive(String),
}

impl Factor {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lower and the upper bound.
    pub fn bounds(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The measure of the distance between levels.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Converts a level to coded units, in which the bounds are -1 and 1.
    pub fn coded(&self, level: f64) -> f64 {
        let (low, high, value) = match self.scale {
            Scale::Linear => (self.low, self.high, level),
            Scale::Log => (self.low.ln(), self.high.ln(), level.ln()),
        };
        2.0 * (value - low) / (high - low) - 1.0
    }

    /// Converts a coded value to a number of the range, which need not be a level.
    pub fn exact(&self, coded: f64) -> f64 {
        let share = (coded + 1.0) / 2.0;
        match self.scale {
            Scale::Linear => self.low + share * (self.high - self.low),
            Scale::Log => self.low * (self.high / self.low).powf(share),
        }
    }

    /// The level nearest to a coded value, within the bounds.
    pub fn level(&self, coded: f64) -> f64 {
        self.rounded(self.exact(coded), f64::round)
    }

    /// The levels next below and next above a coded value; if the value is a level, both are this level.
    pub fn neighbours(&self, coded: f64) -> [f64; 2] {
        let exact = self.exact(coded);
        // The logarithm may miss a bound by a little.
        let near = self.level(coded);
        if (near - exact).abs() < 1e-9 * near.abs().max(1.0) {
            return [near, near];
        }
        [
            self.rounded(exact, f64::floor),
            self.rounded(exact, f64::ceil),
        ]
    }

    /// Restricts the levels of the factor to multiples of `step`.
    pub fn in_steps(mut self, step: f64) -> Result<Self, FactorError> {
        if self.low % step != 0.0 || self.high % step != 0.0 {
            return Err(FactorError::Step {
                factor: self.to_string(),
                step,
            });
        }
        if self.high - self.low < 2.0 * step {
            return Err(FactorError::Narrow(self.to_string()));
        }
        self.step = Some(step);
        Ok(self)
    }

    fn rounded(&self, exact: f64, round: impl Fn(f64) -> f64) -> f64 {
        let level = match self.step {
            Some(step) => step * round(exact / step),
            None if exact == 0.0 => 0.0,
            None => {
                let unit = 10f64.powi(DIGITS - 1 - exact.abs().log10().floor() as i32);
                round(exact * unit) / unit
            }
        };
        level.clamp(self.low, self.high)
    }

    /// The levels of a full grid: in a linear range all levels, but at most nine; in a logarithmic range each doubling,
    /// and the upper bound.
    pub fn grid(&self) -> Vec<f64> {
        let mut levels = Vec::new();
        match self.scale {
            Scale::Linear => {
                let span = self.high - self.low;
                let all = self.step.map_or(f64::INFINITY, |step| span / step);
                let steps = all.min(GRID_LEVELS - 1.0);
                let step = |i: u32| self.level(2.0 * f64::from(i) / steps - 1.0);
                levels.extend((0..=steps as u32).map(step));
            }
            Scale::Log => {
                let mut level = self.low;
                while level < self.high {
                    levels.push(level);
                    level *= 2.0;
                }
                levels.push(self.high);
            }
        }
        levels.dedup();
        levels
    }
}

impl FromStr for Factor {
    type Err = FactorError;

    fn from_str(text: &str) -> Result<Self, FactorError> {
        let form = || FactorError::Form(text.to_string());
        let (name, range) = text.rsplit_once('=').ok_or_else(form)?;
        let (range, scale) = match range.rsplit_once(':') {
            Some((range, "log")) => (range, Scale::Log),
            Some((range, "linear")) => (range, Scale::Linear),
            Some(_) => return Err(form()),
            None => (range, Scale::Linear),
        };
        let (low_text, high_text) = range.split_once("..").ok_or_else(form)?;
        let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
        let (low, high) = (
            number(low_text).ok_or_else(form)?,
            number(high_text).ok_or_else(form)?,
        );
        if name.is_empty() {
            return Err(form());
        }
        if scale == Scale::Log && low <= 0.0 {
            return Err(FactorError::NotPositive(text.to_string()));
        }
        let whole = !range.replace("..", " ").contains('.');
        let least = if whole { 2.0 } else { f64::MIN_POSITIVE };
        if high - low < least {
            return Err(FactorError::Narrow(text.to_string()));
        }
        Ok(Self {
            name: name.to_string(),
            low,
            high,
            scale,
            step: whole.then_some(1.0),
        })
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = match self.scale {
            Scale::Linear => "",
            Scale::Log => ":log",
        };
        write!(f, "{}={}..{}{scale}", self.name, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn factor(text: &str) -> Factor {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_are_read() {
        let nodes = factor("nodes=1..9");
        assert_eq!((nodes.name(), nodes.bounds()), ("nodes", (1.0, 9.0)));
        let limit = factor("option:gcs.fc_limit=16..1024:log");
        assert_eq!(limit.name(), "option:gcs.fc_limit");
        assert_eq!(limit.to_string(), "option:gcs.fc_limit=16..1024:log");
        assert_eq!(factor("x=0.5..0.7").level(0.0), 0.6);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "nodes", "nodes=1", "nodes=1..x", "=1..9", "n=1..9:ln"] {
            let error = text.parse::<Factor>();
            assert!(matches!(error, Err(FactorError::Form(_))), "{text}");
        }
        let narrow = "n=1..2".parse::<Factor>();
        assert!(matches!(narrow, Err(FactorError::Narrow(_))));
        assert!("n=9..1".parse::<Factor>().is_err());
        let zero = "n=0..8:log".parse::<Factor>();
        assert!(matches!(zero, Err(FactorError::NotPositive(_))));
    }

    #[test]
    fn the_centre_of_a_logarithmic_range_is_the_geometric_mean() {
        let connections = factor("c=8..160:log");
        assert_eq!(connections.level(0.0), 36.0);
        assert!((connections.coded(36.0)).abs() < 0.01);
        assert_eq!(connections.level(1.0), 160.0);
        assert_eq!(connections.neighbours(0.0), [35.0, 36.0]);
        assert_eq!(connections.neighbours(1.0), [160.0, 160.0]);
    }

    #[test]
    fn the_grid_has_all_nodes_and_doubles_connections() {
        let nodes: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(factor("n=1..9").grid(), nodes);
        assert_eq!(factor("n=1..3").grid(), [1.0, 2.0, 3.0]);
        assert_eq!(factor("n=1..100").grid().len(), 9);
        let doubled = [8.0, 16.0, 32.0, 64.0, 128.0, 160.0];
        assert_eq!(factor("c=8..160:log").grid(), doubled);
    }

    #[test]
    fn levels_come_in_steps() {
        let connections = factor("c=8..160:log").in_steps(8.0).unwrap();
        assert_eq!(connections.level(0.0), 32.0);
        assert_eq!(connections.neighbours(0.0), [32.0, 40.0]);
        assert_eq!(connections.to_string(), "c=8..160:log");
        let beside = factor("c=8..100:log").in_steps(8.0);
        assert!(matches!(beside, Err(FactorError::Step { .. })));
        let narrow = factor("c=8..16").in_steps(8.0);
        assert!(matches!(narrow, Err(FactorError::Narrow(_))));
    }

    proptest! {
        #[test]
        fn a_level_is_coded_and_back(low in 1u32..100, span in 2u32..1000, log: bool, coded in -1.0..1.0f64) {
            let scale = if log { ":log" } else { "" };
            let factor = factor(&format!("f={low}..{}{scale}", low + span));
            prop_assert!((factor.coded(factor.exact(coded)) - coded).abs() < 1e-9);
            let level = factor.level(coded);
            prop_assert_eq!(factor.level(factor.coded(level)), level);
            let [below, above] = factor.neighbours(coded);
            prop_assert!(below <= level && level <= above && above - below <= 1.0);
            let (low, high) = factor.bounds();
            prop_assert_eq!((factor.coded(low), factor.coded(high)), (-1.0, 1.0));
            let centre = factor.level(0.0);
            prop_assert!(low < centre && centre < high);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            let _ = text.parse::<Factor>();
        }
    }
}
