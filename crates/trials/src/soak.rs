//! `trireme soak`: runs a mixed load for a long time. It fails on a crash, on an error that is no conflict, and on
//! different rows. It reports how fast the servers' memory grows.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use trireme_lab::stats::slope;
use trireme_testbed::ClusterError;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::output::{line, piece};
use trireme_testbed::process;
use trireme_testbed::settings::Settings;
use trireme_testbed::sql::{Sql, SqlError};
use trireme_testbed::sysbench::{Load, Sysbench, SysbenchError};
use trireme_testbed::table;
use trireme_testbed::verify::{VerifyError, verify_identical};

/// The options of the soak test.
pub struct SoakOptions {
    /// The wsrep provider.
    pub provider: PathBuf,
    /// Length of the load.
    pub minutes: u64,
    /// Number of nodes.
    pub nodes: usize,
    /// Fail when a server's memory grows faster than this.
    pub max_growth_mib_per_minute: Option<f64>,
    /// CSV file for the memory samples.
    pub out: Option<PathBuf>,
}

/// Why the soak test failed.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// A node did not do what it should.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The load failed.
    #[error(transparent)]
    Sysbench(#[from] SysbenchError),
    /// The nodes differ.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// A server ended under the load.
    #[error("{node} ended under load; see {log}", log = log.display())]
    Crashed {
        /// The node's name.
        node: String,
        /// Its log.
        log: PathBuf,
    },
    /// A schema change failed, and not because of a conflict.
    #[error("{node}: {statement}: {source}")]
    Schema {
        /// The node's name.
        node: String,
        /// The statement.
        statement: String,
        /// The reason.
        source: SqlError,
    },
    /// A server's memory grows too fast.
    #[error("the memory of {node} grows by {growth:.2} MiB per minute, more than {limit}")]
    Growth {
        /// The node's name.
        node: String,
        /// MiB per minute.
        growth: f64,
        /// The limit, in MiB per minute.
        limit: f64,
    },
    /// There are too few samples for a verdict on the memory.
    #[error(
        "too few samples of the memory of {node} from minute {SETTLED_MINUTES:.0} on to judge its growth; give more --minutes"
    )]
    Unjudged {
        /// The node's name.
        node: String,
    },
    /// The samples could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Time between two samples of memory.
const SAMPLE: Duration = Duration::from_secs(10);

/// Number of samples between two rounds of schema changes.
const SCHEMA_EVERY: usize = 2;

/// Time at which the caches have filled; memory is judged from here on.
const SETTLED_MINUTES: f64 = 3.0;

/// Memory of all nodes at one moment.
struct Sample {
    minutes: f64,
    rss_bytes: Vec<u64>,
}

/// Runs the soak test. It always stops the servers; after a failure the logs stay.
pub fn run(options: &SoakOptions) -> Result<(), SoakError> {
    let dir = std::env::temp_dir().join(format!("trireme-soak-{}", std::process::id()));
    let mut settings = Settings::new(&dir, options.nodes, Some(options.provider.clone()));
    // A small buffer pool is full before the memory is judged: InnoDB touches its pages one after another. A pool of
    // 64 MiB still grew by 2 MiB a minute after ten minutes (smaps), while malloc held nothing more.
    settings
        .mariadbd_args
        .push("--innodb-buffer-pool-size=24M".to_string());
    let mut cluster = Cluster::create_or_clear(settings, line)?;
    let result = play(options, &mut cluster);
    let stopped = cluster.stop();
    if result.is_ok() || interrupt::check().is_err() {
        stopped?;
        cluster.delete()?;
    } else {
        line(&format!(
            "the logs are in {}/node*/error.log",
            dir.display()
        ));
    }
    result
}

fn play(options: &SoakOptions, cluster: &mut Cluster) -> Result<(), SoakError> {
    cluster.start()?;
    let loads = loads();
    for load in &loads[..2] {
        load.prepare(cluster.node(0))?;
    }
    let mut runs = Vec::new();
    for node in cluster.nodes() {
        for load in &loads {
            runs.push(load.start(node, None, runs.len() as u32 + 1)?);
        }
    }
    line(&format!(
        "load on {} nodes for {} minutes",
        options.nodes, options.minutes
    ));
    let mut samples = Vec::new();
    let watched = watch(options, cluster, &mut runs, &mut samples);
    // The samples before a failure tell of its cause.
    let written = write_samples(options, cluster, &samples);
    watched?;
    written?;
    runs.into_iter().for_each(Sysbench::stop);

    let identical = verify_identical(cluster, &["sbtest", "sbmixed", SCHEMA_DATABASE])?;
    line(&format!(
        "{} tables identical on {} nodes at seqno {}",
        identical.tables.len(),
        options.nodes,
        identical.last_committed
    ));
    report_growth(options, cluster, &samples)
}

/// Transactions that conflict and, on tables of their own, inserts and deletes at a steady rate.
fn loads() -> [Load; 3] {
    let inserts = Load {
        script: "oltp_insert",
        database: "sbmixed".to_string(),
        auto_inc: true,
        rate: Some(50),
        ..Load::read_write(2, 10_000, 1)
    };
    let deletes = Load {
        script: "oltp_delete",
        ..inserts.clone()
    };
    [Load::read_write(4, 10_000, 4), inserts, deletes]
}

fn watch(
    options: &SoakOptions,
    cluster: &Cluster,
    runs: &mut [Sysbench],
    samples: &mut Vec<Sample>,
) -> Result<(), SoakError> {
    let began = Instant::now();
    let end = Duration::from_secs(options.minutes * 60);
    while began.elapsed() < end {
        interrupt::sleep(SAMPLE)?;
        for node in cluster.nodes() {
            if node.pid().is_none() {
                return Err(SoakError::Crashed {
                    node: node.name.clone(),
                    log: node.log(),
                });
            }
        }
        let mut tps = 0.0;
        let mut conflicts = 0.0;
        for run in runs.iter_mut() {
            if run.has_ended() {
                return Err(run.failure().into());
            }
            if let Some(report) = run.take_report() {
                tps += report.tps;
                conflicts += report.conflicts_per_s;
            }
        }
        let rss = |i: usize| {
            cluster
                .node(i)
                .pid()
                .and_then(process::rss_bytes)
                .unwrap_or(0)
        };
        let sample = Sample {
            minutes: began.elapsed().as_secs_f64() / 60.0,
            rss_bytes: (0..cluster.nodes().len()).map(rss).collect(),
        };
        let memory: Vec<String> = sample
            .rss_bytes
            .iter()
            .map(|b| format!("{:.0}", mib(*b)))
            .collect();
        line(&format!(
            "{:5.1} min  {tps:5.0} tps  {conflicts:4.0} conflicts/s  memory {} MiB",
            sample.minutes,
            memory.join(" / ")
        ));
        samples.push(sample);
        if samples.len() % SCHEMA_EVERY == 0 {
            change_schema(cluster, samples.len() / SCHEMA_EVERY)?;
        }
    }
    Ok(())
}

const SCHEMA_DATABASE: &str = "sbschema";

/// Runs a round of schema changes, on one node after the other; every tenth round leaves its table.
fn change_schema(cluster: &Cluster, round: usize) -> Result<(), SoakError> {
    let node = cluster.node(round % cluster.nodes().len());
    let mut sql = node.sql().map_err(ClusterError::from)?;
    let table = format!("{SCHEMA_DATABASE}.t{round}");
    let mut statements = vec![
        format!("CREATE DATABASE IF NOT EXISTS {SCHEMA_DATABASE}"),
        format!("CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, a INT)"),
        format!("INSERT INTO {table} (a) SELECT seq FROM {SCHEMA_DATABASE}.seq_1_to_100"),
        format!("ALTER TABLE {table} ADD COLUMN b VARCHAR(20) DEFAULT 'b', ADD INDEX (a)"),
        format!("UPDATE {table} SET b = CONCAT('row ', a)"),
        format!("TRUNCATE TABLE {table}"),
        format!("INSERT INTO {table} (a) VALUES (1), (2), (3)"),
    ];
    if round % 10 != 1 {
        statements.push(format!("DROP TABLE {table}"));
    }
    for statement in statements {
        retried(&mut sql, &statement).map_err(|source| SoakError::Schema {
            node: node.name.clone(),
            statement,
            source,
        })?;
    }
    Ok(())
}

fn retried(sql: &mut Sql, statement: &str) -> Result<(), SqlError> {
    for _ in 0..10 {
        match sql.exec(statement) {
            Err(error) if error.is_conflict() => continue,
            other => return other.map(|_| ()),
        }
    }
    sql.exec(statement).map(|_| ())
}

fn report_growth(
    options: &SoakOptions,
    cluster: &Cluster,
    samples: &[Sample],
) -> Result<(), SoakError> {
    let growth = |i: usize| growth_mib_per_minute(samples, i);
    let shown = |value: Option<f64>| value.map_or("-".to_string(), |v| format!("{v:.2}"));
    let last = |i: usize| samples.last().map(|sample| mib(sample.rss_bytes[i]));
    let rows: Vec<Vec<String>> = cluster
        .nodes()
        .iter()
        .enumerate()
        .map(|(i, node)| vec![node.name.clone(), shown(last(i)), shown(growth(i))])
        .collect();
    let since = format!("MiB/min from minute {SETTLED_MINUTES:.0}");
    piece(&table::render(&["node", "memory MiB", &since], &rows));
    let Some(limit) = options.max_growth_mib_per_minute else {
        return Ok(());
    };
    let mut nodes = cluster.nodes().iter().enumerate();
    nodes.try_for_each(|(i, node)| judge(&node.name, growth(i), limit))
}

fn judge(node: &str, growth: Option<f64>, limit: f64) -> Result<(), SoakError> {
    let node = node.to_string();
    match growth {
        None => Err(SoakError::Unjudged { node }),
        Some(growth) if growth > limit => Err(SoakError::Growth {
            node,
            growth,
            limit,
        }),
        Some(_) => Ok(()),
    }
}

/// The slope of node `i`'s memory once the caches are full; `None` if there are fewer than two samples from that
/// time.
fn growth_mib_per_minute(samples: &[Sample], i: usize) -> Option<f64> {
    let settled = samples
        .iter()
        .filter(|sample| sample.minutes >= SETTLED_MINUTES);
    let points: Vec<(f64, f64)> = settled.map(|s| (s.minutes, mib(s.rss_bytes[i]))).collect();
    slope(&points)
}

fn write_samples(
    options: &SoakOptions,
    cluster: &Cluster,
    samples: &[Sample],
) -> Result<(), SoakError> {
    let Some(path) = &options.out else {
        return Ok(());
    };
    fs::write(path, csv(cluster, samples)).map_err(|source| SoakError::Io {
        path: path.clone(),
        source,
    })
}

fn csv(cluster: &Cluster, samples: &[Sample]) -> String {
    let mut text = "minutes,node,rss_bytes\n".to_string();
    for sample in samples {
        for (node, rss) in cluster.nodes().iter().zip(&sample.rss_bytes) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:.3},{},{rss}", sample.minutes, node.name);
        }
    }
    text
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_counts_from_the_third_minute_on() {
        let sample = |minutes, mib: u64| Sample {
            minutes,
            rss_bytes: vec![mib << 20],
        };
        let samples = [
            sample(1.0, 10),
            sample(2.0, 500),
            sample(3.0, 600),
            sample(4.0, 602),
            sample(5.0, 604),
        ];
        assert_eq!(growth_mib_per_minute(&samples, 0), Some(2.0));
        assert_eq!(growth_mib_per_minute(&samples[..3], 0), None);
    }

    #[test]
    fn a_limit_without_samples_is_not_kept() {
        assert!(judge("node1", Some(1.0), 1.0).is_ok());
        assert!(matches!(
            judge("node1", Some(1.1), 1.0),
            Err(SoakError::Growth { .. })
        ));
        assert!(matches!(
            judge("node1", None, 1.0),
            Err(SoakError::Unjudged { .. })
        ));
    }
}
