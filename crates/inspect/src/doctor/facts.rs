//! The facts that the checks judge. They are collected first, so that the checks are pure.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::doctor::finding::Finding;
use crate::members::Absent;
use crate::node::Node;
use crate::text::clipped;

/// The most names that a list shows.
const LISTED: usize = 5;

/// The remedy for members that do not answer. MariaDB's root logs in by its socket only.
pub(crate) const SILENT_REMEDY: &str = "ask with --user NAME --password-file FILE, as a user that all nodes let in: \
    trireme agent grant --doctor --from HOST --user NAME --password-file FILE";

/// All facts about a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The nodes that answered, in the order of the view.
    pub(crate) nodes: Vec<Seen>,
    /// The index of the node that was asked first.
    pub(crate) first: usize,
    /// The members that did not answer: address and reason.
    pub(crate) silent: Vec<(String, String)>,
    /// Members without an address for clients: arbitrators, and servers that listen on loopback only.
    pub(crate) without_address: usize,
    /// The group addresses in `wsrep_cluster_address` without a member.
    pub(crate) absent: Absent,
    /// The tables of one node: all nodes have the same.
    pub(crate) tables: Tables,
    /// The first node's machine, if it is this one.
    pub(crate) host: Option<Host>,
}

/// One node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) node: Node,
    /// The node's clock minus this machine's, and the possible error, both in ms.
    pub(crate) clock_ms: Option<(f64, f64)>,
    /// The clients' long statements, the longest first; None if the user lacks the privilege PROCESS, or the node has
    /// no majority.
    pub(crate) statements: Option<Vec<Process>>,
    /// The users of all connections; None likewise.
    pub(crate) users: Option<Vec<String>>,
}

/// The milliseconds from which on a statement is long.
pub(crate) const LONG_MS: u32 = 3000;

/// A connection that executes a statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) seconds: f64,
    pub(crate) statement: String,
}

/// The tables that need care; None if the user may not see them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) without_primary_key: Option<Vec<String>>,
    pub(crate) not_innodb: Option<Vec<String>>,
}

/// The state of a machine, from its files and programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// The free and the total bytes of the volume with the write-set log.
    pub(crate) log_volume: Option<(u64, u64)>,
    /// The free and the total bytes of the volume with the data.
    pub(crate) data_volume: Option<(u64, u64)>,
    /// The bytes of the write-set log; None if its directory cannot be read.
    pub(crate) log_bytes: Option<u64>,
    /// The names of files `trireme-damaged-*`; None likewise.
    pub(crate) damaged: Option<Vec<String>>,
    /// The needed programs that were found.
    pub(crate) programs: BTreeSet<&'static str>,
    /// Whether the server's configuration asks for encrypted snapshots.
    pub(crate) sst_encrypts: bool,
    /// Whether `repl.mark_dir` is on a file system in memory.
    pub(crate) mark_dir_in_memory: Option<bool>,
    /// The arguments of the server's process.
    pub(crate) arguments: Option<Vec<String>>,
    /// The names of the variables in the environment of the server's process.
    pub(crate) environment: Option<Vec<String>>,
    /// The end of the server's error log, or of its unit's journal.
    pub(crate) error_log: Option<String>,
    pub(crate) security_files: Vec<SecurityFile>,
    /// Other directories with the same replica id; None if the own id, or those beside it, cannot be read.
    pub(crate) same_replica: Option<Vec<PathBuf>>,
    /// The seconds that systemd allows for the server's start; infinite if it has no limit.
    pub(crate) start_timeout_s: Option<f64>,
    /// Whether an agent answers at its default port.
    pub(crate) agent_answers: bool,
}

/// The option that names the file of revocation lists.
pub(crate) const CRL: &str = "socket.ssl_crl";

/// A file with certificates or revocation lists, or a private file, that an option names.
#[derive(Clone, Debug)]
pub(crate) struct SecurityFile {
    pub(crate) option: &'static str,
    pub(crate) file: String,
    /// For certificates and revocation lists: the days until the first one ends, or the error on reading.
    pub(crate) days: Option<Result<i64, String>>,
    /// The mode of a private file that too many users may read, or the error on examining it.
    pub(crate) exposed: Result<Option<u32>, String>,
}

impl Facts {
    /// The node that was asked first.
    pub(crate) fn first(&self) -> Option<&Node> {
        self.nodes.get(self.first).map(|seen| &seen.node)
    }

    /// The names of the nodes for which `is_so` is true.
    pub(crate) fn those(&self, is_so: impl Fn(&Node) -> bool) -> Vec<String> {
        let of = self.nodes.iter().filter(|seen| is_so(&seen.node));
        of.map(|seen| seen.node.name().to_owned()).collect()
    }

    /// The values of all nodes, as `node1 x, node2 y`; None if all are equal.
    pub(crate) fn differing(&self, value: impl Fn(&Node) -> String) -> Option<String> {
        let values: BTreeSet<String> = self.nodes.iter().map(|seen| value(&seen.node)).collect();
        let each = self.nodes.iter().map(|seen| {
            let value = value(&seen.node);
            let value = if value.is_empty() { "none" } else { &value };
            format!("{} {}", seen.node.name(), clipped(value, 40))
        });
        (values.len() > 1).then(|| list(&each.collect::<Vec<_>>()))
    }

    /// The finding `ok`; unknown, if a member did not answer, which may be otherwise.
    pub(crate) fn unless_silent(&self, ok: &str) -> Finding {
        self.unless_hidden(ok, |_| true)
    }

    /// The finding `ok`; unknown, if a member did not answer, or if there is a node for which `is_known` is false.
    pub(crate) fn unless_hidden(&self, ok: &str, is_known: impl Fn(&Seen) -> bool) -> Finding {
        let hidden = self.hidden(is_known);
        let found = match hidden.is_empty() {
            true => return Finding::ok(ok),
            false => Finding::unknown(format!("{ok}, but these did not tell: {}", list(&hidden))),
        };
        match self.silent.is_empty() {
            true => found,
            false => found.with_remedy(SILENT_REMEDY),
        }
    }

    /// The addresses of the members that did not answer, and the names of the nodes for which `is_known` is false.
    pub(crate) fn hidden(&self, is_known: impl Fn(&Seen) -> bool) -> Vec<String> {
        let silent = self.silent.iter().map(|(address, _)| address.clone());
        let unknown = self.nodes.iter().filter(|seen| !is_known(seen));
        let unknown = unknown.map(|seen| seen.node.name().to_owned());
        silent.chain(unknown).collect()
    }
}

/// The first few names, and the number of the others.
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
