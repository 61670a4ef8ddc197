//! A quadratic: its maximum within the ranges, and its stationary point.

use nalgebra::{DMatrix, DVector};

use super::term::Term;

/// A polynomial of the second degree: constant + linear' x + x' square x.
#[derive(Debug, Clone, PartialEq)]
pub struct Quadratic {
    constant: f64,
    linear: DVector<f64>,
    square: DMatrix<f64>,
    /// The factors in which the quadratic is curved. In the others it is linear.
    curved: Vec<usize>,
}

/// The kind of a stationary point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StationaryKind {
    /// The highest point.
    Maximum,
    /// The lowest point.
    Minimum,
    /// A point that is the highest in some directions and the lowest in others.
    Saddle,
}

/// The point where a quadratic has no slope. It may lie outside the ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct Stationary {
    /// Its place in the curved factors, in coded units.
    pub point: Vec<f64>,
    /// The curvatures along the main axes, the steepest fall first.
    pub curvatures: Vec<f64>,
    /// The kind of the point.
    pub kind: StationaryKind,
}

impl Quadratic {
    /// The polynomial of `terms` with `coefficients`, in `factors` factors.
    pub fn new(factors: usize, terms: &[Term], coefficients: &[f64]) -> Self {
        let mut quadratic = Self {
            constant: 0.0,
            linear: DVector::zeros(factors),
            square: DMatrix::zeros(factors, factors),
            curved: Vec::new(),
        };
        let mut curved = vec![false; factors];
        for (term, &coefficient) in terms.iter().zip(coefficients) {
            match *term {
                Term::Constant => quadratic.constant += coefficient,
                Term::Linear(i) => quadratic.linear[i] += coefficient,
                Term::Product(i, j) => {
                    quadratic.square[(i, j)] += coefficient / 2.0;
                    quadratic.square[(j, i)] += coefficient / 2.0;
                    (curved[i], curved[j]) = (true, true);
                }
                Term::Square(i) => {
                    quadratic.square[(i, i)] += coefficient;
                    curved[i] = true;
                }
            }
        }
        quadratic.curved = (0..factors).filter(|&i| curved[i]).collect();
        quadratic
    }

    /// The height at a point.
    pub fn at(&self, point: &[f64]) -> f64 {
        let x = DVector::from_column_slice(point);
        self.constant + self.linear.dot(&x) + x.dot(&(&self.square * &x))
    }

    /// The exact highest point within -1 to 1 of all factors. On its face the quadratic has no slope along that face,
    /// so each face is tried.
    pub fn highest(&self) -> Vec<f64> {
        // In a factor without curvature the highest point is at a bound; with slope 0 any place will do.
        let flat = self.linear.iter().map(|b| match *b {
            0.0 => 0.0,
            b => b.signum(),
        });
        let mut best: Vec<f64> = flat.collect();
        let mut best_height = f64::NEG_INFINITY;
        let faces = 3usize.pow(self.curved.len() as u32);
        let mut point = best.clone();
        for face in 0..faces {
            let mut rest = face;
            let mut free = Vec::new();
            for &i in &self.curved {
                match rest % 3 {
                    0 => point[i] = -1.0,
                    1 => point[i] = 1.0,
                    _ => free.push(i),
                }
                rest /= 3;
            }
            if !self.level_along(&free, &mut point) {
                continue;
            }
            let height = self.at(&point);
            if height > best_height {
                best_height = height;
                best.clone_from(&point);
            }
        }
        best
    }

    /// Moves `point` in the factors of `free` to the place where the quadratic has no slope along them. Returns false
    /// if that place is outside the ranges, or does not exist.
    fn level_along(&self, free: &[usize], point: &mut [f64]) -> bool {
        if free.is_empty() {
            return true;
        }
        for &i in free {
            point[i] = 0.0;
        }
        let held = DVector::from_column_slice(point);
        let slopes = &self.linear + 2.0 * (&self.square * held);
        let side = DVector::from_iterator(free.len(), free.iter().map(|&i| -slopes[i]));
        let Some(solved) = (2.0 * self.part(free)).lu().solve(&side) else {
            return false;
        };
        for (&i, x) in free.iter().zip(solved.iter()) {
            point[i] = *x;
        }
        solved.iter().all(|x| x.abs() <= 1.0)
    }

    /// The stationary point in the curved factors; None if there is no single one.
    pub fn stationary(&self) -> Option<Stationary> {
        let part = self.part(&self.curved);
        let side = self.curved.iter().map(|&i| -self.linear[i] / 2.0);
        let side = DVector::from_iterator(self.curved.len(), side);
        let point = part.clone().lu().solve(&side)?;
        let mut curvatures: Vec<f64> = part.symmetric_eigenvalues().iter().copied().collect();
        curvatures.sort_by(f64::total_cmp);
        let kind = match (curvatures.first()?, curvatures.last()?) {
            (_, last) if *last < 0.0 => StationaryKind::Maximum,
            (first, _) if *first > 0.0 => StationaryKind::Minimum,
            _ => StationaryKind::Saddle,
        };
        Some(Stationary {
            point: point.iter().copied().collect(),
            curvatures,
            kind,
        })
    }

    /// The factors in which the quadratic is curved.
    pub fn curved(&self) -> &[usize] {
        &self.curved
    }

    fn part(&self, factors: &[usize]) -> DMatrix<f64> {
        DMatrix::from_fn(factors.len(), factors.len(), |i, j| {
            self.square[(factors[i], factors[j])]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::term::quadratic;
    use super::super::testing::chemical;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_stationary_point_is_the_textbooks() {
        let fit = chemical();
        let surface = Quadratic::new(2, fit.terms(), fit.coefficients());
        let level = surface.stationary().unwrap();
        assert_eq!(level.kind, StationaryKind::Maximum);
        let expected = [0.389, 0.306, -1.4143, -0.9634, 80.21];
        let found = [&level.point[..], &level.curvatures].concat();
        let found = [&found[..], &[surface.at(&level.point)]].concat();
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 0.003, "{found}, {expected}");
        }
        for (found, expected) in surface.highest().iter().zip(&level.point) {
            assert!((found - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn a_saddle_is_highest_at_the_border() {
        // x1^2 - x2^2 + x1
        let terms = quadratic(2, &[0, 1]);
        let saddle = Quadratic::new(2, &terms, &[0.0, 1.0, 0.0, 0.0, 1.0, -1.0]);
        assert_eq!(saddle.stationary().unwrap().kind, StationaryKind::Saddle);
        assert_eq!(saddle.highest(), [1.0, 0.0]);
    }

    #[test]
    fn a_ridge_has_a_highest_point_and_no_stationary_one() {
        // 3 - (x1 + x2)^2: as high along a line.
        let terms = quadratic(2, &[0, 1]);
        let ridge = Quadratic::new(2, &terms, &[3.0, 0.0, 0.0, -2.0, -1.0, -1.0]);
        assert_eq!(ridge.stationary(), None);
        assert!((ridge.at(&ridge.highest()) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_plane_is_highest_at_a_corner() {
        let plane = Quadratic::new(3, &quadratic(3, &[]), &[5.0, 1.0, -2.0, 0.0]);
        assert_eq!(plane.highest(), [1.0, -1.0, 0.0]);
        assert!(plane.curved().is_empty());
    }

    proptest! {
        #[test]
        fn nothing_within_the_ranges_is_higher(
            coefficients in prop::collection::vec(-3.0..3.0f64, 11),
            others in prop::collection::vec(prop::collection::vec(-1.0..=1.0f64, 4), 50),
        ) {
            let surface = Quadratic::new(4, &quadratic(4, &[0, 2, 3]), &coefficients);
            let best = surface.highest();
            prop_assert!(best.iter().all(|x| x.abs() <= 1.0));
            for other in others {
                prop_assert!(surface.at(&other) <= surface.at(&best) + 1e-9);
            }
        }
    }
}
