//! Fits a polynomial by least squares, and estimates from the runs how certain it is.

use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use super::term::Term;

/// The probability with which each interval contains the true value, if the model and its assumptions hold.
const CONFIDENCE: f64 = 0.95;

/// The least ratio of the smallest to the largest eigenvalue of X'X. Below it, the terms cannot be told apart.
const SINGULAR: f64 = 1e-9;

/// The difference up to which coded values count as equal, because of rounding.
const SAME: f64 = 1e-9;

/// The reason why no polynomial can be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There are fewer runs than coefficients.
    #[error("{runs} runs cannot determine {terms} coefficients; measure more points")]
    TooFewRuns {
        /// The number of runs.
        runs: usize,
        /// The number of coefficients.
        terms: usize,
    },
    /// The design cannot tell the terms apart.
    #[error("the points measured do not tell the terms of the model apart; widen the ranges")]
    Singular,
}

/// An estimate with its interval, which contains the true value with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The interval; `None` if there are no more runs than coefficients.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// Whether `value` lies outside the interval.
    pub fn excludes(&self, value: f64) -> bool {
        self.interval
            .is_some_and(|(low, high)| value < low || value > high)
    }

    /// Converts the estimate to other units.
    pub fn times(self, factor: f64) -> Self {
        self.map(|value| value * factor)
    }

    /// Converts the estimate of a logarithm to the value itself.
    pub fn exp(self) -> Self {
        self.map(f64::exp)
    }

    /// Converts the estimate of a difference of logarithms to the change of the value, in percent.
    pub fn percent(self) -> Self {
        self.map(percent)
    }

    /// Converts the estimate by a function that rises or falls everywhere.
    fn map(self, convert: impl Fn(f64) -> f64) -> Self {
        let ends = |(low, high): (f64, f64)| {
            let (a, b) = (convert(low), convert(high));
            (a.min(b), a.max(b))
        };
        Self {
            value: convert(self.value),
            interval: self.interval.map(ends),
        }
    }
}

/// The change of a value in percent, from the difference of its logarithms.
pub fn percent(difference: f64) -> f64 {
    100.0 * difference.exp_m1()
}

/// The test whether the surface misses the runs by more than runs at the same point differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LackOfFit {
    /// The mean square of the misses divided by that of the pure error.
    pub f: f64,
    /// The probability of a ratio at least as large if the model is right.
    pub p: f64,
    /// Degrees of freedom of the misses: distinct points beyond the coefficients.
    pub lack_degrees: usize,
    /// Degrees of freedom of the pure error: runs beyond the distinct points.
    pub error_degrees: usize,
    /// The mean square of runs at the same point around their mean.
    pub pure_error: f64,
}

impl LackOfFit {
    /// Whether the model is refuted at the level of 5 %.
    pub fn is_significant(&self) -> bool {
        self.p < 1.0 - CONFIDENCE
    }
}

/// A polynomial that was fitted to runs.
#[derive(Debug, Clone)]
pub struct Fit {
    terms: Vec<Term>,
    points: Vec<Vec<f64>>,
    values: Vec<f64>,
    coefficients: DVector<f64>,
    /// (X'X)^-1: the coefficients' covariances in units of the error's variance.
    covariance: DMatrix<f64>,
}

impl Fit {
    /// Fits `terms` to the `values` at coded `points`.
    pub fn of(terms: Vec<Term>, points: Vec<Vec<f64>>, values: Vec<f64>) -> Result<Self, FitError> {
        let (n, p) = (values.len(), terms.len());
        if n < p {
            return Err(FitError::TooFewRuns { runs: n, terms: p });
        }
        let x = DMatrix::from_fn(n, p, |row, column| terms[column].at(&points[row]));
        let square = x.transpose() * &x;
        let eigenvalues = square.symmetric_eigenvalues();
        if eigenvalues.min() <= SINGULAR * eigenvalues.max() {
            return Err(FitError::Singular);
        }
        let covariance = square.cholesky().ok_or(FitError::Singular)?.inverse();
        let coefficients = &covariance * x.transpose() * DVector::from_column_slice(&values);
        Ok(Self {
            terms,
            points,
            values,
            coefficients,
            covariance,
        })
    }

    /// The terms.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The coefficients of the terms.
    pub fn coefficients(&self) -> &[f64] {
        self.coefficients.as_slice()
    }

    /// The runs: points and values.
    pub fn runs(&self) -> impl Iterator<Item = (&[f64], f64)> {
        let points = self.points.iter().map(Vec::as_slice);
        points.zip(self.values.iter().copied())
    }

    /// The coefficients' covariances in units of the error's variance.
    pub(super) fn covariance(&self) -> &DMatrix<f64> {
        &self.covariance
    }

    /// Runs beyond the coefficients.
    pub fn degrees(&self) -> usize {
        self.values.len() - self.terms.len()
    }

    /// The variance of a run around the surface; `None` without degrees of freedom.
    pub fn variance(&self) -> Option<f64> {
        (self.degrees() > 0).then(|| self.residual_squares() / self.degrees() as f64)
    }

    /// The share of the values' variation that the surface explains.
    pub fn r_squared(&self) -> f64 {
        let mean = self.values.iter().sum::<f64>() / self.values.len() as f64;
        let total: f64 = self.values.iter().map(|y| (y - mean).powi(2)).sum();
        1.0 - self.residual_squares() / total
    }

    /// A coefficient with its interval.
    pub fn coefficient(&self, place: usize) -> Estimate {
        let mut weights = DVector::zeros(self.terms.len());
        weights[place] = 1.0;
        self.combination(&weights, 0.0)
    }

    /// The height of the surface at a point, with the interval of the mean of many runs there.
    pub fn height(&self, point: &[f64]) -> Estimate {
        self.combination(&self.weights(point), 0.0)
    }

    /// The expected mean of `runs` further runs at a point, with its interval.
    pub fn prediction(&self, point: &[f64], runs: u32) -> Estimate {
        self.combination(&self.weights(point), 1.0 / f64::from(runs))
    }

    /// The height of the surface at `point` minus that at `other`.
    pub fn difference(&self, point: &[f64], other: &[f64]) -> Estimate {
        self.combination(&(self.weights(point) - self.weights(other)), 0.0)
    }

    /// Compares the misses with the pure error. None if no point was measured twice, or if there are no more distinct
    /// points than coefficients.
    pub fn lack_of_fit(&self) -> Option<LackOfFit> {
        let groups = self.groups();
        let lack_degrees = groups.len().checked_sub(self.terms.len())?;
        let error_degrees = self.values.len() - groups.len();
        if lack_degrees == 0 || error_degrees == 0 {
            return None;
        }
        let pure: f64 = groups
            .iter()
            .map(|group| {
                let mean = group.iter().sum::<f64>() / group.len() as f64;
                group.iter().map(|y| (y - mean).powi(2)).sum::<f64>()
            })
            .sum();
        let pure_error = pure / error_degrees as f64;
        let lack = (self.residual_squares() - pure).max(0.0) / lack_degrees as f64;
        let f = lack / pure_error;
        let law = FisherSnedecor::new(lack_degrees as f64, error_degrees as f64).ok()?;
        Some(LackOfFit {
            f,
            p: if f.is_finite() { law.sf(f) } else { 0.0 },
            lack_degrees,
            error_degrees,
            pure_error,
        })
    }

    /// The values of each distinct point.
    fn groups(&self) -> Vec<Vec<f64>> {
        let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < SAME);
        let mut groups: Vec<(&[f64], Vec<f64>)> = Vec::new();
        for (point, value) in self.runs() {
            match groups.iter_mut().find(|(known, _)| same(known, point)) {
                Some((_, group)) => group.push(value),
                None => groups.push((point, vec![value])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    fn weights(&self, point: &[f64]) -> DVector<f64> {
        DVector::from_iterator(self.terms.len(), self.terms.iter().map(|t| t.at(point)))
    }

    /// A weighted sum of the coefficients. `noise`: the further variance of the estimated value, in units of the
    /// variance of a run.
    fn combination(&self, weights: &DVector<f64>, noise: f64) -> Estimate {
        let value = weights.dot(&self.coefficients);
        let interval = self.variance().and_then(|variance| {
            let law = StudentsT::new(0.0, 1.0, self.degrees() as f64).ok()?;
            let share = weights.dot(&(&self.covariance * weights)) + noise;
            let half = law.inverse_cdf((1.0 + CONFIDENCE) / 2.0) * (variance * share).sqrt();
            Some((value - half, value + half))
        });
        Estimate { value, interval }
    }

    fn residual_squares(&self) -> f64 {
        self.runs()
            .map(|(point, y)| (y - self.weights(point).dot(&self.coefficients)).powi(2))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::term::quadratic;
    use super::super::testing::chemical;
    use super::*;

    fn close(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found}, {expected}");
    }

    #[test]
    fn coefficients_are_the_textbooks() {
        let fit = chemical();
        let expected = [79.940, 0.995, 0.515, 0.250, -1.376, -1.001];
        for (found, expected) in fit.coefficients().iter().zip(expected) {
            close(*found, expected, 0.0006);
        }
        close(fit.variance().unwrap().sqrt(), 0.2663, 0.0001);
        close(fit.r_squared(), 0.983, 0.0005);
        // Standard errors of the book, times t(0.975, 7) = 2.3646.
        let half = |place: usize| {
            let (low, high) = fit.coefficient(place).interval.unwrap();
            (high - low) / 2.0 / 2.3646
        };
        for (place, error) in [(0, 0.1191), (1, 0.09415), (3, 0.1331), (4, 0.1010)] {
            close(half(place), error, 0.0001);
        }
    }

    #[test]
    fn lack_of_fit_is_the_textbooks() {
        let lack = chemical().lack_of_fit().unwrap();
        assert_eq!((lack.lack_degrees, lack.error_degrees), (3, 4));
        close(lack.pure_error, 0.2120 / 4.0, 1e-4);
        close(lack.f, 1.79, 0.005);
        close(lack.p, 0.289, 0.001);
        assert!(!lack.is_significant());
    }

    #[test]
    fn a_plane_through_a_hill_lacks_fit() {
        let chemical = chemical();
        let (points, values) = chemical.runs().map(|(x, y)| (x.to_vec(), y)).unzip();
        let plane = Fit::of(quadratic(2, &[]), points, values).unwrap();
        let lack = plane.lack_of_fit().unwrap();
        assert!(lack.is_significant() && lack.p < 0.001, "{lack:?}");
    }

    #[test]
    fn a_line_has_the_intervals_that_one_computes_by_hand() {
        // y at x: the slope is 1, the mean 2; residuals -1/3, 2/3, -1/3 give s^2 = 2/3 with one degree.
        let points = vec![vec![-1.0], vec![0.0], vec![1.0]];
        let terms = quadratic(1, &[]);
        let fit = Fit::of(terms, points, vec![2.0 / 3.0, 8.0 / 3.0, 8.0 / 3.0]).unwrap();
        close(fit.coefficients()[1], 1.0, 1e-12);
        let t = 12.7062;
        let width = |e: Estimate| e.interval.unwrap().1 - e.value;
        let s2: f64 = 2.0 / 3.0;
        close(width(fit.height(&[0.0])), t * (s2 / 3.0).sqrt(), 1e-3);
        let of_two = t * (s2 * (1.0 / 3.0 + 0.5 + 0.5)).sqrt();
        close(width(fit.prediction(&[1.0], 2)), of_two, 1e-3);
        let difference = fit.difference(&[1.0], &[-1.0]);
        close(difference.value, 2.0, 1e-12);
        close(width(difference), t * (s2 * 2.0).sqrt(), 1e-3);
    }

    #[test]
    fn what_cannot_be_fitted_says_why() {
        let corners = vec![vec![-1.0], vec![1.0], vec![1.0], vec![-1.0]];
        let square = Fit::of(quadratic(1, &[0]), corners, vec![1.0; 4]);
        assert_eq!(square.err(), Some(FitError::Singular));
        let few = Fit::of(quadratic(1, &[]), vec![vec![1.0]], vec![1.0]);
        assert_eq!(few.err(), Some(FitError::TooFewRuns { runs: 1, terms: 2 }));
    }

    #[test]
    fn an_estimate_of_a_logarithm_becomes_a_value_or_a_change() {
        let halving = Estimate {
            value: 0.5f64.ln(),
            interval: Some((0.25f64.ln(), 2f64.ln())),
        };
        let check = |found: Estimate, [value, low, high]: [f64; 3]| {
            let interval = found.interval.unwrap();
            for (found, expected) in [(found.value, value), (interval.0, low), (interval.1, high)] {
                close(found, expected, 1e-9);
            }
        };
        check(halving.exp(), [0.5, 0.25, 2.0]);
        check(halving.percent(), [-50.0, -75.0, 100.0]);
        check(halving.times(-2.0), [4f64.ln(), 0.25f64.ln(), 16f64.ln()]);
    }

    #[test]
    fn as_many_runs_as_coefficients_leave_no_interval() {
        let fit = Fit::of(
            quadratic(1, &[]),
            vec![vec![-1.0], vec![1.0]],
            vec![1.0, 3.0],
        );
        let fit = fit.unwrap();
        assert_eq!(fit.height(&[0.0]).interval, None);
        assert_eq!(fit.lack_of_fit(), None);
    }
}
