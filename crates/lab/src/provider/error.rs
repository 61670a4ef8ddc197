//! Errors of the hosts of a provider. Each message is one line with its remedy.

use std::path::PathBuf;
use std::process::ExitStatus;

use trireme_testbed::ports::PortError;

/// The reason why the hosts of a provider failed.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The name is no system of this experiment.
    #[error("unknown system {0:?}; give some of trireme, galera, null, NAME=PATH_OF_A_PROVIDER")]
    Unknown(String),
    /// Two systems have one name.
    #[error(
        "two systems are called {0}; give the other one a name of its own: --systems NAME=PATH"
    )]
    Twice(String),
    /// A library cannot be used.
    #[error("{system}: {reason}; name a provider of the wsrep API 26 in --systems or --provider")]
    Library {
        /// The system.
        system: String,
        /// The reason.
        reason: String,
    },
    /// Shares of the processors were requested.
    #[error("bench provider does not limit processors; leave out --cpu-per-node")]
    NoShares,
    /// There are no ports.
    #[error(transparent)]
    Ports(#[from] PortError),
    /// A host does not start.
    #[error("cannot start {program} as a host: {reason}; it must stay in its place while it runs", program = program.display())]
    Spawn {
        /// This program.
        program: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// A host has ended.
    #[error("{node} of {system} has ended by itself ({status}{said}); its log says why: {log}", log = log.display())]
    Died {
        /// The system.
        system: String,
        /// The node.
        node: String,
        /// The exit status.
        status: ExitStatus,
        /// The last error in its log.
        said: String,
        /// Its log.
        log: PathBuf,
    },
    /// A host failed at a command.
    #[error("{node} of {system}: {reason}{said}; its log says more: {log}", log = log.display())]
    Failed {
        /// The system.
        system: String,
        /// The node.
        node: String,
        /// The reason.
        reason: String,
        /// The last error in its log.
        said: String,
        /// Its log.
        log: PathBuf,
    },
    /// A host does not answer.
    #[error("{node} of {system} has not answered for {seconds} s: its library hangs, or the machine is overloaded; its log: {log}", log = log.display())]
    Silent {
        /// The system.
        system: String,
        /// The node.
        node: String,
        /// The time waited.
        seconds: u64,
        /// Its log.
        log: PathBuf,
    },
    /// A host gave an unexpected answer.
    #[error(
        "{node} of {system} gave an answer that this program does not expect; that is a fault of this program"
    )]
    Confused {
        /// The system.
        system: String,
        /// The node.
        node: String,
    },
    /// Two nodes committed different write-sets.
    #[error(
        "{first} and {second} of {system} have not committed the same write-sets in the same order: {details}; the library has a fault, and the run does not count"
    )]
    Diverged {
        /// The system.
        system: String,
        /// One node.
        first: String,
        /// The other node.
        second: String,
        /// The difference.
        details: String,
    },
    /// Commit order was broken.
    #[error(
        "{node} of {system} committed {count} write-sets before an earlier one; the library has a fault, and the run does not count"
    )]
    OutOfOrder {
        /// The system.
        system: String,
        /// The node.
        node: String,
        /// The number of these write-sets.
        count: u64,
    },
}
