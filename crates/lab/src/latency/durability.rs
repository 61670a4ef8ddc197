//! Part `durability`: the cost of having every acknowledged commit on stable storage.
//!
//! Trireme with `repl.durability=disk`, with InnoDB that flushes nothing at commit, is compared with two others:
//! Trireme with `os`, and Galera with InnoDB that flushes at commit. There only the client's node flushes before the
//! answer; no commit waits for the flushes of the other nodes.

use std::time::Duration;

use trireme_testbed::settings::Settings;
use trireme_testbed::sysbench::Load;

use super::error::LatencyError;
use super::figures::measured;
use super::site::{ROWS, Site};
use crate::frame::Measured;
use crate::oltp::run_load;

const NODES: usize = 3;

/// The threads per node in the case with many: 18 in all.
const THREADS: usize = 6;

/// The load before each measurement.
const WARMUP_S: u64 = 3;

/// The place where a commit is held when it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// In InnoDB's log on the client's node, under Galera.
    Galera,
    /// In the logs of a majority, in memory.
    Os,
    /// In the logs of a majority, on disk.
    Disk,
}

impl Strength {
    /// All of them. The reference comes first.
    pub const ALL: [Self; 3] = [Self::Galera, Self::Os, Self::Disk];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Galera => "innodb_flush=1",
            Self::Os => "repl.durability=os, innodb_flush=0",
            Self::Disk => "repl.durability=disk, innodb_flush=0",
        }
    }

    /// Configures a cluster for this.
    pub fn set(self, settings: &mut Settings) {
        let flush = u8::from(self == Self::Galera);
        let flush = format!("--innodb-flush-log-at-trx-commit={flush}");
        settings.mariadbd_args.push(flush);
        settings.add_provider_options(match self {
            Self::Galera => "",
            Self::Os => "repl.durability=os",
            Self::Disk => "repl.durability=disk",
        });
    }
}

/// A load on the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    script: &'static str,
    /// Whether one thread runs on one node; otherwise six threads run on each.
    pub is_single: bool,
}

impl Point {
    /// Transactions of 18 statements, four of which write; and single updates, which are hardly more than a commit.
    pub const ALL: [Self; 4] = [
        Self::new("oltp_read_write", true),
        Self::new("oltp_read_write", false),
        Self::new("oltp_update_non_index", true),
        Self::new("oltp_update_non_index", false),
    ];

    const fn new(script: &'static str, is_single: bool) -> Self {
        Self { script, is_single }
    }

    /// Its name in the report.
    pub fn name(self) -> String {
        let threads = if self.is_single { 1 } else { NODES * THREADS };
        format!("{}_{threads}", self.script.trim_start_matches("oltp_"))
    }

    /// The name of the figure with its commits per second.
    pub fn commits(self) -> String {
        format!("{}_commits_per_s", self.name())
    }
}

/// Runs one trial: all loads, one after the other.
pub fn measure(
    site: &Site,
    repetition: u32,
    length: Duration,
    kept: &mut Measured,
) -> Result<Measured, LatencyError> {
    let mut figures = Vec::new();
    // The seconds of all loads, one load after the other.
    let mut seconds = Vec::new();
    for point in Point::ALL {
        let load = Load {
            script: point.script,
            ..Load::read_write(1, ROWS, if point.is_single { 1 } else { THREADS })
        };
        let nodes = site.cluster.nodes();
        // Over the trials, the single thread is sometimes on the leader's node, and sometimes on another.
        let nodes = match point.is_single {
            true => &nodes[repetition as usize % NODES..][..1],
            false => nodes,
        };
        let seed = repetition * 1000;
        run_load(nodes, &load, WARMUP_S, seed + 500)?;
        let loaded = run_load(nodes, &load, length.as_secs(), seed)?;
        let summaries = loaded.summaries;
        let commits = summaries.iter();
        let commits = commits.map(|s| s.transactions as f64 / s.seconds.max(0.001));
        let p95_ms = summaries.iter().map(|s| s.p95_ms).fold(0.0, f64::max);
        figures.push((point.commits(), commits.sum()));
        figures.push((format!("{}_p95_ms", point.name()), p95_ms));
        seconds.extend(loaded.per_second);
        *kept = measured(figures.clone(), seconds.clone());
    }
    Ok(measured(figures, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_has_a_name_of_its_own() {
        let names = Point::ALL.map(Point::name);
        let expected = ["read_write_1", "read_write_18", "update_non_index_1"];
        assert_eq!(names[..3], expected);
    }

    #[test]
    fn an_encrypted_cluster_stays_encrypted() {
        let mut settings = Settings::new("/nonexistent", 3, None);
        settings.provider_options = "repl.durability=os;repl.require_encryption=yes;".to_string();
        Strength::Disk.set(&mut settings);
        assert_eq!(
            settings.provider_options,
            "repl.durability=os;repl.require_encryption=yes;repl.durability=disk"
        );
    }
}
