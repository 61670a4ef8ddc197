//! Part `trace`: whether an acknowledged commit was on stable storage before the answer, and on how many nodes.
//!
//! Each commit inserts a unique mark. strace shows when each server wrote the mark to its log and flushed it; the
//! client knows when COMMIT returned. All times are by the one clock of the machine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trireme_testbed::interrupt;
use trireme_testbed::settings::Settings;
use trireme_testbed::sql::Sql;

use super::error::LatencyError;
use super::figures::{by_second, measured};
use super::load::Commit;
use super::site::Site;
use super::strace::{Calls, Strace};
use crate::frame::Measured;

/// The clients on each node; with two, some commits share a flush.
const CLIENTS: usize = 2;

/// The time limit for a commit.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The beginning of every mark; no other text that servers write begins so.
const PREFIX: &str = "mark-of-a-commit-";

/// The promise, which decides the files in which the marks must appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// `repl.durability=disk`: in our log, on a majority.
    Disk,
    /// `repl.durability=os`: no promise for a power loss. It shows that the check notices this.
    Os,
    /// `innodb_flush_log_at_trx_commit=1` under Galera: in InnoDB's log, on the client's node.
    InnoDb,
}

impl Promise {
    /// All promises.
    pub const ALL: [Self; 3] = [Self::InnoDb, Self::Disk, Self::Os];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "repl.durability=disk, innodb_flush=0",
            Self::Os => "repl.durability=os, innodb_flush=0",
            Self::InnoDb => "innodb_flush=1",
        }
    }

    /// Configures a cluster for this promise.
    pub fn set(self, settings: &mut Settings) {
        let flush = u8::from(self == Self::InnoDb);
        let flush = format!("--innodb-flush-log-at-trx-commit={flush}");
        settings.mariadbd_args.push(flush);
        settings.add_provider_options(match self {
            Self::Disk => "repl.durability=disk",
            Self::Os => "repl.durability=os",
            Self::InnoDb => "",
        });
    }

    /// Whether this file contains the commits.
    fn is_log(self) -> fn(&str) -> bool {
        match self {
            Self::Disk | Self::Os => |name| name.starts_with("trireme-") && name.ends_with(".log"),
            Self::InnoDb => |name| name.starts_with("ib_logfile"),
        }
    }
}

/// The figure: the commits that were flushed on a majority of the nodes before they were acknowledged, in percent.
pub const MAJORITY: &str = "on_majority_before_percent";

/// An acknowledged commit.
struct Acknowledged {
    node: usize,
    mark: String,
    /// The moment of the answer, by the clock of strace, since 1970.
    at_us: u64,
    commit: Commit,
}

/// Runs one trial.
pub fn measure(site: &Site, promise: Promise, length: Duration) -> Result<Measured, LatencyError> {
    let table = "CREATE TABLE sbtest.marks (mark CHAR(32) CHARACTER SET latin1 PRIMARY KEY)";
    site.cluster.sql(0)?.exec(table)?;
    interrupt::sleep(Duration::from_secs(1))?;
    let nodes = site.cluster.nodes().iter();
    let straces = nodes
        .filter_map(|node| Some((node.pid()?, node.dir.join("strace"))))
        .map(|(pid, dir)| Strace::attach(pid, &dir))
        .collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let acknowledged = load(site, length)?;
    let calls = straces
        .into_iter()
        .map(|strace| strace.finish(promise.is_log()))
        .collect::<Result<Vec<_>, _>>()?;
    match acknowledged.is_empty() {
        true => Err(LatencyError::NoCommits(1)),
        false => Ok(measured(
            figures(&acknowledged, &calls),
            seconds(&acknowledged, began, length),
        )),
    }
}

fn seconds(acknowledged: &[Acknowledged], began: Instant, length: Duration) -> Vec<u64> {
    let commits: Vec<Commit> = acknowledged.iter().map(|a| a.commit).collect();
    by_second(&commits, began, length.as_secs() as usize)
}

/// Commits marks on all nodes for this time.
fn load(site: &Site, length: Duration) -> Result<Vec<Acknowledged>, LatencyError> {
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..site.cluster.nodes().len() * CLIENTS)
        .map(|client| {
            let node = client / CLIENTS;
            let socket = site.cluster.node(node).socket();
            let stop = Arc::clone(&stop);
            thread::spawn(move || commit_marks(node, client, &socket, &stop))
        })
        .collect();
    let slept = interrupt::sleep(length);
    stop.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    for client in clients {
        let commits = client.join();
        all.extend(commits.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    slept?;
    Ok(all)
}

fn commit_marks(
    node: usize,
    client: usize,
    socket: &Path,
    stop: &AtomicBool,
) -> Result<Vec<Acknowledged>, LatencyError> {
    let mut sql = Sql::connect_socket(socket, TIMEOUT)?;
    let mut all = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mark = format!("{PREFIX}{client:02}-{:06}", all.len());
        let due = Instant::now();
        sql.exec(&format!("INSERT INTO sbtest.marks VALUES ('{mark}')"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        all.push(Acknowledged {
            node,
            mark,
            at_us: now.unwrap_or_default().as_micros() as u64,
            commit: Commit {
                due,
                done: Instant::now(),
            },
        });
    }
    Ok(all)
}

fn figures(acknowledged: &[Acknowledged], calls: &[Calls]) -> Vec<(&'static str, f64)> {
    let marks: Vec<String> = acknowledged.iter().map(|a| a.mark.clone()).collect();
    let by_node: Vec<Vec<Option<u64>>> = calls
        .iter()
        .map(|calls| calls.flushed_us(PREFIX, &marks))
        .collect();
    let (mut majority, mut own, mut least_us) = (0, 0, i64::MAX);
    for (i, commit) in acknowledged.iter().enumerate() {
        let is_before = |moment: Option<u64>| moment.is_some_and(|us| us <= commit.at_us);
        own += usize::from(is_before(by_node[commit.node][i]));
        let mut held: Vec<u64> = by_node.iter().filter_map(|moments| moments[i]).collect();
        held.sort_unstable();
        // From this moment on, more than half of the nodes had it on disk.
        let since = held.get(calls.len() / 2).copied();
        majority += usize::from(is_before(since));
        if let Some(since) = since {
            least_us = least_us.min(commit.at_us as i64 - since as i64);
        }
    }
    let commits = acknowledged.len();
    let percent = |count: usize| 100.0 * count as f64 / commits as f64;
    let flushes: usize = calls.iter().map(Calls::flushes).sum();
    let per_commit = flushes as f64 / (commits * calls.len()) as f64;
    let mut figures = vec![
        ("commits", commits as f64),
        (MAJORITY, percent(majority)),
        ("on_own_node_before_percent", percent(own)),
        ("flushes_per_commit_and_node", per_commit),
    ];
    if least_us < i64::MAX {
        figures.push(("least_margin_ms", least_us as f64 / 1000.0));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_one_length_and_fit_the_table() {
        let mark = format!("{PREFIX}{:02}-{:06}", 5, 7);
        assert_eq!(
            mark.len(),
            format!("{PREFIX}{:02}-{:06}", 11, 123_456).len()
        );
        assert!(mark.len() <= 32);
    }

    #[test]
    fn a_trial_keeps_its_seconds() {
        let began = Instant::now();
        let acknowledged = [10, 20, 1500, 2100].map(|ms| Acknowledged {
            node: 0,
            mark: String::new(),
            at_us: 0,
            commit: Commit {
                due: began,
                done: began + Duration::from_millis(ms),
            },
        });
        let seconds = seconds(&acknowledged, began, Duration::from_secs(2));
        assert_eq!(seconds, [2, 1]);
    }

    #[test]
    fn an_encrypted_cluster_stays_encrypted() {
        let mut settings = Settings::new("/nonexistent", 3, None);
        settings.provider_options = "repl.durability=os;repl.require_encryption=yes;".to_string();
        Promise::Disk.set(&mut settings);
        assert_eq!(
            settings.provider_options,
            "repl.durability=os;repl.require_encryption=yes;repl.durability=disk"
        );
    }
}
