//! One node: a server process with its own directory and ports. The cluster starts, stops, kills and asks it. The
//! process id is stored in the cluster file, so that a later invocation finds the server again; the server's command
//! line proves that it is ours.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::cpu_share::{CpuShare, CpuShareError, Throttling};
use crate::interrupt;
use crate::node_error::{NodeError, telling_lines};
use crate::ports::NodePorts;
use crate::process;
use crate::recovery::{self, Position};
use crate::rsync_as_root;
use crate::server::Server;
use crate::sql::{Sql, SqlError};
use crate::status::NodeStatus;

/// Counts the snapshots that a donor has sent, from its log. With `--bypass` a script copies nothing.
pub fn snapshots_given(log: &str) -> usize {
    let runs = log
        .lines()
        .filter(|line| line.contains("Running: 'wsrep_sst_"));
    let gives = |line: &&str| line.contains("donor") && !line.contains("--bypass");
    runs.filter(gives).count()
}

/// The way in which a node starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartMode {
    /// As the first of a new primary component (`--wsrep-new-cluster`).
    Bootstrap,
    /// With its ordinary configuration.
    Join,
    /// The same as `Join`, but without the recovery of the position before: as containers start a server.
    JoinUnprepared,
}

/// One node: a server process with its own directory and ports.
#[derive(Debug, Serialize, Deserialize)]
pub struct Node {
    /// `node1`, `node2`, ...; also its `wsrep_node_name`.
    pub name: String,
    /// The directory of its files: `my.cnf`, `data/`, `error.log`, `mysqld.sock`.
    pub dir: PathBuf,
    /// Its ports on 127.0.0.1.
    pub ports: NodePorts,
    /// Its program.
    #[serde(default)]
    server: Server,
    /// The process that was started last; it may be dead by now.
    pid: Option<u32>,
    /// Whether the data directory has been used: then the next start recovers the position first.
    launched: bool,
    /// The child process, if this program started it; it must be reaped.
    #[serde(skip)]
    child: Option<Child>,
    /// Further environment variables of the server.
    #[serde(skip)]
    environment: Vec<(String, OsString)>,
    /// The server's share of the processors, if it is limited.
    #[serde(skip)]
    cpu_share: Option<CpuShare>,
}

impl Node {
    pub(crate) fn new(name: String, dir: PathBuf, ports: NodePorts, server: Server) -> Self {
        Self {
            name,
            dir,
            ports,
            server,
            pid: None,
            launched: false,
            child: None,
            environment: Vec::new(),
            cpu_share: None,
        }
    }

    /// Its program.
    pub fn server(&self) -> Server {
        self.server
    }

    /// Its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("mysqld.sock")
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.dir.join("error.log")
    }

    /// The whole text of the server's log.
    pub fn log_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log()).unwrap_or_default()).into_owned()
    }

    /// Its data directory.
    pub fn datadir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The command that connects to it.
    pub fn connect_command(&self) -> String {
        format!("mariadb --defaults-file={}", self.my_cnf().display())
    }

    /// Its configuration file.
    pub fn my_cnf(&self) -> PathBuf {
        self.dir.join("my.cnf")
    }

    /// The process id while the server runs.
    pub fn pid(&self) -> Option<u32> {
        self.pid.filter(|pid| match self.child {
            // Before its exit status is taken, no other process can get the id of a child.
            Some(_) => !process::has_ended(*pid),
            None => process::is_alive(*pid, &self.defaults_argument()),
        })
    }

    /// Opens a connection through the unix socket; every read and write fails after `timeout`.
    pub fn sql_with_timeout(&self, timeout: Duration) -> Result<Sql, NodeError> {
        Sql::connect_socket(&self.socket(), timeout).map_err(|source| self.sql_error(source))
    }

    /// Opens a connection through the unix socket, with time for long statements.
    pub fn sql(&self) -> Result<Sql, NodeError> {
        self.sql_with_timeout(Duration::from_secs(120))
    }

    /// Reads the node's status variables. Fails soon if the node does not answer.
    pub fn status(&self) -> Result<NodeStatus, NodeError> {
        let mut sql = self.sql_with_timeout(Duration::from_secs(2))?;
        NodeStatus::read(&mut sql).map_err(|source| self.sql_error(source))
    }

    /// Starts the server and does not wait for it. If the node has run before, its position is recovered first.
    /// `bash_env`: a file that the server's bash scripts read first (see `rsync_as_root`).
    pub(crate) fn spawn(
        &mut self,
        mode: StartMode,
        wsrep: bool,
        bash_env: Option<&Path>,
    ) -> Result<(), NodeError> {
        if self.pid().is_some() {
            return Err(NodeError::State {
                node: self.name.clone(),
                running: true,
            });
        }
        self.reap();
        let mut command = self.server_command()?;
        if wsrep && self.launched && mode != StartMode::JoinUnprepared {
            let position = self.recover_position()?;
            command.arg(format!("--wsrep-start-position={position}"));
        }
        if wsrep && mode == StartMode::Bootstrap {
            command.arg("--wsrep-new-cluster");
        }
        if let Some(file) = bash_env {
            command.env(rsync_as_root::VARIABLE, file);
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .map_err(|source| self.io_error("open its error.log", source))?;
        let log_too = log
            .try_clone()
            .map_err(|source| self.io_error("open its error.log", source))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(log_too)
            // A Ctrl-C at the terminal must reach only this program, which then stops the servers cleanly.
            .process_group(0)
            .spawn()
            .map_err(|source| self.io_error("start its server", source))?;
        self.pid = Some(child.id());
        self.child = Some(child);
        self.launched = true;
        self.join_cpu_share()
    }

    /// From now on the server, even after a restart, gets `processors` (0.25: a quarter of one) in each period.
    pub(crate) fn limit_cpu(&mut self, processors: f64, period: Duration) -> Result<(), NodeError> {
        let share = CpuShare::new(&self.name).map_err(|e| self.cpu_share_error(e))?;
        let limited = share.limit(processors, period);
        limited.map_err(|e| self.cpu_share_error(e))?;
        self.cpu_share = Some(share);
        self.join_cpu_share()
    }

    /// The server's waits for its share; None if the share is not limited.
    pub fn throttling(&self) -> Option<Throttling> {
        self.cpu_share.as_ref().map(CpuShare::throttling)
    }

    fn join_cpu_share(&self) -> Result<(), NodeError> {
        let joined = match (&self.cpu_share, self.pid()) {
            (Some(share), Some(pid)) => share.add(pid),
            _ => Ok(()),
        };
        joined.map_err(|e| self.cpu_share_error(e))
    }

    fn cpu_share_error(&self, source: CpuShareError) -> NodeError {
        NodeError::CpuShare {
            node: self.name.clone(),
            source: Box::new(source),
        }
    }

    /// Runs `mariadbd --wsrep-recover` on the stopped node. This repairs the database, as any start after a crash does.
    pub fn recover_position(&self) -> Result<Position, NodeError> {
        let output = self
            .server_command()?
            .args(["--wsrep-recover", "--disable-log-error"])
            .stdin(Stdio::null())
            .output()
            .map_err(|source| self.io_error("run mariadbd --wsrep-recover", source))?;
        let text = String::from_utf8_lossy(&output.stderr);
        recovery::parse_output(&text).ok_or_else(|| {
            let lines: Vec<String> = text.lines().map(str::to_string).collect();
            NodeError::Recover {
                node: self.name.clone(),
                tail: telling_lines(&lines),
            }
        })
    }

    pub(crate) fn set_environment(&mut self, name: &str, value: OsString) {
        self.environment.push((name.to_string(), value));
    }

    /// Waits until the node is a synced, ready member; a plain server, until it answers.
    pub fn wait_synced(&mut self, timeout: Duration) -> Result<NodeStatus, NodeError> {
        let start = Instant::now();
        loop {
            let elapsed = start.elapsed();
            if let Ok(status) = self.status() {
                if status.is_synced() {
                    return Ok(status);
                }
            }
            self.wait_step(elapsed, timeout, "synced")?;
        }
    }

    /// Fails if the server is dead.
    pub(crate) fn check_running(&mut self) -> Result<(), NodeError> {
        if self.pid().is_some() {
            return Ok(());
        }
        self.reap();
        Err(NodeError::Ended {
            node: self.name.clone(),
            log: self.log(),
            tail: self.log_tail(),
        })
    }

    /// One step of a waiting loop. Fails if the server is dead, or if the time was over before the node was asked:
    /// `elapsed` is taken then, since the answer itself may take long.
    pub(crate) fn wait_step(
        &mut self,
        elapsed: Duration,
        timeout: Duration,
        what: &str,
    ) -> Result<(), NodeError> {
        self.check_running()?;
        if elapsed > timeout {
            return Err(NodeError::Timeout {
                node: self.name.clone(),
                what: what.to_string(),
                seconds: timeout.as_secs(),
                log: self.log(),
                tail: self.log_tail(),
            });
        }
        interrupt::sleep(Duration::from_millis(50))?;
        Ok(())
    }

    /// Stops the server cleanly (SIGTERM), and kills it after `timeout`. Returns whether it was killed.
    pub fn stop(&mut self, timeout: Duration) -> Result<bool, NodeError> {
        let Some(pid) = self.pid() else {
            self.reap();
            return Ok(false);
        };
        // A paused process does not see SIGTERM.
        self.signal(Signal::CONT)?;
        self.signal(Signal::TERM)?;
        if self.wait_end(pid, timeout) {
            return Ok(false);
        }
        self.kill()?;
        Ok(true)
    }

    /// Kills the server with -9 and waits until it is gone.
    pub fn kill(&mut self) -> Result<(), NodeError> {
        if let Some(pid) = self.pid() {
            self.signal(Signal::KILL)?;
            if !self.wait_end(pid, Duration::from_secs(30)) {
                let source =
                    io::Error::new(io::ErrorKind::TimedOut, "still there 30 s after SIGKILL");
                return Err(self.io_error("kill the server", source));
            }
        }
        self.reap();
        Ok(())
    }

    /// Freezes the server (SIGSTOP): its connections stay open, but it sends nothing.
    pub fn pause(&self) -> Result<(), NodeError> {
        self.signal_running(Signal::STOP)
    }

    /// Resumes a paused server (SIGCONT).
    pub fn resume(&self) -> Result<(), NodeError> {
        self.signal_running(Signal::CONT)
    }

    fn signal_running(&self, signal: Signal) -> Result<(), NodeError> {
        if self.pid().is_none() {
            return Err(NodeError::State {
                node: self.name.clone(),
                running: false,
            });
        }
        self.signal(signal)
    }

    fn signal(&self, signal: Signal) -> Result<(), NodeError> {
        match self.pid() {
            Some(pid) => process::signal(pid, signal)
                .map_err(|source| self.io_error("signal the server", source)),
            None => Ok(()),
        }
    }

    /// Cannot be interrupted, because servers are stopped in this way after an interruption.
    fn wait_end(&mut self, pid: u32, timeout: Duration) -> bool {
        let start = Instant::now();
        // Waits until files and ports are free, which is later than the server's last answer.
        while !process::has_ended(pid) {
            if start.elapsed() > timeout {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.reap();
        true
    }

    /// Takes the exit status of a dead child, so that no zombie remains.
    fn reap(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The process has ended, so this does not wait.
            let _ = child.wait();
        }
    }

    fn server_command(&self) -> Result<Command, NodeError> {
        let mut command = Command::new(self.server.program()?);
        command.arg(self.defaults_argument());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// The first argument of the server: by this the process is recognised as ours.
    fn defaults_argument(&self) -> String {
        format!("--defaults-file={}", self.my_cnf().display())
    }

    fn log_tail(&self) -> String {
        telling_lines(&process::tail(&self.log(), 200))
    }

    /// Whether the node left the cluster as its last member, according to `grastate.dat`.
    pub(crate) fn is_safe_to_bootstrap(&self) -> bool {
        let grastate = fs::read_to_string(self.datadir().join("grastate.dat"));
        grastate.is_ok_and(|text| recovery::is_safe_to_bootstrap(&text))
    }

    /// Makes the error of an action on this node's process or files.
    pub fn io_error(&self, action: &str, source: io::Error) -> NodeError {
        NodeError::Io {
            node: self.name.clone(),
            action: action.to_string(),
            source,
        }
    }

    /// Makes the error of a statement on this node.
    pub fn sql_error(&self, source: SqlError) -> NodeError {
        NodeError::Sql {
            node: self.name.clone(),
            source,
        }
    }
}

/// The longest path of a unix socket, in bytes (`sun_path` without its end mark).
pub(crate) const MAX_SOCKET_PATH_BYTES: usize = 107;

/// Whether a socket can have this path.
pub(crate) fn fits_socket(path: &Path) -> bool {
    path.as_os_str().len() <= MAX_SOCKET_PATH_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_was_never_started_is_not_running() {
        let ports = NodePorts {
            host: std::net::Ipv4Addr::LOCALHOST,
            mysql: 1,
            group: 2,
            sst: 4,
        };
        let mut node = Node::new(
            "node1".to_string(),
            "/nonexistent".into(),
            ports,
            Server::MariaDb,
        );
        assert_eq!(node.pid(), None);
        assert!(!node.stop(Duration::ZERO).unwrap());
        assert!(matches!(
            node.pause(),
            Err(NodeError::State { running: false, .. })
        ));
    }
}
