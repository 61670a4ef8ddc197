//! Parses the output of sysbench 1.0: a line per interval, and at the end a histogram of latencies and a summary.

/// One line of `--report-interval`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalReport {
    /// Seconds since the start of sysbench.
    pub second: f64,
    /// Committed transactions per second.
    pub tps: f64,
    /// 95th percentile of the transactions' latency.
    pub p95_ms: f64,
    /// Ignored errors per second. We let sysbench ignore only conflicts.
    pub conflicts_per_s: f64,
}

/// The summary at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Committed transactions.
    pub transactions: u64,
    /// The ignored errors, which are conflicts.
    pub conflicts: u64,
    /// Length of the run.
    pub seconds: f64,
    /// Mean latency of the transactions.
    pub mean_ms: f64,
    /// 95th percentile of the transactions' latency.
    pub p95_ms: f64,
}

/// Mean and standard deviation over the threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sd: f64,
}

/// A line of `--histogram`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// The latency of its transactions, within 2 %.
    pub ms: f64,
    /// The number of transactions with about this latency.
    pub transactions: u64,
}

/// The whole report at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// The most used part of the report.
    pub summary: Summary,
    /// Reading queries.
    pub reads: u64,
    /// Writing queries.
    pub writes: u64,
    /// Others: BEGIN and COMMIT.
    pub others: u64,
    /// All queries.
    pub queries: u64,
    /// Connections that broke and were renewed.
    pub reconnects: u64,
    /// Events: transactions that ended by themselves.
    pub events: u64,
    /// Shortest latency of a transaction.
    pub min_ms: f64,
    /// Longest latency of a transaction.
    pub max_ms: f64,
    /// Fairness: events of a thread.
    pub events_per_thread: Spread,
    /// Fairness: time that a thread spent within events.
    pub execution_s_per_thread: Spread,
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

/// Reads a line such as `       0.291 |********************                     127`; `None` for any other line.
pub fn parse_bucket(line: &str) -> Option<Bucket> {
    let (ms, rest) = line.split_once('|')?;
    Some(Bucket {
        ms: ms.trim().parse().ok()?,
        transactions: rest.trim_start_matches('*').trim().parse().ok()?,
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

/// Reads the whole report; `None` if it is not complete.
pub fn parse_statistics(output: &str) -> Option<Statistics> {
    let rest = |label: &str| {
        let mut lines = output.lines();
        lines.find_map(|line| line.trim_start().strip_prefix(label))
    };
    let value = |label: &str| number_after(rest(label)?, "");
    let spread = |label: &str| {
        let (mean, sd) = rest(label)?.split_once('/')?;
        Some(Spread {
            mean: mean.trim().parse().ok()?,
            sd: sd.trim().parse().ok()?,
        })
    };
    Some(Statistics {
        summary: parse_summary(output)?,
        reads: value("read:")? as u64,
        writes: value("write:")? as u64,
        others: value("other:")? as u64,
        queries: value("total:")? as u64,
        reconnects: value("reconnects:")? as u64,
        events: value("total number of events:")? as u64,
        min_ms: value("min:")?,
        max_ms: value("max:")?,
        events_per_thread: spread("events (avg/stddev):")?,
        execution_s_per_thread: spread("execution time (avg/stddev):")?,
    })
}

/// Reads the last line of a thread of `oltp_read_write_counted.lua`, such as `restarts: 1213=17 1062=1`: the number of
/// restarted transactions, by the error's number. None for any other line.
pub fn parse_restarts(line: &str) -> Option<Vec<(u16, u64)>> {
    let rest = line.trim().strip_prefix("restarts:")?;
    let pairs = rest.split_whitespace().map(|pair| {
        let (error, count) = pair.split_once('=')?;
        Some((error.parse().ok()?, count.parse().ok()?))
    });
    pairs.collect()
}

/// The number after `label` in `text`.
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
    fn a_line_of_the_histogram_is_read() {
        let bucket = |ms, transactions| Some(Bucket { ms, transactions });
        let long = "      16.412 |**************************************** 248";
        assert_eq!(parse_bucket(long), bucket(16.412, 248));
        let short = "       0.291 |                                         1";
        assert_eq!(parse_bucket(short), bucket(0.291, 1));
        let head = "       value  ------------- distribution ------------- count";
        for line in [head, "", "a | 1", "0.291 |** x"] {
            assert_eq!(parse_bucket(line), None, "{line}");
        }
    }

    /// Output of sysbench 1.0.20.
    const OUTPUT: &str = "SQL statistics:
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

Threads fairness:
    events (avg/stddev):           726.1667/3.58
    execution time (avg/stddev):   4.9972/0.01
";

    #[test]
    fn a_summary_is_read() {
        let expected = Summary {
            transactions: 4357,
            conflicts: 43,
            seconds: 5.0017,
            mean_ms: 6.88,
            p95_ms: 12.98,
        };
        assert_eq!(parse_summary(OUTPUT), Some(expected));
        assert_eq!(parse_summary(&OUTPUT[..OUTPUT.len() / 2]), None);
    }

    #[test]
    fn the_whole_report_is_read() {
        let expected = Statistics {
            summary: parse_summary(OUTPUT).unwrap(),
            reads: 61_600,
            writes: 17_514,
            others: 8_757,
            queries: 87_871,
            reconnects: 0,
            events: 4_357,
            min_ms: 2.6,
            max_ms: 41.9,
            events_per_thread: Spread {
                mean: 726.1667,
                sd: 3.58,
            },
            execution_s_per_thread: Spread {
                mean: 4.9972,
                sd: 0.01,
            },
        };
        assert_eq!(parse_statistics(OUTPUT), Some(expected));
        let cut = OUTPUT.find("execution time").unwrap();
        assert_eq!(parse_statistics(&OUTPUT[..cut]), None);
    }

    #[test]
    fn restarts_are_counted_by_error() {
        let line = "restarts: 1213=17 1062=1";
        assert_eq!(parse_restarts(line), Some(vec![(1213, 17), (1062, 1)]));
        assert_eq!(parse_restarts("restarts:"), Some(Vec::new()));
        for other in ["", "restarts: x=1", "restarts: 1213", "reads: 1=1"] {
            assert_eq!(parse_restarts(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_output_makes_the_parsers_panic(text in ".{0,200}") {
            let _ = parse_interval(&text);
            let _ = parse_interval(&format!("[ 1s ] tps: {text}"));
            let _ = parse_bucket(&text);
            let _ = parse_summary(&text);
            let _ = parse_statistics(&text);
            let _ = parse_restarts(&format!("restarts: {text}"));
        }
    }
}
