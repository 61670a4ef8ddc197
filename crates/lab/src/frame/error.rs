//! Errors that end an experiment early. Each message is one line with its remedy.

use std::io;
use std::path::{Path, PathBuf};

use trireme_testbed::cpu_share::CpuShareError;
use trireme_testbed::interrupt::Interrupted;
use trireme_testbed::sysbench::SysbenchError;
use trireme_testbed::systems::{DeployError, SystemError};
use trireme_testbed::{ClusterError, NodeError, SqlError};

use crate::doe::FactorError;
use crate::oltp::OltpError;
use crate::provider::HostsError;

/// The reason why an experiment ended early.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A system is not available.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A system is available, but the experiment cannot measure it.
    #[error(
        "{0} does not fit: the clients write to all nodes, and the servers get settings of wsrep; leave it out of --systems (plain fits if there is one node at all points)"
    )]
    DoesNotFit(String),
    /// No system has a cell.
    #[error("nothing can be measured with these choices ({0}); choose other --systems or points")]
    NoCells(String),
    /// The chosen factors make no experiment.
    #[error(transparent)]
    Factors(#[from] FactorError),
    /// A system did not work as it should.
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// The hosts of a provider failed.
    #[error(transparent)]
    Hosts(Box<HostsError>),
    /// The load failed.
    #[error("{node}: {source}")]
    Load {
        /// The node's name.
        node: String,
        /// The reason.
        source: SqlError,
    },
    /// sysbench failed.
    #[error(transparent)]
    Oltp(#[from] OltpError),
    /// A table does not hold exactly the acknowledged rows.
    #[error("{acknowledged} {what} were acknowledged, but the table has {found} rows")]
    Rows {
        /// The meaning of a row, in the plural.
        what: &'static str,
        /// The rows that were acknowledged to clients, and the rows of the load.
        acknowledged: u64,
        /// The rows in the table.
        found: u64,
    },
    /// The data contradict each other.
    #[error("consistency condition {number} is violated: {violations} times not \"{text}\"")]
    Inconsistent {
        /// The condition's number in clause 3.3.2 of the standard.
        number: u32,
        /// The condition that must hold.
        text: &'static str,
        /// The number of violations.
        violations: u64,
    },
    /// A client's thread panicked.
    #[error("a client of the load ended without a result; that is a fault of this program")]
    Client,
    /// Memory or disk is too small.
    #[error("{needed_mib} MiB of {what} are needed, {free_mib} MiB are free; {remedy}")]
    TooLittle {
        /// Memory, or the disk with its directory.
        what: String,
        /// The needed MiB.
        needed_mib: u64,
        /// The free MiB.
        free_mib: u64,
        /// The remedy.
        remedy: &'static str,
    },
    /// Processor time cannot be limited.
    #[error("--cpu-per-node: {0}")]
    CpuShare(#[from] CpuShareError),
    /// The nodes' shares leave the clients too little of the machine.
    #[error(
        "--cpu-per-node {per_node}: {nodes} nodes leave too little of {processors} processors to the clients; give a smaller --cpu-per-node or fewer nodes"
    )]
    NothingLeft {
        /// Processors per node.
        per_node: f64,
        /// The number of nodes.
        nodes: usize,
        /// The processors of this machine.
        processors: usize,
    },
    /// A file operation failed.
    #[error("cannot use {path}: {source}; {remedy}", path = path.display(), remedy = remedy(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The directory already holds results.
    #[error("{dir} holds results already; go on with them: --resume {dir}, or choose another --out", dir = .0.display())]
    Exists(PathBuf),
    /// The directory has no run that can continue.
    #[error("{dir} has no run of this experiment to go on with ({reason}); start one with --out", dir = dir.display())]
    NoRun {
        /// The directory.
        dir: PathBuf,
        /// The fault.
        reason: String,
    },
    /// Another invocation is running.
    #[error("another `trireme bench` runs (it holds {}); wait for it, since both would measure each other", .0.display())]
    Busy(PathBuf),
    /// A program or library is another one than at the begin of the run.
    #[error(
        "{fact} changed during the run, it is now: {now}; run from a copy that no build touches, --resume begins a new part of the run"
    )]
    Changed {
        /// The fact's name.
        fact: String,
        /// Its value now.
        now: String,
    },
    /// The client processes began so far apart that their common time says nothing.
    #[error(
        "all clients together ran only {together:.1} of {seconds} s, since they began one after the other: give longer --seconds, or fewer clients"
    )]
    Apart {
        /// The seconds in which all of them ran.
        together: f64,
        /// The wanted seconds.
        seconds: u64,
    },
    /// So many cells in a row failed that the machine may be broken.
    #[error(
        "{cells} measurements in a row failed, each of them twice: mend the cause first; the last one {last}"
    )]
    ManyFailed {
        /// The number of these cells.
        cells: usize,
        /// The failure of the last one, with the place of its logs.
        last: String,
    },
    /// Some cells failed; the others were measured.
    #[error("{failed} measurements failed, each of them twice, and are counted nowhere; make them again with --resume {dir}", dir = dir.display())]
    Failed {
        /// The number of failed cells.
        failed: usize,
        /// The directory of the results.
        dir: PathBuf,
    },
    /// An error that only one experiment has.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
    /// The experiment broke off; the message says how to continue.
    #[error("{reason}; what was measured is in {dir}, go on with --resume {dir}{logs}", dir = dir.display())]
    BrokeOff {
        /// The reason.
        reason: String,
        /// The directory of the results.
        dir: PathBuf,
        /// The directory of the servers' logs, if they are kept.
        logs: String,
    },
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there (servers' data of this run may lie in TMPDIR), then go on with --resume"
        }
        _ => "choose another directory with --out",
    }
}

impl LabError {
    /// Whether the error concerns only this cell: a server or a measurement went wrong, or does not count, and this
    /// machine lacks nothing.
    pub fn concerns_one_cell(&self) -> bool {
        match self {
            Self::Load { .. }
            | Self::Rows { .. }
            | Self::Inconsistent { .. }
            | Self::Apart { .. } => true,
            Self::Oltp(OltpError::Cluster(error)) => is_of_a_server(error),
            Self::Oltp(OltpError::Sysbench(error)) => matches!(
                error,
                SysbenchError::Failed { .. }
                    | SysbenchError::Lost { .. }
                    | SysbenchError::Saturated { .. }
                    | SysbenchError::Blocked { .. }
            ),
            Self::Deploy(error) => match error {
                DeployError::Cluster(error) => is_of_a_server(error),
                DeployError::Sql { .. }
                | DeployError::Verify(_)
                | DeployError::FellBack { .. }
                | DeployError::Replica { .. }
                | DeployError::Dead { .. }
                | DeployError::ViewChanged { .. } => true,
            },
            Self::Hosts(error) => matches!(
                **error,
                HostsError::Diverged { .. } | HostsError::OutOfOrder { .. }
            ),
            _ => false,
        }
    }

    /// Makes the error of a file operation.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_path_buf(),
            source,
        }
    }
}

/// Whether a server hung, ended or refused a statement: with fresh servers the same may work.
fn is_of_a_server(error: &ClusterError) -> bool {
    matches!(
        error,
        ClusterError::Node(
            NodeError::Timeout { .. } | NodeError::Ended { .. } | NodeError::Sql { .. }
        )
    )
}

impl From<ClusterError> for LabError {
    fn from(error: ClusterError) -> Self {
        Self::Deploy(error.into())
    }
}

impl From<SysbenchError> for LabError {
    fn from(error: SysbenchError) -> Self {
        Self::Oltp(error.into())
    }
}

impl From<HostsError> for LabError {
    fn from(error: HostsError) -> Self {
        Self::Hosts(Box::new(error))
    }
}

impl From<NodeError> for LabError {
    fn from(error: NodeError) -> Self {
        ClusterError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_testbed::verify::VerifyError;

    #[test]
    fn nodes_that_differ_concern_one_cell_and_a_missing_program_all() {
        let differing = LabError::Deploy(VerifyError::NoTables.into());
        assert!(differing.concerns_one_cell());
        let blocked = SysbenchError::Blocked {
            node: "node1".to_string(),
        };
        assert!(LabError::from(blocked).concerns_one_cell());
        let io = SysbenchError::Io(io::ErrorKind::NotFound.into());
        assert!(!LabError::from(io).concerns_one_cell());
        assert!(!LabError::from(ClusterError::NotFound("x".into())).concerns_one_cell());
    }

    #[test]
    fn a_server_that_hangs_ends_or_breaks_a_connection_concerns_one_cell() {
        let node = || "node1".to_string();
        let broken = || SqlError::Connection("x".to_string());
        let errors = || {
            let timeout = NodeError::Timeout {
                node: node(),
                what: "synced".to_string(),
                seconds: 60,
                log: "/x".into(),
                tail: String::new(),
            };
            let ended = NodeError::Ended {
                node: node(),
                log: "/x".into(),
                tail: String::new(),
            };
            let sql = NodeError::Sql {
                node: node(),
                source: broken(),
            };
            [timeout, ended, sql]
        };
        for error in errors() {
            assert!(LabError::from(error).concerns_one_cell());
        }
        for error in errors() {
            let preparing = LabError::Oltp(ClusterError::from(error).into());
            assert!(preparing.concerns_one_cell());
        }
        let statement = DeployError::Sql {
            node: node(),
            source: broken(),
        };
        assert!(LabError::from(statement).concerns_one_cell());
        let state = NodeError::State {
            node: node(),
            running: true,
        };
        assert!(!LabError::from(state).concerns_one_cell());
    }
}
