//! Designs: the points to measure, for a number of factors.

/// The most factors of the two-level designs here.
pub const MAX_FACTORS: usize = 8;

/// The corners of a two-level design in standard order. With up to three factors it is complete. With more it is the
/// usual fraction of resolution IV or V, which never confuses an interaction of two factors with the effect of one.
///
/// # Panics
/// With more than [`MAX_FACTORS`] factors.
pub fn corners(factors: usize) -> Vec<Vec<f64>> {
    // Each further factor is the product of some of the first ones, given by their bits.
    let (base, generators): (usize, &[usize]) = match factors {
        0..=3 => (factors, &[]),
        4 => (3, &[0b111]),
        5 => (4, &[0b1111]),
        6 => (4, &[0b0111, 0b1110]),
        7 => (4, &[0b0111, 0b1110, 0b1101]),
        8 => (4, &[0b1110, 0b1101, 0b0111, 0b1011]),
        _ => panic!("a two-level design of {factors} factors; at most {MAX_FACTORS}"),
    };
    let sign = |odd: u32| if odd % 2 == 0 { -1.0 } else { 1.0 };
    (0..1usize << base)
        .map(|run| {
            let own = (0..base).map(|bit| sign((run >> bit) as u32));
            let made = generators.iter().map(|bits| {
                // The product of signs is positive if the number of negative signs is even.
                sign((bits & !run).count_ones() + 1)
            });
            own.chain(made).collect()
        })
        .collect()
}

/// The interactions of two factors, in groups that a two-level design cannot tell apart.
pub fn aliases(factors: usize) -> Vec<Vec<(usize, usize)>> {
    let corners = corners(factors);
    let column = |(i, j): (usize, usize)| corners.iter().map(move |x| x[i] * x[j]);
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    for i in 0..factors {
        for j in i + 1..factors {
            let same = |group: &&mut Vec<(usize, usize)>| column(group[0]).eq(column((i, j)));
            match groups.iter_mut().find(same) {
                Some(group) => group.push((i, j)),
                None => groups.push(vec![(i, j)]),
            }
        }
    }
    groups
}

/// The points at the middles of the faces: each factor of `curved` at its bounds, all others at their centres. Together
/// with the corners and the centre they are the face-centred central composite design.
pub fn stars(factors: usize, curved: &[usize]) -> Vec<Vec<f64>> {
    let star = |i: usize, value: f64| {
        let mut point = centre(factors);
        point[i] = value;
        point
    };
    curved
        .iter()
        .flat_map(|&i| [star(i, -1.0), star(i, 1.0)])
        .collect()
}

/// The centre of all ranges.
pub fn centre(factors: usize) -> Vec<f64> {
    vec![0.0; factors]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_balanced_and_orthogonal() {
        for factors in 2..=MAX_FACTORS {
            let corners = corners(factors);
            assert!(corners.len() <= 16 && corners.len() > factors);
            for i in 0..factors {
                assert_eq!(corners.iter().map(|x| x[i]).sum::<f64>(), 0.0);
                for j in 0..i {
                    let product: f64 = corners.iter().map(|x| x[i] * x[j]).sum();
                    assert_eq!(product, 0.0, "{factors} factors: {i}, {j}");
                }
            }
        }
    }

    #[test]
    fn no_interaction_looks_like_a_factor() {
        for factors in 3..=MAX_FACTORS {
            let corners = corners(factors);
            for group in aliases(factors) {
                for main in 0..factors {
                    let (i, j) = group[0];
                    let sum: f64 = corners.iter().map(|x| x[main] * x[i] * x[j]).sum();
                    assert_eq!(sum, 0.0, "{factors} factors: {main} = {i} x {j}");
                }
            }
        }
    }

    #[test]
    fn interactions_of_five_factors_are_told_apart_and_of_four_are_not() {
        assert_eq!(aliases(5).len(), 10);
        assert_eq!(
            aliases(4),
            [
                vec![(0, 1), (2, 3)],
                vec![(0, 2), (1, 3)],
                vec![(0, 3), (1, 2)]
            ]
        );
    }

    #[test]
    fn the_second_corner_has_the_first_factor_high() {
        assert_eq!(corners(2)[1], [1.0, -1.0]);
        // D = ABC: of (-, -, -) the product is negative.
        assert_eq!(corners(4)[0], [-1.0, -1.0, -1.0, -1.0]);
        assert_eq!(corners(4)[1], [1.0, -1.0, -1.0, 1.0]);
    }

    #[test]
    fn stars_leave_other_factors_at_their_centres() {
        assert_eq!(stars(3, &[1]), [[0.0, -1.0, 0.0], [0.0, 1.0, 0.0]]);
    }
}
