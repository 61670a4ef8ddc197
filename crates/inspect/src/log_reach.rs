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

/// The minutes of commits that the log can serve, at the average rate since the server's start. None if the log begins
/// with the first write-set and is not full, or if the cluster commits nothing.
pub(crate) fn log_minutes(node: &Node) -> Option<f64> {
    let seqnos = log_seqnos(node)? as f64;
    let per_second = commits_per_second(node)?;
    let reaches_first = node.whole("wsrep_local_cached_downto") == Some(1);
    if reaches_first
        && node.number("wsrep_trireme_log_bytes").is_none_or(|used| {
            bytes(node.option("gcache.size")).is_some_and(|size| used < size as f64)
        })
    {
        return None;
    }
    (per_second > 0.0).then(|| seqnos / per_second / 60.0)
}

/// The cluster's write-sets per second since the server's start.
pub(crate) fn commits_per_second(node: &Node) -> Option<f64> {
    let seen = node.number("wsrep_replicated")? + node.number("wsrep_received")?;
    let uptime = node.number("uptime").filter(|seconds| *seconds > 0.0)?;
    Some(seen / uptime)
}
