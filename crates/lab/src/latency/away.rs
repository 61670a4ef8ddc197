//! Part `away`: a node is away while the others write, and comes back. Measures its snapshot or IST, and the others'
//! commits meanwhile.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use trireme_testbed::cluster::START_TIMEOUT;
use trireme_testbed::interrupt;
use trireme_testbed::node::{StartMode, snapshots_given};
use trireme_testbed::sql::{Sql, SqlError};
use trireme_testbed::status::NodeStatus;

use super::error::LatencyError;
use super::failover::FAULT_AT;
use super::fault::sleep_until;
use super::figures::{Window, by_second, measured, per_second};
use super::load::Load;
use super::site::Site;
use super::slow::{P99_RATIO, all, observed};
use crate::frame::Measured;

/// The node that goes away, and the nodes that stay.
const AWAY: usize = 2;
const OTHERS: [usize; 2] = [0, 1];

/// The clients on each of the nodes that stay.
const CLIENTS: usize = 8;

/// The load before any measurement.
const SETTLING: Duration = Duration::from_secs(3);

/// The length of the search for the maximum.
const MAXIMUM_LENGTH: Duration = Duration::from_secs(8);

/// The rate, as a share of the maximum.
const SHARE: f64 = 0.2;

/// The pause after a window, in which the commits that were due in it may end.
const GRACE: Duration = Duration::from_secs(1);

/// The interval between two looks at the node that comes back.
const LOOK: Duration = Duration::from_millis(20);

/// The way in which the node goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// The node is stopped cleanly.
    Stopped,
    /// The node is killed with -9.
    Killed,
}

impl Departure {
    /// Both ways.
    pub const ALL: [Self; 2] = [Self::Stopped, Self::Killed];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Killed => "kill -9",
        }
    }
}

/// The figure: the snapshots that the node needed to come back.
pub const SNAPSHOTS: &str = "snapshots";

/// The figure: the write-sets per second in the catch-up, divided by the rate of the load.
pub const SPEED_RATIO: &str = "applied_ratio";

/// Runs one trial.
pub fn measure(
    site: &mut Site,
    departure: Departure,
    away: Duration,
    length: Duration,
    kept: &mut Measured,
) -> Result<Measured, LatencyError> {
    let full = Load::start(&site.cluster, &OTHERS, CLIENTS, None);
    interrupt::sleep(SETTLING)?;
    let window = Window::new(Instant::now(), MAXIMUM_LENGTH);
    sleep_until(window.to)?;
    let rate = per_second(&all(&full), window) * SHARE;
    drop(full);
    if rate < 1.0 {
        return Err(LatencyError::NoCommits(OTHERS[0] + 1));
    }

    let load = Load::start(&site.cluster, &OTHERS, CLIENTS, Some(rate));
    interrupt::sleep(SETTLING)?;
    let _kept = load.keep_in(kept);
    let usual = Window::new(Instant::now(), length);
    sleep_until(usual.to)?;

    let snapshots_before = snapshots(site);
    let departed = Instant::now();
    match departure {
        Departure::Stopped => drop(site.cluster.stop_node(AWAY)?),
        Departure::Killed => site.cluster.kill_node(AWAY)?,
    }
    let bytes_before = log_bytes(site)?;
    sleep_until(departed + away)?;
    let came_back = come_back(site)?;
    let bytes = log_bytes(site)? - bytes_before;
    interrupt::sleep(GRACE)?;

    let commits = all(&load);
    drop(load);
    let seen = |window: Window| observed(&commits, rate, window).p99_ms;
    let usual_ms = seen(usual);
    let catch_up_ms = seen(came_back.catch_up());
    let mut figures = came_back.figures(rate, snapshots(site) - snapshots_before);
    figures.extend([
        ("rate_per_s", rate),
        ("retention_mib", bytes / f64::from(1 << 20)),
        ("usual_p99_ms", usual_ms),
        ("start_p99_ms", seen(came_back.start())),
        ("catch_up_p99_ms", catch_up_ms),
        (P99_RATIO, catch_up_ms / usual_ms),
        (FAULT_AT, (departed - usual.from).as_secs_f64()),
    ]);
    let seconds = usual.from.elapsed().as_secs() as usize;
    Ok(measured(figures, by_second(&commits, usual.from, seconds)))
}

/// The node's way back. Positions are seqnos.
struct ComeBack {
    /// The begin of its start, before the recovery of its position.
    started: Instant,
    /// The first position that the node reported, and the last moment at which it reported this one.
    from: (Instant, i64),
    /// The node's position when it was synced.
    to: (Instant, i64),
    /// The position of the others at the begin of the start.
    ahead: i64,
}

impl ComeBack {
    fn start(&self) -> Window {
        Window {
            from: self.started,
            to: self.from.0,
        }
    }

    fn catch_up(&self) -> Window {
        Window {
            from: self.from.0,
            to: self.to.0.max(self.from.0 + LOOK),
        }
    }

    fn figures(&self, rate: f64, snapshots: usize) -> Vec<(&'static str, f64)> {
        let seconds = |window: Window| (window.to - window.from).as_secs_f64();
        let mut figures = vec![
            (SNAPSHOTS, snapshots as f64),
            ("start_s", seconds(self.start())),
            ("catch_up_s", seconds(self.catch_up())),
        ];
        // With a snapshot, this speed means nothing.
        if snapshots == 0 {
            let speed = (self.to.1 - self.from.1) as f64 / seconds(self.catch_up());
            figures.extend([
                ("missed", (self.ahead - self.from.1) as f64),
                ("applied_per_s", speed),
                (SPEED_RATIO, speed / rate),
            ]);
        }
        figures
    }
}

/// Starts the node, and reads its position until it is synced.
fn come_back(site: &mut Site) -> Result<ComeBack, LatencyError> {
    let ahead = site.cluster.node(OTHERS[0]).status()?.last_committed;
    let started = Instant::now();
    site.cluster.spawn_node(AWAY, StartMode::Join)?;
    let mut sql = None;
    let mut from: Option<(Instant, i64)> = None;
    loop {
        let socket = site.cluster.node(AWAY).socket();
        match look(&mut sql, &socket) {
            Ok(status) if status.last_committed >= 0 => {
                let now = (Instant::now(), status.last_committed);
                match &mut from {
                    Some(first) if first.1 == now.1 => *first = now,
                    Some(_) => {}
                    None => from = Some(now),
                }
                if status.is_synced() {
                    let from = from.unwrap_or(now);
                    return Ok(ComeBack {
                        started,
                        from,
                        to: now,
                        ahead,
                    });
                }
            }
            Ok(_) => {}
            // The node does not answer yet.
            Err(_) => sql = None,
        }
        if site.cluster.node(AWAY).pid().is_none() || started.elapsed() > START_TIMEOUT {
            // This fails and reports the fault.
            site.cluster.wait_node(AWAY, Duration::ZERO)?;
        }
        interrupt::sleep(LOOK)?;
    }
}

fn look(sql: &mut Option<Sql>, socket: &Path) -> Result<NodeStatus, SqlError> {
    let connection = match sql {
        Some(connection) => connection,
        None => sql.insert(Sql::connect_socket(socket, Duration::from_secs(2))?),
    };
    NodeStatus::read(connection)
}

/// The snapshots that the nodes that stay have sent.
fn snapshots(site: &Site) -> usize {
    let logs = OTHERS.map(|i| site.cluster.node(i).log_text());
    logs.iter().map(|log| snapshots_given(log)).sum()
}

/// The bytes in the log of a node that stays. Galera does not report this for its cache: there, the bytes of
/// write-sets.
fn log_bytes(site: &Site) -> Result<f64, LatencyError> {
    let node = site.cluster.node(OTHERS[0]);
    if let Some(end) = log_end(&node.datadir()) {
        return Ok(end as f64);
    }
    let mut sql = node.sql()?;
    let mut bytes = 0.0;
    for name in ["wsrep_replicated_bytes", "wsrep_received_bytes"] {
        let value = sql.status(name)?;
        bytes += value.and_then(|value| value.parse().ok()).unwrap_or(0.0);
    }
    Ok(bytes)
}

/// The address of the end of our log (`docs/log-format.md`): the start address of the last file, plus the length of
/// this file.
fn log_end(dir: &Path) -> Option<u64> {
    let names = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let is_segment = |path: &std::path::PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("trireme-")?.strip_suffix(".log"));
        number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    };
    let last = File::open(names.filter(is_segment).max()?).ok()?;
    let mut start = [0; 8];
    last.read_exact_at(&mut start, 48).ok()?;
    Some(u64::from_le_bytes(start) + last.metadata().ok()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_counts_from_when_it_began_to_apply() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let back = ComeBack {
            started: start,
            from: (at(4), 1_000),
            to: (at(6), 13_000),
            ahead: 11_000,
        };
        let figures = back.figures(1_000.0, 0);
        let value = |wanted: &str| figures.iter().find(|(name, _)| *name == wanted).unwrap().1;
        assert_eq!((value("missed"), value("start_s")), (10_000.0, 4.0));
        assert_eq!((value("applied_per_s"), value(SPEED_RATIO)), (6_000.0, 6.0));
        let by_snapshot = back.figures(1_000.0, 1);
        assert!(by_snapshot.iter().all(|(name, _)| *name != SPEED_RATIO));
    }

    #[test]
    fn the_logs_end_is_that_of_its_last_file() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(log_end(dir.path()), None);
        for (number, start) in [(1, 0_u64), (2, 700)] {
            let mut bytes = vec![0; 128];
            bytes[48..56].copy_from_slice(&start.to_le_bytes());
            fs::write(dir.path().join(format!("trireme-{number:012}.log")), bytes).unwrap();
        }
        fs::write(dir.path().join("trireme-state.log"), "x").unwrap();
        fs::write(dir.path().join("trireme-damaged-3-1.log"), "x").unwrap();
        assert_eq!(log_end(dir.path()), Some(828));
    }
}
