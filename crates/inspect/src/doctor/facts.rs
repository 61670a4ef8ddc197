//! What the checks judge: collected before, so that they are pure.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::node::Node;
use crate::text::clipped;

/// Names in a list that is shown.
const LISTED: usize = 5;

/// All that was found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Those that answered, the one that was asked first among them.
    pub(crate) nodes: Vec<Seen>,
    /// Index of the node that was asked first.
    pub(crate) first: usize,
    /// Address and reason of those that did not answer.
    pub(crate) silent: Vec<(String, String)>,
    pub(crate) arbitrators: usize,
    /// Group addresses that are named in `wsrep_cluster_address`, and not there.
    pub(crate) missing: Vec<String>,
    /// Asked of one node: all have the same tables.
    pub(crate) tables: Tables,
    /// The machine of the first node, if it is this one.
    pub(crate) host: Option<Host>,
}

/// One node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) node: Node,
    /// How far its clock is ahead of this machine's, and how far that may be wrong, in milliseconds.
    pub(crate) clock_ms: Option<(f64, f64)>,
    /// All connections; `None` without the privilege PROCESS, or without a majority.
    pub(crate) processes: Option<Vec<Process>>,
}

/// A connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) command: String,
    pub(crate) seconds: f64,
    pub(crate) statement: String,
}

/// Tables that need care. `None`: the user may not see them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) without_primary_key: Option<Vec<String>>,
    pub(crate) not_innodb: Option<Vec<String>>,
}

/// A machine, as its files and programs show it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// Free and total bytes where the write-set log is.
    pub(crate) log_volume: Option<(u64, u64)>,
    /// Free and total bytes where the data are.
    pub(crate) data_volume: Option<(u64, u64)>,
    pub(crate) log_bytes: Option<u64>,
    /// Names of `trireme-damaged-*`.
    pub(crate) damaged: Vec<String>,
    /// Programs that were looked for and found.
    pub(crate) programs: BTreeSet<&'static str>,
    /// Whether `repl.mark_dir` is in memory.
    pub(crate) mark_dir_in_memory: Option<bool>,
    /// Arguments of the server's process.
    pub(crate) arguments: Option<Vec<String>>,
    /// Names of variables in its environment.
    pub(crate) environment: Option<Vec<String>>,
    /// The end of its error log.
    pub(crate) error_log: Option<String>,
    pub(crate) security_files: Vec<SecurityFile>,
    /// Data directories that carry the same replica id as this one.
    pub(crate) same_replica: Vec<PathBuf>,
    /// For how many seconds systemd waits for the server's start; infinite: for ever.
    pub(crate) start_timeout_s: Option<f64>,
    /// Whether an agent answers at its usual port.
    pub(crate) agent_answers: bool,
}

/// A file of certificates, or a private one, that an option names.
#[derive(Clone, Debug)]
pub(crate) struct SecurityFile {
    pub(crate) option: &'static str,
    pub(crate) file: String,
    /// Of certificates: days until the first expires, or why they cannot be read.
    pub(crate) days: Option<Result<i64, String>>,
    /// The mode of a private file that more may read than should.
    pub(crate) exposed: Option<u32>,
}

impl Facts {
    /// The node that was asked first.
    pub(crate) fn first(&self) -> Option<&Node> {
        self.nodes.get(self.first).map(|seen| &seen.node)
    }

    /// Names of the nodes of which `is_so` is true.
    pub(crate) fn those(&self, is_so: impl Fn(&Node) -> bool) -> Vec<String> {
        let of = self.nodes.iter().filter(|seen| is_so(&seen.node));
        of.map(|seen| seen.node.name().to_owned()).collect()
    }

    /// What the nodes say, if it is not the same: `node1 x, node2 y`.
    pub(crate) fn differing(&self, value: impl Fn(&Node) -> String) -> Option<String> {
        let values: BTreeSet<String> = self.nodes.iter().map(|seen| value(&seen.node)).collect();
        let each = self.nodes.iter().map(|seen| {
            let value = value(&seen.node);
            let value = if value.is_empty() { "none" } else { &value };
            format!("{} {}", seen.node.name(), clipped(value, 40))
        });
        (values.len() > 1).then(|| list(&each.collect::<Vec<_>>()))
    }
}

/// The first few, and how many more.
pub(crate) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| clipped(name.as_ref(), 64))
        .collect();
    match names.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
