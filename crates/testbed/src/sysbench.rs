//! Runs sysbench against nodes: a [`Load`] goes in, interval reports and a summary come out. Dropping a run ends its
//! process.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::node::Node;
use crate::packages::{self, PackageError};
use crate::sysbench_report::{
    Bucket, IntervalReport, Statistics, Summary, parse_bucket, parse_interval, parse_restarts,
    parse_statistics, parse_summary,
};

/// `oltp_read_write`, with its errors counted by number.
const COUNTED: &str = include_str!("oltp_read_write_counted.lua");

/// The parts of a line that says that a server went away: Lost connection, Server has gone away.
const LOST: [&str; 2] = ["error 2013", "error 2006"];

/// The reason why a run gave no result.
#[derive(Debug, thiserror::Error)]
pub enum SysbenchError {
    /// sysbench is not installed.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The process could not be started.
    #[error("cannot run sysbench: {0}")]
    Io(#[from] io::Error),
    /// sysbench failed.
    #[error("sysbench on {node} failed: {reason}")]
    Failed {
        /// The node that it ran against.
        node: String,
        /// The telling line of its output.
        reason: String,
    },
    /// A server ended during the load.
    #[error(
        "sysbench on {node}: a server died during the load, or closed the connection: its error.log says why; --resume measures again ({reason})"
    )]
    Lost {
        /// The nodes that it ran against.
        node: String,
        /// The telling line of its output.
        reason: String,
    },
    /// The rate is too high for the servers: waiting transactions filled the queue.
    #[error(
        "sysbench on {node} ended: its event queue is full, since the servers cannot hold the rate; give a lower --rate"
    )]
    Saturated {
        /// The node that it ran against.
        node: String,
    },
    /// A statement was still blocked after the end of the load.
    #[error(
        "sysbench on {node}: a statement was blocked for {BLOCKED_SECONDS} s after the end of the load; look for the node that blocks it in the servers' error.log"
    )]
    Blocked {
        /// The node that it ran against.
        node: String,
    },
}

/// The version of the installed sysbench, in its own words.
pub fn version() -> Result<String, SysbenchError> {
    let output = Command::new(packages::sysbench()?)
        .arg("--version")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_string())
}

/// The time limit for a statement after the end of the load, in seconds. Without it one blocked COMMIT keeps sysbench
/// alive.
const BLOCKED_SECONDS: u64 = 60;

/// A load: a script, its tables and its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The script, such as `oltp_read_write`.
    pub script: &'static str,
    /// The database.
    pub database: String,
    /// The number of tables.
    pub tables: usize,
    /// Rows per table at the start.
    pub rows: usize,
    /// Client threads per process.
    pub threads: usize,
    /// Whether keys come from AUTO_INCREMENT columns.
    pub auto_inc: bool,
    /// Transactions per second and process; `None`: as many as possible.
    pub rate: Option<u32>,
}

impl Load {
    /// `oltp_read_write` with keys that the client chooses.
    pub fn read_write(tables: usize, rows: usize, threads: usize) -> Self {
        Self {
            script: "oltp_read_write",
            database: "sbtest".to_string(),
            tables,
            rows,
            threads,
            auto_inc: false,
            rate: None,
        }
    }

    /// Makes the database and the tables, and fills them.
    pub fn prepare(&self, node: &Node) -> Result<(), SysbenchError> {
        let failed = |reason: String| SysbenchError::Failed {
            node: node.name.clone(),
            reason,
        };
        let create = format!("CREATE DATABASE IF NOT EXISTS {}", self.database);
        node.sql()
            .map_err(|e| failed(e.to_string()))?
            .exec(&create)
            .map_err(|e| failed(e.to_string()))?;
        let mut command = self.command(OsStr::new(self.script), std::slice::from_ref(node))?;
        let output = command.arg("prepare").output()?;
        if output.status.success() {
            return Ok(());
        }
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = text.lines().collect();
        Err(failed(reason(&lines)))
    }

    /// Starts the load on `node` for `duration`, or until it is stopped (`None`). Processes at the same time need
    /// different values of `seed`: by default sysbench takes the second of its start, and two processes with the same
    /// seed change the same rows in the same order.
    pub fn start(
        &self,
        node: &Node,
        duration: Option<Duration>,
        seed: u32,
    ) -> Result<Sysbench, SysbenchError> {
        let nodes = std::slice::from_ref(node);
        self.spawn(OsStr::new(self.script), nodes, duration, seed)
    }

    /// Starts `oltp_read_write` in one process, whose threads connect to `nodes` in turns. Its errors are counted by
    /// number (see [`Whole`]).
    ///
    /// # Panics
    /// If there are no nodes.
    pub fn start_counted(
        &self,
        nodes: &[Node],
        duration: Duration,
        seed: u32,
    ) -> Result<Sysbench, SysbenchError> {
        let script = nodes[0].dir.join("oltp_read_write_counted.lua");
        fs::write(&script, COUNTED)?;
        self.spawn(script.as_os_str(), nodes, Some(duration), seed)
    }

    fn spawn(
        &self,
        script: &OsStr,
        nodes: &[Node],
        duration: Option<Duration>,
        seed: u32,
    ) -> Result<Sysbench, SysbenchError> {
        let mut child = self
            .command(script, nodes)?
            .args(time_limit(duration))
            .args(random(seed))
            .args(["--report-interval=1", "--histogram=on", "run"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = Arc::new(Mutex::new(Output::default()));
        let readers = [
            child
                .stdout
                .take()
                .map(|pipe| read_lines(pipe, Arc::clone(&output))),
            child
                .stderr
                .take()
                .map(|pipe| read_lines(pipe, Arc::clone(&output))),
        ];
        let readers = readers.into_iter().flatten().collect();
        Ok(Sysbench {
            node: names(nodes),
            child,
            output,
            readers,
        })
    }

    fn command(&self, script: &OsStr, nodes: &[Node]) -> Result<Command, SysbenchError> {
        // All nodes run the same server.
        let server = nodes.first().map(Node::server).unwrap_or_default();
        let sockets = nodes.iter().map(|node| node.socket().display().to_string());
        let sockets: Vec<String> = sockets.collect();
        let mut command = Command::new(packages::sysbench()?);
        command
            .arg(script)
            .arg("--db-driver=mysql")
            .arg("--mysql-user=root")
            .arg(format!("--mysql-socket={}", sockets.join(",")))
            .arg(format!("--mysql-db={}", self.database))
            .arg(format!("--mysql-ignore-errors={}", server.conflict_codes()))
            .arg(format!("--tables={}", self.tables))
            .arg(format!("--table-size={}", self.rows))
            .arg(format!("--threads={}", self.threads))
            .arg(format!(
                "--auto_inc={}",
                if self.auto_inc { "on" } else { "off" }
            ))
            // A Ctrl-C at the terminal must reach only this program.
            .process_group(0);
        if let Some(rate) = self.rate {
            command.arg(format!("--rate={rate}"));
        }
        Ok(command)
    }
}

/// The output of a run so far.
#[derive(Default)]
struct Output {
    text: VecDeque<String>,
    /// The reports that no caller has taken yet.
    intervals: Vec<IntervalReport>,
    restarts: BTreeMap<u16, u64>,
    latencies: Vec<Bucket>,
}

/// The whole result of a run of [`Load::start_counted`].
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// The report at the end.
    pub statistics: Statistics,
    /// The interval reports that no caller has taken before.
    pub intervals: Vec<IntervalReport>,
    /// How often threads restarted a transaction after an error, by the error's number.
    pub restarts: BTreeMap<u16, u64>,
}

/// The message of sysbench 1.0 when 100,000 transactions wait for a thread.
const QUEUE_FULL: &str = "event queue is full";

/// The message of sysbench when a statement is still blocked at the limit of [`BLOCKED_SECONDS`].
const FORCED: &str = "limit has expired, forcing shutdown";

/// The most lines kept; the summary has about 40. A long run that repeats an error must not fill the memory.
const MAX_LINES: usize = 200;

/// A running sysbench. Dropping it kills the process.
pub struct Sysbench {
    /// The name of its node.
    pub node: String,
    child: Child,
    output: Arc<Mutex<Output>>,
    readers: Vec<JoinHandle<()>>,
}

impl Sysbench {
    /// The newest report since the last call; None if no line has come.
    pub fn take_report(&self) -> Option<IntervalReport> {
        self.take_reports().pop()
    }

    /// All reports since the last call, in order.
    pub fn take_reports(&self) -> Vec<IntervalReport> {
        std::mem::take(&mut lock(&self.output).intervals)
    }

    /// The latencies of the transactions, after the run has ended by itself. Empty before that, and if the run broke
    /// off.
    pub fn latencies(&mut self) -> Vec<Bucket> {
        self.join_readers();
        lock(&self.output).latencies.clone()
    }

    /// Whether the process has ended, for any reason.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The reason why the process ended, from its output.
    pub fn failure(&mut self) -> SysbenchError {
        self.join_readers();
        let output = lock(&self.output);
        let lines: Vec<&str> = output.text.iter().map(String::as_str).collect();
        error(self.node.clone(), &lines)
    }

    /// Ends the process. Its connections break, and the servers roll back the open transactions.
    pub fn stop(mut self) {
        self.end();
    }

    /// Waits until the run is over, and returns the summary.
    pub fn finish(mut self) -> Result<Summary, SysbenchError> {
        self.parsed(parse_summary)
    }

    /// Waits until the run is over, and returns the whole result.
    pub fn finish_whole(mut self) -> Result<Whole, SysbenchError> {
        let statistics = self.parsed(parse_statistics)?;
        let mut output = lock(&self.output);
        Ok(Whole {
            statistics,
            intervals: std::mem::take(&mut output.intervals),
            restarts: std::mem::take(&mut output.restarts),
        })
    }

    fn parsed<T>(&mut self, parse: fn(&str) -> Option<T>) -> Result<T, SysbenchError> {
        let status = self.child.wait()?;
        self.join_readers();
        let text = lock(&self.output)
            .text
            .iter()
            .fold(String::new(), |all, line| all + line + "\n");
        match parse(&text) {
            Some(parsed) if status.success() => Ok(parsed),
            _ => Err(self.failure()),
        }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.join_readers();
    }

    fn join_readers(&mut self) {
        if self.has_ended() {
            for reader in self.readers.drain(..) {
                // A reader thread that panicked has no more output.
                let _ = reader.join();
            }
        }
    }
}

impl Drop for Sysbench {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn read_lines(pipe: impl Read + Send + 'static, output: Arc<Mutex<Output>>) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut output = lock(&output);
            if let Some(report) = parse_interval(&line) {
                output.intervals.push(report);
                continue;
            }
            if let Some(restarts) = parse_restarts(&line) {
                for (error, count) in restarts {
                    *output.restarts.entry(error).or_default() += count;
                }
                continue;
            }
            if let Some(bucket) = parse_bucket(&line) {
                output.latencies.push(bucket);
                continue;
            }
            if output.text.len() == MAX_LINES {
                output.text.pop_front();
            }
            output.text.push_back(line);
        }
    })
}

/// The arguments that end a run after `duration`, even if a statement is blocked.
fn time_limit(duration: Option<Duration>) -> Vec<String> {
    let Some(duration) = duration else {
        return vec!["--time=0".to_string()];
    };
    vec![
        format!("--time={}", duration.as_secs()),
        format!("--forced-shutdown={BLOCKED_SECONDS}"),
    ]
}

/// The arguments that decide the random numbers. The distribution is the default of sysbench 1.0; another version may have
/// another one.
fn random(seed: u32) -> [String; 2] {
    let seed = seed.clamp(1, i32::MAX as u32);
    [
        "--rand-type=special".to_string(),
        format!("--rand-seed={seed}"),
    ]
}

/// The names of nodes, joined for a sentence.
fn names(nodes: &[Node]) -> String {
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    names.join(", ")
}

/// The reason why a run against `node` ended with this output.
fn error(node: String, lines: &[&str]) -> SysbenchError {
    let says = |text: &str| lines.iter().any(|line| line.contains(text));
    if says(QUEUE_FULL) {
        SysbenchError::Saturated { node }
    } else if says(FORCED) {
        SysbenchError::Blocked { node }
    } else {
        let reason = reason(lines);
        match LOST.iter().any(|lost| reason.contains(lost)) {
            true => SysbenchError::Lost { node, reason },
            false => SysbenchError::Failed { node, reason },
        }
    }
}

/// The first telling line of the output: each thread repeats it.
fn reason(lines: &[&str]) -> String {
    let fatal = lines
        .iter()
        .find(|line| line.contains("FATAL") && line.contains("rror"));
    let telling = fatal.or_else(|| lines.iter().rfind(|line| !line.trim().is_empty()));
    telling.map_or("it ended without a word".to_string(), |line| {
        line.trim().to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_is_told_from_a_failure() {
        let full =
            "FATAL: The event queue is full. This means the worker threads are unable to keep up";
        let is_saturated = |lines: &[&str]| {
            matches!(
                error("n".to_string(), lines),
                SysbenchError::Saturated { .. }
            )
        };
        assert!(is_saturated(&["Threads started!", "", full]));
        assert!(!is_saturated(&["FATAL: error 2013", ""]));
    }

    #[test]
    fn a_blocked_statement_ends_a_run_and_is_told() {
        let limited = time_limit(Some(Duration::from_secs(30)));
        assert_eq!(limited, ["--time=30", "--forced-shutdown=60"]);
        assert_eq!(time_limit(None), ["--time=0"]);
        let announced = "Forcing shutdown in 90 seconds";
        let forced = "FATAL: The --max-time limit has expired, forcing shutdown...";
        let is_blocked =
            |lines: &[&str]| matches!(error("n".to_string(), lines), SysbenchError::Blocked { .. });
        assert!(is_blocked(&[announced, forced, "", "General statistics:"]));
        assert!(!is_blocked(&[announced, "FATAL: error 2013"]));
    }

    #[test]
    fn the_random_numbers_do_not_depend_on_the_version_or_the_time() {
        assert_eq!(random(7), ["--rand-type=special", "--rand-seed=7"]);
        // 0 would be the time.
        assert_eq!(random(0)[1], "--rand-seed=1");
    }

    #[test]
    fn the_error_is_the_reason() {
        let lines = [
            "FATAL: mysql_stmt_execute() returned error 2013 (Lost connection)",
            "FATAL: `thread_run' function failed: ...",
        ];
        assert!(reason(&lines).contains("2013"));
        let lost = error("node1, node2".to_string(), &lines).to_string();
        assert!(
            lost.contains("a server died") && lost.contains("--resume"),
            "{lost}"
        );
        let denied = error("node1".to_string(), &["FATAL: error 1045: Access denied"]);
        assert!(matches!(denied, SysbenchError::Failed { .. }));
        assert_eq!(reason(&["a", "b", ""]), "b");
        assert_eq!(reason(&[]), "it ended without a word");
    }
}
