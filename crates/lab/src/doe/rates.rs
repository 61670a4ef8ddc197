//! Tests how often the intervals contain the true value: synthetic surfaces with noise, measured by the design of the
//! lab.

use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal};

use super::*;

/// The trials per surface. Of 300 intervals of 95 %, between 89 % and 99.5 % contain the true value, except once in
/// 100,000 times.
const TRIALS: u32 = 300;

/// An interval with a lower rate than this is not one of 95 %.
const LEAST: f64 = 0.89;

/// A surface with a known maximum.
struct Truth {
    terms: Vec<Term>,
    coefficients: Vec<f64>,
}

impl Truth {
    /// A hill with its top at `top`; `curvatures` (positive) give its slopes, and `twist` (-1 to 1) turns it.
    fn hill(top: [f64; 2], curvatures: [f64; 2], twist: f64) -> Self {
        let [a, b] = curvatures;
        let c = twist * 1.6 * (a * b).sqrt();
        // This is -a (x - p)^2 - b (y - q)^2 - c (x - p) (y - q), expanded.
        let [p, q] = top;
        Self {
            terms: quadratic(2, &[0, 1]),
            coefficients: vec![
                100.0 - a * p * p - b * q * q - c * p * q,
                2.0 * a * p + c * q,
                2.0 * b * q + c * p,
                -c,
                -a,
                -b,
            ],
        }
    }

    fn at(&self, point: &[f64]) -> f64 {
        let pairs = self.terms.iter().zip(&self.coefficients);
        pairs.map(|(term, b)| term.at(point) * b).sum()
    }

    fn highest(&self) -> Vec<f64> {
        Quadratic::new(2, &self.terms, &self.coefficients).highest()
    }
}

/// The face-centred design with two runs at each corner and star, and five at the centre.
fn design() -> Vec<Vec<f64>> {
    let mut points = [corners(2), stars(2, &[0, 1])].concat();
    points.extend(points.clone());
    points.extend(vec![centre(2); 5]);
    points
}

fn measured(truth: &Truth, noise: f64, random: &mut fastrand::Rng) -> Fit {
    let points = design();
    let values = points.iter().map(|x| truth.at(x) + noise * normal(random));
    let values = values.collect();
    Fit::of(quadratic(2, &[0, 1]), points, values).unwrap()
}

fn normal(random: &mut fastrand::Rng) -> f64 {
    Normal::standard().inverse_cdf(random.f64().clamp(1e-12, 1.0 - 1e-12))
}

fn factors() -> Vec<Factor> {
    let texts = ["x=-1.0..1.0", "y=-1.0..1.0"];
    texts.map(|text| text.parse().unwrap()).into()
}

/// The shares of the trials in which each value of `held` is true.
fn rates<const N: usize>(
    truth: &Truth,
    noise: f64,
    held: impl Fn(&Fit, &mut fastrand::Rng) -> [bool; N],
) -> [f64; N] {
    let mut random = fastrand::Rng::with_seed(1);
    let mut times = [0; N];
    for _ in 0..TRIALS {
        let fit = measured(truth, noise, &mut random);
        for (n, held) in times.iter_mut().zip(held(&fit, &mut random)) {
            *n += u32::from(held);
        }
    }
    times.map(|n| f64::from(n) / f64::from(TRIALS))
}

fn holds(interval: Option<(f64, f64)>, value: f64) -> bool {
    // Rounding may move a bound of the range a little.
    interval.is_some_and(|(low, high)| low - 1e-9 <= value && value <= high + 1e-9)
}

proptest! {
    // Each case is hundreds of experiments, so a run has few of them.
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_optimum_is_within_its_interval_at_the_stated_rate(
        top in prop::array::uniform2(-0.8..0.8f64),
        curvatures in prop::array::uniform2(4.0..12.0f64),
        twist in -1.0..1.0f64,
    ) {
        let truth = Truth::hill(top, curvatures, twist);
        let highest = truth.highest();
        let held = rates(&truth, 1.0, |fit, _| {
            let intervals = Maximum::of(fit, &factors()).intervals.unwrap();
            [0, 1].map(|factor| holds(Some(intervals[factor]), highest[factor]))
        });
        prop_assert!(held.iter().all(|rate| *rate >= LEAST), "{held:?}");
    }

    #[test]
    fn heights_and_confirmation_runs_are_within_their_intervals_at_the_stated_rate(
        top in prop::array::uniform2(-2.0..2.0f64),
        curvatures in prop::array::uniform2(1.0..12.0f64),
        twist in -1.0..1.0f64,
    ) {
        let truth = Truth::hill(top, curvatures, twist);
        let at = truth.highest();
        let held = rates(&truth, 2.0, |fit, random| {
            let runs = (0..3).map(|_| truth.at(&at) + 2.0 * normal(random));
            let mean = runs.sum::<f64>() / 3.0;
            [
                holds(fit.height(&at).interval, truth.at(&at)),
                holds(fit.prediction(&at, 3).interval, mean),
                !fit.lack_of_fit().unwrap().is_significant(),
            ]
        });
        prop_assert!(held.iter().all(|rate| (LEAST..0.995).contains(rate)), "{held:?}");
    }

    #[test]
    fn without_noise_the_truth_comes_out(
        top in prop::array::uniform2(-2.0..2.0f64),
        curvatures in prop::array::uniform2(1.0..12.0f64),
        twist in -1.0..1.0f64,
    ) {
        let truth = Truth::hill(top, curvatures, twist);
        let fit = measured(&truth, 0.0, &mut fastrand::Rng::with_seed(1));
        for (found, expected) in fit.coefficients().iter().zip(&truth.coefficients) {
            prop_assert!((found - expected).abs() < 1e-8);
        }
        let surface = Quadratic::new(2, fit.terms(), fit.coefficients());
        for (found, expected) in surface.highest().iter().zip(truth.highest()) {
            prop_assert!((found - expected).abs() < 1e-6);
        }
    }
}

#[test]
fn a_surface_of_another_shape_is_found_out() {
    // A cliff is no quadratic.
    let mut random = fastrand::Rng::with_seed(3);
    let points = design();
    let cliff = |x: &Vec<f64>| if x[0] + x[1] > 0.5 { 100.0 } else { 80.0 };
    let values = points.iter().map(|x| cliff(x) + normal(&mut random));
    let values = values.collect();
    let fit = Fit::of(quadratic(2, &[0, 1]), points, values).unwrap();
    assert!(fit.lack_of_fit().unwrap().is_significant());
}
