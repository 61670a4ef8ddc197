//! Part `large`: the delay of small commits by one large transaction, before it is ordered and while it is applied.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use trireme_testbed::interrupt;
use trireme_testbed::sql::{Sql, SqlError};

use super::error::LatencyError;
use super::failover::FAULT_AT;
use super::fault::sleep_until;
use super::figures::{Window, by_second, latencies_ms, longest_gap, measured};
use super::load::{Commit, Load};
use super::plan::Victim;
use super::site::Site;
use super::slow::P99_RATIO;
use crate::frame::Measured;
use crate::stats::percentile;

/// The small updates per second of all three clients together. They are so few that a usual one does not wait for an
/// earlier one.
const RATE: f64 = 300.0;

/// The load before any measurement.
const SETTLING: Duration = Duration::from_secs(3);

/// The length of the time without a large transaction.
const USUAL_LENGTH: Duration = Duration::from_secs(10);

/// The bytes of one row of the large transaction.
const ROW_BYTES: usize = 8 << 10;

/// `wsrep_trx_fragment_size` of a streaming transaction.
const FRAGMENT_BYTES: usize = 1 << 20;

/// The time limit for the large transaction, and for each node that applies it.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The interval between two looks at the position of a node.
const LOOK: Duration = Duration::from_millis(10);

/// The figure: the 99th percentile of the small commits from COMMIT until the large transaction is ordered.
pub const UNTIL_P99: &str = "until_p99_ms";

/// One large transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Large {
    /// The size of its rows together, in MiB.
    pub mib: u32,
    /// Whether it is a streaming transaction, replicated while it runs.
    pub streaming: bool,
}

impl Large {
    /// Its name in the report.
    pub fn name(self) -> String {
        match self.streaming {
            false => format!("{} MiB", self.mib),
            true => format!("{} MiB, streaming", self.mib),
        }
    }
}

/// Runs one trial. The large transaction is committed on the leader or on another node, and small ones on all three.
pub fn measure(
    site: &Site,
    large: Large,
    origin: Victim,
    kept: &mut Measured,
) -> Result<Measured, LatencyError> {
    // At the start, the node that was started first is the leader.
    let origin = match origin {
        Victim::Leader => 0,
        Victim::Other => 1,
    };
    let mut client = Sql::connect_socket(&site.cluster.node(origin).socket(), TIMEOUT)?;
    client.exec("CREATE TABLE sbtest.large (id INT PRIMARY KEY, v LONGTEXT NOT NULL)")?;
    let load = Load::start(&site.cluster, &[0, 1, 2], 1, Some(RATE));
    interrupt::sleep(SETTLING)?;
    let _kept = load.keep_in(kept);
    let usual = Window::new(Instant::now(), USUAL_LENGTH);
    sleep_until(usual.to)?;
    let views_before = number(&mut client, "wsrep_cluster_conf_id")?;

    if large.streaming {
        client.exec("SET SESSION wsrep_trx_fragment_unit = 'bytes'")?;
        client.exec(&format!(
            "SET SESSION wsrep_trx_fragment_size = {FRAGMENT_BYTES}"
        ))?;
    }
    let rows = ((large.mib as usize) << 20).div_ceil(ROW_BYTES);
    let begun = Instant::now();
    client.exec("BEGIN")?;
    client.exec(&format!(
        "INSERT INTO sbtest.large SELECT seq, REPEAT(CHAR(33 + seq % 90), {ROW_BYTES}) FROM sbtest.seq_1_to_{rows}"
    ))?;
    let others = [(origin + 1) % 3, (origin + 2) % 3];
    let looks = others.map(|i| Progress::watch(site.cluster.node(i).socket()));
    interrupt::sleep(LOOK * 2)?;
    let committing = Instant::now();
    client.exec("COMMIT")?;
    let committed = Instant::now();
    let seqno = number(&mut client, "wsrep_last_committed")?;
    let standstills = looks
        .into_iter()
        .map(|look| look.until(seqno))
        .collect::<Result<Vec<_>, _>>()?;
    // Updates that are due shortly before the end get their answer in this time.
    interrupt::sleep(Duration::from_secs(1))?;
    let views = number(&mut client, "wsrep_cluster_conf_id")? - views_before;

    let commits: Vec<Commit> = load.commits().into_iter().flat_map(|(_, c)| c).collect();
    let applied = standstills.iter().map(|s| s.to).max().unwrap_or(committed);
    let until = match large.streaming {
        true => Window {
            from: begun,
            to: committed,
        },
        false => Window {
            from: committing,
            to: ordered(&standstills, committing, committed),
        },
    };
    let applying = Window {
        from: until.to,
        to: applied.max(until.to + LOOK),
    };
    Ok(evaluated(&commits, usual, until, applying, views as f64))
}

/// The time at which the transaction was ordered: the begin of the first node's standstill before it. Between its
/// predecessor and itself, no write-set passes a node's commit order. If nothing passed after COMMIT, that begin says
/// nothing; the transaction was ordered before its own client got the answer.
fn ordered(standstills: &[Window], committing: Instant, committed: Instant) -> Instant {
    let began = standstills.iter().map(|standstill| standstill.from).min();
    began.filter(|at| *at > committing).unwrap_or(committed)
}

/// The figures of the windows, and the seconds from the begin of the usual load until the transaction was applied.
fn evaluated(
    commits: &[Commit],
    usual: Window,
    until: Window,
    applying: Window,
    views: f64,
) -> Measured {
    let p99 = |sorted: &[f64]| percentile(sorted, 0.99);
    let before = waited_ms(commits, until);
    let usual_p99 = p99(&latencies_ms(commits, usual));
    let ratio = p99(&before).zip(usual_p99).map(|(p99, usual)| p99 / usual);
    let quiet = Window {
        from: usual.from,
        to: until.from,
    };
    let seconds = |window: Window| Some((window.to - window.from).as_secs_f64());
    let all = [
        ("usual_p99_ms", usual_p99),
        ("ordered_after_s", seconds(until)),
        ("until_p50_ms", percentile(&before, 0.5)),
        (UNTIL_P99, p99(&before)),
        ("until_max_ms", before.last().copied()),
        (P99_RATIO, ratio),
        ("applied_after_s", seconds(applying)),
        ("applying_p99_ms", p99(&latencies_ms(commits, applying))),
        ("applying_gap_ms", Some(longest_gap(commits, applying).ms())),
        ("views", Some(views)),
        (FAULT_AT, seconds(quiet)),
    ];
    // Without a commit that was due in a window, there is no figure of it.
    let figures = all.into_iter();
    let figures = figures.filter_map(|(name, value)| Some((name, value?)));
    let length = applying.to - usual.from;
    let per_second = by_second(commits, usual.from, length.as_secs() as usize);
    measured(figures, per_second)
}

/// The waits, sorted, of the commits that were due within `window`, as far as they waited in it. A wait beyond the
/// window's end has a later cause.
fn waited_ms(commits: &[Commit], window: Window) -> Vec<f64> {
    let within = commits.iter().map(|commit| Commit {
        done: commit.done.min(window.to),
        ..*commit
    });
    latencies_ms(&within.collect::<Vec<_>>(), window)
}

fn number(sql: &mut Sql, status: &str) -> Result<i64, SqlError> {
    let value = sql.status(status)?;
    let value = value.and_then(|value| value.parse().ok());
    value.ok_or_else(|| SqlError::Answer(status.to_string()))
}

/// The first look that showed a new seqno. Its answer may have to wait while the node stands still.
struct Look {
    asked: Instant,
    answered: Instant,
    seqno: i64,
}

/// Watches the position of a node all the time.
struct Progress {
    seen: Arc<Mutex<Vec<Look>>>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), SqlError>>,
}

impl Progress {
    fn watch(socket: PathBuf) -> Self {
        let seen = Arc::new(Mutex::new(Vec::<Look>::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (notes, stopped) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut sql = Sql::connect_socket(&socket, TIMEOUT)?;
            while !stopped.load(Ordering::Relaxed) {
                let asked = Instant::now();
                let seqno = number(&mut sql, "wsrep_last_committed")?;
                let mut notes = notes.lock().unwrap_or_else(|e| e.into_inner());
                if notes.last().is_none_or(|last| last.seqno != seqno) {
                    let answered = Instant::now();
                    notes.push(Look {
                        asked,
                        answered,
                        seqno,
                    });
                }
                drop(notes);
                thread::sleep(LOOK);
            }
            Ok(())
        });
        Self { seen, stop, thread }
    }

    /// Waits until the node has applied `seqno`. Returns the time in which the node stood at its predecessor.
    fn until(self, seqno: i64) -> Result<Window, LatencyError> {
        let deadline = Instant::now() + TIMEOUT;
        let is_there = || {
            let seen = self.seen.lock().unwrap_or_else(|e| e.into_inner());
            seen.last().is_some_and(|last| last.seqno >= seqno)
        };
        while !is_there() && !self.thread.is_finished() && Instant::now() < deadline {
            interrupt::sleep(LOOK)?;
        }
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(result) => result?,
            Err(_) => return Err(SqlError::Answer("wsrep_last_committed".to_string()).into()),
        }
        let seen = self.seen.lock().unwrap_or_else(|e| e.into_inner());
        standstill_before(&seen, seqno)
            .ok_or_else(|| SqlError::Answer("wsrep_last_committed".to_string()).into())
    }
}

/// The time from the last new position below `seqno` to the first one that is not below; None if they were not seen.
fn standstill_before(seen: &[Look], seqno: i64) -> Option<Window> {
    let crosses = |pair: &&[Look]| pair[0].seqno < seqno && pair[1].seqno >= seqno;
    let pair = seen.windows(2).find(crosses)?;
    Some(Window {
        from: pair[0].asked,
        to: pair[1].answered,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_transaction_is_ordered_where_nodes_stand_still_before_it() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let look = |asked, answered, seqno| Look {
            asked: at(asked),
            answered: at(answered),
            seqno,
        };
        let seen = [
            look(0, 0, 1),
            look(90, 90, 2),
            look(100, 100, 3),
            look(110, 125, 4),
            look(155, 160, 6),
        ];
        let standstill = standstill_before(&seen, 5).expect("it was seen");
        assert_eq!((standstill.from, standstill.to), (at(110), at(160)));
        assert!(standstill_before(&seen, 7).is_none());
        // Nothing passed between COMMIT and the transaction: only the answer tells.
        let stalled = |committing| ordered(&[standstill], at(committing), at(150));
        assert_eq!(stalled(105), at(110));
        assert_eq!(stalled(120), at(150));
    }

    #[test]
    fn a_trial_keeps_its_seconds_around_the_transaction() {
        let start = Instant::now();
        let window = |from_ms, to_ms| Window {
            from: start + Duration::from_millis(from_ms),
            to: start + Duration::from_millis(to_ms),
        };
        let commits = [100, 900, 1200, 2900, 4000].map(|ms| Commit {
            due: start + Duration::from_millis(ms),
            done: start + Duration::from_millis(ms + 10),
        });
        let (usual, until, applying) = (window(0, 2000), window(2500, 2950), window(2950, 3500));
        let measured = evaluated(&commits, usual, until, applying, 0.0);
        assert_eq!(measured.per_second, [2, 1, 1]);
        assert_eq!(measured.figures[FAULT_AT], 2.5);
    }

    #[test]
    fn a_wait_counts_to_the_end_of_the_window() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let commit = |due, done| Commit {
            due: at(due),
            done: at(done),
        };
        let commits = [commit(0, 2), commit(90, 900), commit(110, 900)];
        let window = Window {
            from: at(0),
            to: at(100),
        };
        assert_eq!(waited_ms(&commits, window), [2.0, 10.0]);
    }
}
