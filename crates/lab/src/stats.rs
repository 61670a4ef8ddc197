//! The statistics for the reports.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The value that the share `share` (0 to 1) of `sorted` does not exceed; None without values.
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The interval that contains the mean of the population with 95 % confidence, by Student's t; None for fewer than two
/// values.
pub fn mean_interval(values: &[f64]) -> Option<(f64, f64)> {
    let deviation = standard_deviation(values)?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
    let half = t * deviation / n.sqrt();
    Some((mean - half, mean + half))
}

/// The standard deviation of a sample; None for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}

/// The geometric mean of positive values; `None` without values or if one is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let sum: f64 = values.iter().map(|v| v.ln()).sum();
    Some((sum / values.len() as f64).exp())
}

/// The geometric mean with its 95 % interval, that of the mean of the logarithms; the interval is `None` for a single
/// value.
pub fn geometric_mean_interval(values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    let mean = geometric_mean(values)?;
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let interval = mean_interval(&logs).map(|(low, high)| (low.exp(), high.exp()));
    Some((mean, interval))
}

/// The least and the greatest value; `None` for fewer than two values.
pub fn range(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().reduce(f64::min)?;
    let greatest = values.iter().copied().reduce(f64::max)?;
    (values.len() > 1).then_some((least, greatest))
}

/// The slope of the straight line nearest to the points (x, y), by least squares; None unless two x differ.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let square: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let product: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    (square > 0.0).then(|| product / square)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn geometric_mean_of_a_doubling_and_a_halving_is_one() {
        assert!((geometric_mean(&[2.0, 0.5]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.99), Some(99.0));
        assert_eq!(percentile(&hundred, 0.5), Some(50.0));
        assert_eq!(percentile(&[5.0], 0.99), Some(5.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn the_interval_is_students() {
        // t(0.975, 2) = 4.303; standard error 1 / sqrt(3).
        let (low, high) = mean_interval(&[1.0, 2.0, 3.0]).unwrap();
        assert!((high - 2.0 - 4.3027 / 3f64.sqrt()).abs() < 1e-3, "{high}");
        assert!((low + high - 4.0).abs() < 1e-9);
        assert_eq!(mean_interval(&[1.0]), None);
    }

    #[test]
    fn slope_of_a_line_is_found() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some(2.0));
        assert_eq!(slope(&[(1.0, 1.0)]), None);
        assert_eq!(slope(&[]), None);
    }
}
