//! What sysbench 1.0 prints: a line per interval, and a summary at the end.

/// One line of `--report-interval`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalReport {
    /// Seconds since its start.
    pub second: f64,
    /// Committed transactions per second.
    pub tps: f64,
    /// 95th percentile of the transactions' latency.
    pub p95_ms: f64,
    /// Ignored errors per second: with the errors that we let it ignore, conflicts.
    pub conflicts_per_s: f64,
}

/// The summary at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Committed transactions.
    pub transactions: u64,
    /// Ignored errors: conflicts.
    pub conflicts: u64,
    /// Length of the run.
    pub seconds: f64,
    /// Mean latency of the transactions.
    pub mean_ms: f64,
    /// 95th percentile of the transactions' latency.
    pub p95_ms: f64,
}

/// Reads a line such as
/// `[ 3s ] thds: 6 tps: 392.00 qps: 7840.0 (r/w/o: 5488.0/1568.0/784.0) lat (ms,95%): 23.10 err/s: 1.00 reconn/s: 0.00`;
/// `None` for any other line.
pub fn parse_interval(line: &str) -> Option<IntervalReport> {
    let (time, rest) = line.trim().strip_prefix('[')?.split_once("s ]")?;
    Some(IntervalReport {
        second: time.trim().parse().ok()?,
        tps: number_after(rest, "tps:")?,
        p95_ms: number_after(rest, "lat (ms,95%):")?,
        conflicts_per_s: number_after(rest, "err/s:")?,
    })
}

/// Reads the summary; `None` if it is not complete.
pub fn parse_summary(output: &str) -> Option<Summary> {
    let value = |label: &str| {
        output
            .lines()
            .find_map(|line| number_after(line.trim_start(), label))
    };
    // "total time:" comes once in 1.0; "time elapsed:" in 1.1.
    let seconds = value("total time:").or_else(|| value("time elapsed:"))?;
    Some(Summary {
        transactions: value("transactions:")? as u64,
        conflicts: value("ignored errors:")? as u64,
        seconds,
        mean_ms: value("avg:")?,
        p95_ms: value("95th percentile:")?,
    })
}

/// The number that follows `label` in `text`, whatever comes after it.
fn number_after(text: &str, label: &str) -> Option<f64> {
    let rest = text[text.find(label)? + label.len()..].trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_line_is_read() {
        let line = "[ 3s ] thds: 6 tps: 392.00 qps: 7840.01 (r/w/o: 5488.01/1568.00/784.00) \
                    lat (ms,95%): 23.10 err/s: 17.00 reconn/s: 0.00";
        let expected = IntervalReport {
            second: 3.0,
            tps: 392.0,
            p95_ms: 23.1,
            conflicts_per_s: 17.0,
        };
        assert_eq!(parse_interval(line), Some(expected));
    }

    #[test]
    fn other_lines_are_none() {
        for line in ["", "Threads started!", "[ 3s ] thds: 6", "[ xs ] tps: 1"] {
            assert_eq!(parse_interval(line), None, "{line}");
        }
    }

    #[test]
    fn a_summary_is_read() {
        let output = "SQL statistics:
    queries performed:
        read:                            61600
        write:                           17514
        other:                           8757
        total:                           87871
    transactions:                        4357   (871.00 per sec.)
    queries:                             87871  (17566.38 per sec.)
    ignored errors:                      43     (8.60 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          5.0017s
    total number of events:              4357

Latency (ms):
         min:                                    2.60
         avg:                                    6.88
         max:                                   41.90
         95th percentile:                       12.98
         sum:                                29983.30
";
        let expected = Summary {
            transactions: 4357,
            conflicts: 43,
            seconds: 5.0017,
            mean_ms: 6.88,
            p95_ms: 12.98,
        };
        assert_eq!(parse_summary(output), Some(expected));
        assert_eq!(parse_summary(&output[..output.len() / 2]), None);
    }

    proptest! {
        #[test]
        fn no_output_makes_the_parsers_panic(text in ".{0,200}") {
            let _ = parse_interval(&text);
            let _ = parse_interval(&format!("[ 1s ] tps: {text}"));
            let _ = parse_summary(&text);
        }
    }
}
