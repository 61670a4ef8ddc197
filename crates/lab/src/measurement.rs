//! One measurement and its line in the CSV file.

use trireme_testbed::sysbench_report::Summary;

/// What one run of one system at one point gave, all nodes together.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The system's name.
    pub system: String,
    /// Cluster size.
    pub nodes: usize,
    /// Rows of the table.
    pub rows: usize,
    /// Number of the pair, from 1.
    pub pair: usize,
    /// Committed transactions per second.
    pub tps: f64,
    /// Conflicts per second.
    pub conflicts_per_s: f64,
    /// Mean latency of a transaction.
    pub mean_ms: f64,
    /// 95th percentile of the latency: that of the slowest node.
    pub p95_ms: f64,
    /// Processor time of all servers per committed transaction.
    pub cpu_ms_per_commit: f64,
    /// Times that the sequencer's office was taken from one that was alive; 0 where there is none.
    pub offices_needless: u64,
}

/// What the servers say of themselves: totals since their start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerTotals {
    /// Processor time.
    pub cpu_ms: u64,
    /// `wsrep_trireme_offices_needless`.
    pub offices_needless: u64,
}

impl ServerTotals {
    /// What was added since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu_ms: self.cpu_ms.saturating_sub(earlier.cpu_ms),
            offices_needless: self
                .offices_needless
                .saturating_sub(earlier.offices_needless),
        }
    }
}

impl Measurement {
    /// The columns of [`csv_line`](Self::csv_line).
    pub const CSV_HEADER: &str = "rows,nodes,pair,system,tps,conflicts_per_s,conflicts_per_commit,mean_ms,p95_ms,cpu_ms_per_commit,offices_needless";

    /// Adds up the summaries of the nodes' clients, which ran at the same time.
    pub fn new(
        system: &str,
        (rows, nodes, pair): (usize, usize, usize),
        summaries: &[Summary],
        servers: ServerTotals,
    ) -> Self {
        let per_s = |count: fn(&Summary) -> u64| -> f64 {
            summaries
                .iter()
                .map(|s| count(s) as f64 / s.seconds.max(0.001))
                .sum()
        };
        let commits: u64 = summaries.iter().map(|s| s.transactions).sum();
        let commits_or_one = commits.max(1) as f64;
        let weighted: f64 = summaries
            .iter()
            .map(|s| s.mean_ms * s.transactions as f64)
            .sum();
        Self {
            system: system.to_string(),
            nodes,
            rows,
            pair,
            tps: per_s(|s| s.transactions),
            conflicts_per_s: per_s(|s| s.conflicts),
            mean_ms: weighted / commits_or_one,
            p95_ms: summaries.iter().map(|s| s.p95_ms).fold(0.0, f64::max),
            cpu_ms_per_commit: servers.cpu_ms as f64 / commits_or_one,
            offices_needless: servers.offices_needless,
        }
    }

    /// Conflicts per committed transaction.
    pub fn conflicts_per_commit(&self) -> f64 {
        if self.tps > 0.0 {
            self.conflicts_per_s / self.tps
        } else {
            0.0
        }
    }

    /// One line, without its end.
    pub fn csv_line(&self) -> String {
        format!(
            "{},{},{},{},{:.1},{:.1},{:.4},{:.2},{:.2},{:.3},{}",
            self.rows,
            self.nodes,
            self.pair,
            self.system,
            self.tps,
            self.conflicts_per_s,
            self.conflicts_per_commit(),
            self.mean_ms,
            self.p95_ms,
            self.cpu_ms_per_commit,
            self.offices_needless
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_added_up() {
        let a = Summary {
            transactions: 300,
            conflicts: 30,
            seconds: 10.0,
            mean_ms: 10.0,
            p95_ms: 20.0,
        };
        let b = Summary {
            transactions: 100,
            conflicts: 10,
            seconds: 10.0,
            mean_ms: 30.0,
            p95_ms: 50.0,
        };
        let servers = ServerTotals {
            cpu_ms: 800,
            offices_needless: 3,
        };
        let m = Measurement::new("x", (10_000, 2, 1), &[a, b], servers);
        assert_eq!(
            (m.tps, m.conflicts_per_s, m.mean_ms, m.p95_ms),
            (40.0, 4.0, 15.0, 50.0)
        );
        assert_eq!(
            m.csv_line(),
            "10000,2,1,x,40.0,4.0,0.1000,15.00,50.00,2.000,3"
        );
        assert_eq!(
            m.csv_line().split(',').count(),
            Measurement::CSV_HEADER.split(',').count()
        );
    }

    #[test]
    fn a_run_without_commits_divides_by_nothing() {
        let m = Measurement::new("x", (1, 1, 1), &[], ServerTotals::default());
        assert_eq!((m.tps, m.conflicts_per_commit()), (0.0, 0.0));
    }
}
