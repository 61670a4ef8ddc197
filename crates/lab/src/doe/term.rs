//! The terms of a polynomial of the second degree in coded factors.

/// One term. Factors are given by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// The constant term.
    Constant,
    /// A factor.
    Linear(usize),
    /// Two different factors multiplied: their interaction.
    Product(usize, usize),
    /// A factor squared: its curvature.
    Square(usize),
}

impl Term {
    /// The term's value at a point, without its coefficient.
    pub fn at(self, point: &[f64]) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Linear(i) => point[i],
            Self::Product(i, j) => point[i] * point[j],
            Self::Square(i) => point[i] * point[i],
        }
    }

    /// The term as text, with the factors' names.
    pub fn text(self, names: &[&str]) -> String {
        match self {
            Self::Constant => "constant".to_string(),
            Self::Linear(i) => names[i].to_string(),
            Self::Product(i, j) => format!("{} × {}", names[i], names[j]),
            Self::Square(i) => format!("{}²", names[i]),
        }
    }
}

/// The terms of a surface over `factors` factors that is curved in the factors of `curved`, and linear in the others.
pub fn quadratic(factors: usize, curved: &[usize]) -> Vec<Term> {
    let mut terms = vec![Term::Constant];
    terms.extend((0..factors).map(Term::Linear));
    for (n, &i) in curved.iter().enumerate() {
        terms.extend(curved[n + 1..].iter().map(|&j| Term::Product(i, j)));
    }
    terms.extend(curved.iter().map(|&i| Term::Square(i)));
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_quadratic_has_all_terms_once() {
        let terms = quadratic(3, &[0, 1, 2]);
        assert_eq!(terms.len(), 10);
        let values: Vec<f64> = terms.iter().map(|t| t.at(&[2.0, 3.0, 5.0])).collect();
        assert_eq!(
            values,
            [1.0, 2.0, 3.0, 5.0, 6.0, 10.0, 15.0, 4.0, 9.0, 25.0]
        );
        assert_eq!(quadratic(3, &[0, 2]).len(), 7);
    }
}
