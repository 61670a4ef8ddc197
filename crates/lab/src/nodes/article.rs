//! The figures of the article, and their points.
//!
//! The article gives nodes, connections and appliers. It divides up to 48 connections into clients of 8 threads each.
//! Assumed here: 80 and 160 connections are 5 clients, and runs with 24 connections or more took 120 s unless the
//! article says otherwise.

use super::points::{Factor, Point};

/// Transactions per second by point: nodes, clients, threads, appliers, seconds.
pub const FIGURES: [(Point, f64); 25] = [
    (Point::new([1, 1, 8, 1, 180]), 596.3),
    (Point::new([2, 1, 8, 1, 180]), 567.8),
    (Point::new([3, 1, 8, 1, 180]), 531.9),
    (Point::new([4, 1, 8, 1, 180]), 495.2),
    (Point::new([5, 1, 8, 1, 180]), 492.2),
    (Point::new([6, 1, 8, 1, 180]), 502.9),
    (Point::new([7, 1, 8, 1, 180]), 459.5),
    (Point::new([8, 1, 8, 1, 180]), 458.6),
    (Point::new([9, 1, 8, 1, 180]), 429.2),
    (Point::new([9, 2, 8, 1, 180]), 684.5),
    (Point::new([9, 3, 8, 1, 180]), 603.8),
    (Point::new([9, 3, 8, 1, 120]), 925.2),
    (Point::new([9, 4, 8, 1, 120]), 1081.1),
    (Point::new([9, 5, 8, 1, 120]), 1196.0),
    (Point::new([9, 5, 8, 4, 120]), 1132.2),
    (Point::new([9, 5, 8, 8, 120]), 1106.0),
    (Point::new([9, 5, 16, 1, 120]), 1233.8),
    (Point::new([9, 5, 32, 1, 120]), 1095.7),
    (Point::new([8, 5, 32, 1, 120]), 1132.4),
    (Point::new([7, 5, 32, 1, 120]), 1207.6),
    (Point::new([6, 5, 16, 1, 120]), 1333.3),
    (Point::new([5, 5, 8, 1, 120]), 1278.6),
    (Point::new([4, 5, 8, 1, 120]), 1374.1),
    (Point::new([3, 5, 8, 1, 120]), 1304.3),
    (Point::new([3, 6, 8, 1, 120]), 1428.9),
];

/// The article's figure at a point, for any length of the run here. If the article has two lengths, the shorter run's
/// figure.
pub fn figure(point: Point) -> Option<f64> {
    let any_length = |point: Point| point.with(Factor::Seconds, 0);
    let mut here = FIGURES
        .iter()
        .filter(|(p, _)| any_length(*p) == any_length(point));
    here.next_back().map(|(_, tps)| *tps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_run_does_not_matter() {
        assert_eq!(figure(Point::new([1, 1, 8, 1, 30])), Some(596.3));
        assert_eq!(figure(Point::new([9, 3, 8, 1, 30])), Some(925.2));
        assert_eq!(figure(Point::new([9, 3, 8, 2, 30])), None);
    }
}
