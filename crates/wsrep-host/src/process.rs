//! The process: commands in, replies out.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::node::{Node, NodeError, probe};
use crate::protocol::{Command, Reply};

/// The argument that turns a program into this process.
pub const SUBCOMMAND: &str = "wsrep-host";

/// Carries out the commands of standard input, until it ends or the command is [`Command::Leave`].
pub fn run() -> ExitCode {
    let mut node = None;
    for command in commands() {
        let is_last = command == Command::Leave;
        let reply = obey(&mut node, command).unwrap_or_else(|error| Reply::Failed {
            reason: error.to_string(),
        });
        // On an error the reader is gone: standard input will end soon.
        let _ = say(&reply);
        if is_last {
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::SUCCESS
}

/// Returns the commands. A thread of its own reads them, so that the end of the input also ends the process within a
/// load.
fn commands() -> mpsc::Receiver<Command> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(command) => drop(sender.send(command)),
                Err(error) => eprintln!("host: cannot read {line:?}: {error}"),
            }
        }
        // An orderly exit would run the library's destructors while its threads still run.
        let _ = kill(Pid::this(), Signal::SIGKILL);
    });
    receiver
}

fn obey(node: &mut Option<Node>, command: Command) -> Result<Reply, HostProcessError> {
    let running = |node: &mut Option<Node>| node.take().ok_or(HostProcessError::NotStarted);
    Ok(match command {
        Command::Probe(library) => {
            let identity = probe(&library)?;
            Reply::Identity {
                name: identity.name,
                version: identity.version,
            }
        }
        Command::Start(start) => {
            *node = Some(Node::start(&start)?);
            Reply::Ready
        }
        Command::Leave => {
            running(node)?.leave()?;
            Reply::Left
        }
        Command::Begin => {
            let node = node.as_ref().ok_or(HostProcessError::NotStarted)?;
            node.begin();
            Reply::Begun
        }
        Command::Load(plan) => {
            let node = node.as_ref().ok_or(HostProcessError::NotStarted)?;
            Reply::Loaded(node.load(&plan)?)
        }
        Command::Settle(seqno) => {
            let node = node.as_ref().ok_or(HostProcessError::NotStarted)?;
            Reply::Settled(node.settle(seqno)?)
        }
    })
}

/// The reasons why a command fails.
#[derive(Debug, thiserror::Error)]
enum HostProcessError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("there is no node yet: say Start first")]
    NotStarted,
}

fn say(reply: &Reply) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, reply)?;
    out.write_all(b"\n")?;
    out.flush()
}
