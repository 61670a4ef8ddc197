//! Screening: finds the factors that matter, from the corners and the centre.

use super::designs::aliases;
use super::fit::{Estimate, Fit, FitError};
use super::term::Term;

/// The most factors in which the surface is curved. Any three factors have all their corners in the designs of
/// [`corners`](super::corners), so their interactions can be told apart.
pub const MAX_CURVED: usize = 3;

/// The effect of a factor's change from its lower to its upper bound, or the effect of an interaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The term. For an interaction: all terms that the design cannot tell apart.
    pub terms: Vec<Term>,
    /// The change of the response.
    pub change: Estimate,
}

impl Effect {
    /// Whether 0 lies outside the interval.
    pub fn is_significant(&self) -> bool {
        self.change.excludes(0.0)
    }

    fn concerns(&self, factor: usize) -> bool {
        self.terms.iter().any(|term| match *term {
            Term::Linear(i) => i == factor,
            Term::Product(i, j) => i == factor || j == factor,
            Term::Constant | Term::Square(_) => false,
        })
    }
}

/// The results of the corners and the centre.
#[derive(Debug, Clone)]
pub struct Screening {
    factors: usize,
    /// The effects of the factors in their order, then those of the interactions.
    effects: Vec<Effect>,
    /// The mean of the corners minus the centre: the curvatures of all factors together.
    curvature: Estimate,
    fit: Fit,
}

impl Screening {
    /// Evaluates the `values` at coded `points`: the corners, and the centre in runnable levels.
    pub fn of(factors: usize, points: Vec<Vec<f64>>, values: Vec<f64>) -> Result<Self, FitError> {
        let mut terms = vec![Term::Constant];
        terms.extend((0..factors).map(Term::Linear));
        let interactions = aliases(factors);
        let first = interactions.iter().map(|group| group[0]);
        terms.extend(first.map(|(i, j)| Term::Product(i, j)));
        // At all corners every square is 1, and near the centre about 0: so one square stands for all.
        terms.push(Term::Square(0));
        let fit = Fit::of(terms, points, values)?;
        let change = |place: usize| fit.coefficient(place).times(2.0);
        let mut effects: Vec<Effect> = (0..factors)
            .map(|i| Effect {
                terms: vec![Term::Linear(i)],
                change: change(i + 1),
            })
            .collect();
        for (n, group) in interactions.iter().enumerate() {
            effects.push(Effect {
                terms: group.iter().map(|&(i, j)| Term::Product(i, j)).collect(),
                change: change(1 + factors + n),
            });
        }
        let curvature = fit.coefficient(fit.terms().len() - 1);
        Ok(Self {
            factors,
            effects,
            curvature,
            fit,
        })
    }

    /// The effects of the factors in their order, then those of the interactions.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The mean of the corners minus the centre.
    pub fn curvature(&self) -> Estimate {
        self.curvature
    }

    /// The fit to the runs.
    pub fn fit(&self) -> &Fit {
        &self.fit
    }

    /// The factors, the strongest first. The strength is the larger of two: the factor's own effect, and half of its
    /// largest interaction that the design can tell from all others.
    pub fn ranking(&self) -> Vec<usize> {
        let strength = |factor: usize| {
            let own = self.effects[factor].change.value.abs();
            let shared = self.effects[self.factors..]
                .iter()
                .filter(|effect| effect.terms.len() == 1 && effect.concerns(factor))
                .map(|effect| effect.change.value.abs() / 2.0);
            shared.fold(own, f64::max)
        };
        let mut order: Vec<usize> = (0..self.factors).collect();
        order.sort_by(|&a, &b| strength(b).total_cmp(&strength(a)));
        order
    }

    /// Whether the runs do not tell the interaction of these two factors from another one.
    pub fn confounds(&self, first: usize, second: usize) -> bool {
        let is_it = |term: &Term| {
            [Term::Product(first, second), Term::Product(second, first)].contains(term)
        };
        let mut effects = self.effects.iter();
        effects.any(|effect| effect.terms.len() > 1 && effect.terms.iter().any(is_it))
    }

    /// The factors in which the surface is to be curved, in their order: those with a significant effect or
    /// interaction. If the centre shows a curvature, all are candidates, because two levels do not show which factor
    /// causes it. At least the two strongest, at most three.
    pub fn curved(&self) -> Vec<usize> {
        let bent = self.curvature.excludes(0.0);
        let significant = |factor: usize| {
            let mut own = self.effects.iter().filter(|e| e.concerns(factor));
            own.any(Effect::is_significant)
        };
        let ranking = self.ranking();
        let mut chosen: Vec<usize> = ranking
            .iter()
            .enumerate()
            .filter(|&(rank, &factor)| rank < 2 || bent || significant(factor))
            .map(|(_, &factor)| factor)
            .take(MAX_CURVED)
            .collect();
        chosen.sort_unstable();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::super::designs::{centre, corners};
    use super::*;

    /// Runs at the corners and three at the centre, the latter with some noise.
    fn screened(factors: usize, height: impl Fn(&[f64]) -> f64) -> Screening {
        let mut points = corners(factors);
        let mut values: Vec<f64> = points.iter().map(|x| height(x)).collect();
        for noise in [-0.1, 0.0, 0.1] {
            points.push(centre(factors));
            values.push(height(&centre(factors)) + noise);
        }
        Screening::of(factors, points, values).unwrap()
    }

    #[test]
    fn effects_are_changes_from_low_to_high() {
        // Montgomery's filtration rate, 16 runs: A 21.625, AC -18.125, AD 16.625 among others. Here its three factors A, C, D.
        let rates = [
            ([-1.0, -1.0, -1.0], (45.0 + 48.0) / 2.0),
            ([1.0, -1.0, -1.0], (71.0 + 65.0) / 2.0),
            ([-1.0, 1.0, -1.0], (68.0 + 80.0) / 2.0),
            ([1.0, 1.0, -1.0], (60.0 + 65.0) / 2.0),
            ([-1.0, -1.0, 1.0], (43.0 + 45.0) / 2.0),
            ([1.0, -1.0, 1.0], (100.0 + 104.0) / 2.0),
            ([-1.0, 1.0, 1.0], (75.0 + 70.0) / 2.0),
            ([1.0, 1.0, 1.0], (86.0 + 96.0) / 2.0),
        ];
        let screening = screened(3, |x| {
            let found = rates.iter().find(|(point, _)| point == x);
            found.map_or(70.06, |(_, rate)| *rate)
        });
        let changes: Vec<f64> = screening.effects().iter().map(|e| e.change.value).collect();
        let expected = [21.625, 9.875, 14.625, -18.125, 16.625, -1.125];
        for (found, expected) in changes.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{changes:?}");
        }
        assert_eq!(screening.ranking(), [0, 2, 1]);
    }

    #[test]
    fn half_of_the_corners_confounds_interactions() {
        let whole = screened(3, |x| x[0]);
        assert!(!whole.confounds(0, 2) && !whole.confounds(2, 1));
        let half = screened(4, |x| x[0]);
        assert!(half.confounds(0, 2) && half.confounds(3, 1));
    }

    #[test]
    fn inert_factors_are_left_flat() {
        let screening = screened(4, |x| 10.0 + 3.0 * x[1] - 2.0 * x[3]);
        assert_eq!(screening.ranking()[..2], [1, 3]);
        assert!(!screening.curvature().excludes(0.0));
        assert_eq!(screening.curved(), [1, 3]);
    }

    #[test]
    fn a_bent_centre_keeps_three() {
        let screening = screened(4, |x| 10.0 + 3.0 * x[1] - 2.0 * x[3] - 5.0 * x[2] * x[2]);
        assert!(screening.curvature().excludes(0.0));
        assert!((screening.curvature().value + 5.0).abs() < 0.2);
        assert_eq!(screening.curved().len(), 3);
    }

    #[test]
    fn an_interaction_alone_keeps_both_of_its_factors() {
        let screening = screened(3, |x| 10.0 + 0.01 * x[0] + 3.0 * x[1] * x[2]);
        assert_eq!(screening.curved(), [1, 2]);
    }
}
