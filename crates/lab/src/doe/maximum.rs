//! Finds the highest point of the fitted surface within the ranges: its levels, and how certain its place is.

use nalgebra::DVector;
use statrs::distribution::{ContinuousCDF, Normal};

use super::factor::Factor;
use super::fit::Fit;
use super::surface::Quadratic;

/// The number of surfaces that are drawn to estimate how uncertain the place of the maximum is.
const DRAWS: usize = 1000;

/// Their seed is fixed, so that the same runs give the same interval.
const SEED: u64 = 7;

/// The coded distance up to which a place counts as at the bound.
const AT_BORDER: f64 = 1e-9;

/// The place of the maximum in the range of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the lower bound: the true maximum may be beyond it.
    LowerBorder,
    /// Between the bounds.
    Inside,
    /// At the upper bound: the true maximum may be beyond it.
    UpperBorder,
}

/// The maximum of a fitted surface within the ranges.
#[derive(Debug, Clone)]
pub struct Maximum {
    /// The best levels next to the exact maximum.
    pub levels: Vec<f64>,
    /// The same in coded units.
    pub point: Vec<f64>,
    /// The place of the exact maximum in the range of each factor.
    pub places: Vec<Place>,
    /// For each factor the two levels between which the true maximum lies, with at least 95 % confidence; `None` if the
    /// fit has no more runs than coefficients.
    pub intervals: Option<Vec<(f64, f64)>>,
}

impl Maximum {
    /// The maximum of `fit` within the ranges of `factors`.
    pub fn of(fit: &Fit, factors: &[Factor]) -> Self {
        let surface = Quadratic::new(factors.len(), fit.terms(), fit.coefficients());
        let exact = surface.highest();
        let levels = runnable(&surface, &exact, factors);
        let intervals = coded_intervals(fit, factors.len()).map(|all| {
            let pairs = factors.iter().zip(all);
            let bounds = pairs.map(|(factor, (low, high))| {
                // Rounds outwards, so that an optimum between two levels includes both.
                (factor.neighbours(low)[0], factor.neighbours(high)[1])
            });
            bounds.collect()
        });
        Self {
            point: coded(factors, &levels),
            levels,
            places: exact.into_iter().map(place).collect(),
            intervals,
        }
    }
}

fn place(coded: f64) -> Place {
    if coded <= AT_BORDER - 1.0 {
        Place::LowerBorder
    } else if coded >= 1.0 - AT_BORDER {
        Place::UpperBorder
    } else {
        Place::Inside
    }
}

/// Converts levels to coded units.
fn coded(factors: &[Factor], levels: &[f64]) -> Vec<f64> {
    let pairs = factors.iter().zip(levels);
    pairs.map(|(factor, level)| factor.coded(*level)).collect()
}

/// The combination of levels next to the highest point at which the surface is highest.
fn runnable(surface: &Quadratic, highest: &[f64], factors: &[Factor]) -> Vec<f64> {
    let pairs = factors.iter().zip(highest);
    let neighbours: Vec<[f64; 2]> = pairs.map(|(f, x)| f.neighbours(*x)).collect();
    let choices = (0..1usize << factors.len()).map(|bits| -> Vec<f64> {
        let pick = neighbours.iter().enumerate();
        pick.map(|(i, pair)| pair[bits >> i & 1]).collect()
    });
    let height = |levels: &Vec<f64>| surface.at(&coded(factors, levels));
    choices
        .max_by(|a, b| height(a).total_cmp(&height(b)))
        .unwrap_or_default()
}

/// For each factor the interval that contains the place of the true maximum with 95 % confidence, in coded units.
/// Random surfaces are drawn within the uncertainty of the fit, and each has its highest point. None if the fit has no
/// more runs than coefficients.
fn coded_intervals(fit: &Fit, factors: usize) -> Option<Vec<(f64, f64)>> {
    let deviation = fit.variance()?.sqrt();
    let root = fit.covariance().clone().cholesky()?.l();
    let centre = DVector::from_column_slice(fit.coefficients());
    let normal = Normal::standard();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut draw = || normal.inverse_cdf(random.f64().clamp(1e-12, 1.0 - 1e-12));
    let degrees = fit.degrees();
    let mut found: Vec<Vec<f64>> = vec![Vec::with_capacity(DRAWS); factors];
    for _ in 0..DRAWS {
        let step = DVector::from_fn(centre.len(), |_, _| draw());
        let squares: f64 = (0..degrees).map(|_| draw().powi(2)).sum();
        // Accounts for the variance, which is only an estimate.
        let scale = deviation * (degrees as f64 / squares).sqrt();
        let coefficients = &centre + scale * (&root * step);
        let drawn = Quadratic::new(factors, fit.terms(), coefficients.as_slice());
        for (all, x) in found.iter_mut().zip(drawn.highest()) {
            all.push(x);
        }
    }
    let interval = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize];
        (at(0.025), at(0.975))
    };
    Some(found.into_iter().map(interval).collect())
}

#[cfg(test)]
mod tests {
    use super::super::term::quadratic;
    use super::super::testing::chemical;
    use super::*;

    fn factors(texts: &[&str]) -> Vec<Factor> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_textbooks_optimum_is_inside_and_its_interval_around_it() {
        // Time 85 +- 5 minutes, temperature 175 +- 5 degrees: the book's optimum is at 87 minutes and 176.5 degrees.
        let factors = factors(&["time=80.0..90.0", "temperature=170.0..180.0"]);
        let best = Maximum::of(&chemical(), &factors);
        assert_eq!(best.places, [Place::Inside, Place::Inside]);
        assert!((best.levels[0] - 87.0).abs() < 0.11, "{:?}", best.levels);
        assert!((best.levels[1] - 176.5).abs() < 0.51, "{:?}", best.levels);
        let intervals = best.intervals.unwrap();
        assert!(
            intervals[0].0 > 85.5 && intervals[0].1 < 88.5,
            "{intervals:?}"
        );
    }

    #[test]
    fn a_slope_ends_at_a_border_that_is_named() {
        let factors = factors(&["nodes=1..9", "connections=8..160:log"]);
        let points: Vec<Vec<f64>> = [-1.0, 0.0, 1.0]
            .iter()
            .flat_map(|x| [-1.0, 0.0, 1.0].map(|y| vec![*x, y]))
            .collect();
        let height = |x: &Vec<f64>| 500.0 - 50.0 * x[0] + 40.0 * x[1] - 100.0 * x[1] * x[1];
        let values = points.iter().map(height).collect();
        let fit = Fit::of(quadratic(2, &[0, 1]), points, values).unwrap();
        let best = Maximum::of(&fit, &factors);
        assert_eq!(best.places, [Place::LowerBorder, Place::Inside]);
        // 0.2 on the way from 36 to 160.
        assert_eq!(best.levels, [1.0, 48.0]);
    }

    #[test]
    fn as_many_runs_as_coefficients_leave_the_place_uncertain() {
        let points = vec![vec![-1.0], vec![0.0], vec![1.0]];
        let fit = Fit::of(quadratic(1, &[0]), points, vec![1.0, 2.0, 1.0]).unwrap();
        let best = Maximum::of(&fit, &factors(&["n=1..9"]));
        assert_eq!((best.levels, best.intervals), (vec![5.0], None));
    }
}
