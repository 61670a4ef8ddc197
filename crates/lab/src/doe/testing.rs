//! Data with known results, for tests.

use super::fit::Fit;
use super::term::quadratic;

/// The yield of a chemical process by time and temperature, with the fitted quadratic: Montgomery, "Design and Analysis of
/// Experiments", the example of the central composite design (tables 11.6 and 11.7 of the 5th edition).
pub fn chemical() -> Fit {
    // The book rounds the distance so.
    let far = 1.414;
    let runs = [
        (-1.0, -1.0, 76.5),
        (-1.0, 1.0, 77.0),
        (1.0, -1.0, 78.0),
        (1.0, 1.0, 79.5),
        (0.0, 0.0, 79.9),
        (0.0, 0.0, 80.3),
        (0.0, 0.0, 80.0),
        (0.0, 0.0, 79.7),
        (0.0, 0.0, 79.8),
        (far, 0.0, 78.4),
        (-far, 0.0, 75.6),
        (0.0, far, 78.5),
        (0.0, -far, 77.0),
    ];
    let points = runs.iter().map(|&(time, heat, _)| vec![time, heat]);
    let values = runs.iter().map(|&(_, _, value)| value);
    Fit::of(quadratic(2, &[0, 1]), points.collect(), values.collect())
        .expect("13 runs determine 6 coefficients")
}
