//! The reach of a node's log: how many write-sets and minutes back. Pure.

use crate::node::{Node, bytes};

/// The number of write-sets that the log can serve.
pub(crate) fn log_seqnos(node: &Node) -> Option<i64> {
    let down_to = node
        .whole("wsrep_local_cached_downto")
        .filter(|seqno| *seqno >= 0)?;
    let committed = node.whole("wsrep_last_committed")?;
    Some((committed - down_to + 1).max(0))
}

/// How far back a log reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// The log begins with the first write-set, and is not full.
    All,
    /// The minutes of commits, at the average rate since FLUSH STATUS.
    Minutes(f64),
    /// The number of write-sets: the rate is unknown, because nothing was committed since FLUSH STATUS.
    Seqnos(i64),
}

/// The reach of the node's log. None if the node does not tell it.
pub(crate) fn log_reach(node: &Node) -> Option<Reach> {
    let seqnos = log_seqnos(node)?;
    let reaches_first = node.whole("wsrep_local_cached_downto") == Some(1);
    if reaches_first
        && node.number("wsrep_trireme_log_bytes").is_none_or(|used| {
            bytes(node.option("gcache.size")).is_some_and(|size| used < size as f64)
        })
    {
        return Some(Reach::All);
    }
    Some(match commits_per_second(node) {
        Some(rate) if rate > 0.0 => Reach::Minutes(seqnos as f64 / rate / 60.0),
        _ => Reach::Seqnos(seqnos),
    })
}

/// The cluster's write-sets per second since FLUSH STATUS.
fn commits_per_second(node: &Node) -> Option<f64> {
    let seen = node.number("wsrep_replicated")? + node.number("wsrep_received")?;
    Some(seen / node.counted_s()?)
}
