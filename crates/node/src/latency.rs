//! Statistics of a duration: least, mean, greatest, spread, and number of samples.

use std::fmt;

/// Samples of a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    count: u64,
    least_s: f64,
    greatest_s: f64,
    mean_s: f64,
    /// Sum of the squares of the differences from the mean (Welford).
    squares: f64,
}

impl Latency {
    /// Adds a sample.
    pub fn add(&mut self, seconds: f64) {
        self.least_s = match self.count {
            0 => seconds,
            _ => self.least_s.min(seconds),
        };
        self.greatest_s = self.greatest_s.max(seconds);
        self.count += 1;
        let before = seconds - self.mean_s;
        self.mean_s += before / self.count as f64;
        self.squares += before * (seconds - self.mean_s);
    }

    fn deviation_s(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => (self.squares / count as f64).sqrt(),
        }
    }
}

/// The format of Galera's `wsrep_evs_repl_latency`: seconds, six digits.
impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = [
            self.least_s,
            self.mean_s,
            self.greatest_s,
            self.deviation_s(),
        ];
        for value in seconds {
            write!(f, "{}/", six_digits(value))?;
        }
        write!(f, "{}", self.count)
    }
}

/// Formats a number as C's `%g` does.
fn six_digits(value: f64) -> String {
    const DIGITS: i32 = 6;
    let scientific = format!("{value:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific; // not a number
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent).max(0) as usize;
        return trimmed(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_galera_does() {
        assert_eq!(Latency::default().to_string(), "0/0/0/0/0");
        let mut latency = Latency::default();
        for seconds in [0.0001, 0.0003, 0.0005] {
            latency.add(seconds);
        }
        assert_eq!(latency.to_string(), "0.0001/0.0003/0.0005/0.000163299/3");
        let mut quick = Latency::default();
        quick.add(0.000_012_345_678);
        assert_eq!(quick.to_string(), "1.23457e-05/1.23457e-05/1.23457e-05/0/1");
    }

    #[test]
    fn numbers_have_six_digits() {
        let expected = [
            (0.0, "0"),
            (1.0, "1"),
            (12.5, "12.5"),
            (123_456.7, "123457"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_1, "0.0001"),
            (0.000_099, "9.9e-05"),
        ];
        for (value, text) in expected {
            assert_eq!(six_digits(value), text);
        }
    }
}
