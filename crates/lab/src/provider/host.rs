//! One host: a process of this program that is a node, and the exchange of commands and replies with it.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use trireme_testbed::{interrupt, process};
use trireme_wsrep_host::{Command, Reply, SUBCOMMAND};

use super::error::HostsError;
use crate::frame::LabError;

/// The interval at which working hosts are asked for their answers.
const POLL: Duration = Duration::from_millis(10);

/// The time limit for the last answer of a process that has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The lines at the end of a log that are searched for an error.
const LOG_LINES: usize = 200;

/// A process of this program that is a node. Dropping it kills it.
pub struct Host {
    system: String,
    node: String,
    log: PathBuf,
    child: Child,
    input: ChildStdin,
    replies: Receiver<Reply>,
}

impl Host {
    /// Starts the process, with its messages in `log`.
    pub fn spawn(system: &str, node: &str, log: &Path) -> Result<Self, LabError> {
        let program = env::current_exe().unwrap_or_default();
        let failed = |reason: std::io::Error| HostsError::Spawn {
            program: program.clone(),
            reason: reason.to_string(),
        };
        let file = File::create(log).map_err(LabError::io(log))?;
        let mut child = Process::new(&program)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            // Ctrl-C must reach only this program, which ends its hosts itself.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for as pipes");
        };
        let (sender, replies) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for reply in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                // The receiver has gone.
                if sender.send(reply).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            system: system.to_string(),
            node: node.to_string(),
            log: log.to_path_buf(),
            child,
            input,
            replies,
        })
    }

    /// The name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Sends a command.
    fn tell(&mut self, command: &Command) {
        let line = serde_json::to_string(command).expect("a command has only plain fields");
        // A write error is ignored: the wait for the answer reports that the process has ended.
        let _ = writeln!(self.input, "{line}");
    }

    /// Returns the answer if it has come.
    fn answer(&mut self) -> Result<Option<Reply>, HostsError> {
        let ended = self.child.try_wait().ok().flatten();
        let reply = match ended {
            // The process's last answer may still be in the pipe; the channel closes after it.
            Some(_) => self.replies.recv_timeout(LAST_WORDS).ok(),
            None => self.replies.try_recv().ok(),
        };
        match (reply, ended) {
            (Some(Reply::Failed { reason }), _) => Err(HostsError::Failed {
                system: self.system.clone(),
                node: self.node.clone(),
                reason,
                said: self.last_error(),
                log: self.log.clone(),
            }),
            (Some(reply), _) => Ok(Some(reply)),
            (None, Some(status)) => Err(HostsError::Died {
                system: self.system.clone(),
                node: self.node.clone(),
                status,
                said: self.last_error(),
                log: self.log.clone(),
            }),
            (None, None) => Ok(None),
        }
    }

    /// The last error in the log, for appending to a message.
    fn last_error(&self) -> String {
        let lines = process::tail(&self.log, LOG_LINES);
        let is_error = |line: &&String| line.starts_with("ERROR") || line.starts_with("FATAL");
        let found = lines.iter().rev().find(is_error);
        found.map_or(String::new(), |line| {
            format!(", {}", line.trim_end_matches('.'))
        })
    }

    /// The error for an unexpected answer.
    pub fn confused(&self) -> LabError {
        HostsError::Confused {
            system: self.system.clone(),
            node: self.node.clone(),
        }
        .into()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It is no error if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends each host its command, and waits for all answers. Fails as soon as one host fails or ends.
pub fn ask(
    hosts: &mut [Host],
    commands: &[Command],
    timeout: Duration,
) -> Result<Vec<Reply>, LabError> {
    for (host, command) in hosts.iter_mut().zip(commands) {
        host.tell(command);
    }
    let began = Instant::now();
    let mut answers: Vec<Option<Reply>> = vec![None; hosts.len()];
    loop {
        interrupt::check()?;
        for (host, answer) in hosts.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                *answer = host.answer()?;
            }
        }
        let missing = answers.iter().position(Option::is_none);
        let Some(missing) = missing else {
            return Ok(answers.into_iter().flatten().collect());
        };
        if began.elapsed() > timeout {
            let host = &hosts[missing];
            return Err(HostsError::Silent {
                system: host.system.clone(),
                node: host.node.clone(),
                seconds: timeout.as_secs(),
                log: host.log.clone(),
            }
            .into());
        }
        thread::sleep(POLL);
    }
}
