//! Checks of the server's settings.

use crate::doctor::facts::{Facts, LONG_MS, Process, Seen, list};
use crate::doctor::finding::Finding;
use crate::doctor::statement::is_ddl;
use crate::node::Node;

pub(crate) fn snapshot_isolation(facts: &Facts) -> Finding {
    let off = facts.those(|node| node.variable("innodb_snapshot_isolation") == "OFF");
    match off.is_empty() {
        true => Finding::ok("innodb_snapshot_isolation is on, or this series does not have it"),
        false => Finding::warning(
            format!("innodb_snapshot_isolation=OFF: {}", list(&off)),
            "innodb_snapshot_isolation=ON: without it REPEATABLE READ loses updates, on one node as well as on several",
        ),
    }
}

pub(crate) fn autoinc(facts: &Facts) -> Finding {
    let wrong = facts.those(|node| !matches!(node.variable("innodb_autoinc_lock_mode"), "2" | ""));
    match wrong.is_empty() {
        true => Finding::ok("innodb_autoinc_lock_mode is 2"),
        false => Finding::failed(
            format!("innodb_autoinc_lock_mode is not 2: {}", list(&wrong)),
            "innodb_autoinc_lock_mode=2: with others, appliers and clients wait for each other",
        ),
    }
}

pub(crate) fn row_format(facts: &Facts) -> Finding {
    let wrong = facts.those(|node| !matches!(node.variable("binlog_format"), "ROW" | ""));
    match wrong.is_empty() {
        true => Finding::ok("binlog_format is ROW"),
        false => Finding::failed(
            format!("binlog_format is not ROW: {}", list(&wrong)),
            "binlog_format=ROW: only rows are replicated",
        ),
    }
}

pub(crate) fn engine(facts: &Facts) -> Finding {
    let wrong =
        facts.those(|node| !matches!(node.variable("default_storage_engine"), "InnoDB" | ""));
    match wrong.is_empty() {
        true => Finding::ok("new tables are InnoDB"),
        false => Finding::warning(
            format!("default_storage_engine is not InnoDB: {}", list(&wrong)),
            "default_storage_engine=InnoDB: others are not replicated",
        ),
    }
}

pub(crate) fn innodb_flush(facts: &Facts) -> Finding {
    // In `memory` mode that flush is all that keeps commits when all nodes die.
    let dear = facts.those(|node| {
        node.variable("innodb_flush_log_at_trx_commit") == "1"
            && node.option("repl.durability") == "os"
    });
    match dear.is_empty() {
        true => Finding::ok("InnoDB's flushes fit repl.durability"),
        false => Finding::warning(
            format!(
                "innodb_flush_log_at_trx_commit=1 beside repl.durability=os: each commit waits for a flush of its own \
                 server: {}",
                list(&dear)
            ),
            "repl.durability=disk with 0 or 2: commits survive a loss of power of all nodes, with fewer flushes. Only 0 or 2, \
             if the last second may be lost then. Else leave it",
        ),
    }
}

/// The longest interval, in seconds, between two flushes of InnoDB's log. The write-set log keeps for 10 s what a database
/// has committed and may not have flushed (`Thresholds::unflushed_ms` of the replicator), and a flush may be late.
const FLUSH_INTERVAL_MAX_S: u64 = 5;

pub(crate) fn innodb_flush_interval(facts: &Facts) -> Finding {
    let late = facts.those(|node| {
        let flushes_later = matches!(node.variable("innodb_flush_log_at_trx_commit"), "0" | "2");
        let interval_s = node.variable("innodb_flush_log_at_timeout").parse::<u64>();
        flushes_later && interval_s.is_ok_and(|interval_s| interval_s > FLUSH_INTERVAL_MAX_S)
    });
    match late.is_empty() {
        true => Finding::ok("InnoDB flushes at each commit, or every few seconds"),
        false => Finding::failed(
            format!(
                "innodb_flush_log_at_timeout is above {FLUSH_INTERVAL_MAX_S} s, and InnoDB does not flush at each commit: {}",
                list(&late)
            ),
            "SET GLOBAL innodb_flush_log_at_timeout = 1, in the configuration, too: the write-set logs surely keep only the \
             last 10 s of what InnoDB has not flushed. When all nodes have lost power, nobody may have the rest",
        ),
    }
}

pub(crate) fn nonpk(facts: &Facts) -> Finding {
    let off = facts.those(|node| {
        node.variable("wsrep_certify_nonPK") == "OFF"
            || node.variable("wsrep_certify_nonpk") == "OFF"
    });
    match off.is_empty() {
        true => Finding::ok("rows of tables without primary key are certified"),
        false => Finding::failed(
            format!("wsrep_certify_nonPK=OFF: {}", list(&off)),
            "SET GLOBAL wsrep_certify_nonPK = ON: without it nodes diverge on tables without primary key",
        ),
    }
}

pub(crate) fn appliers(facts: &Facts) -> Finding {
    let one = facts.those(|node| node.variable("wsrep_slave_threads") == "1");
    match one.is_empty() {
        true => Finding::ok("several threads apply"),
        false => Finding::warning(
            format!("wsrep_slave_threads=1: {}", list(&one)),
            "SET GLOBAL wsrep_slave_threads = 4 (up to twice the processors): one thread falls behind under load",
        ),
    }
}

pub(crate) fn rejects(facts: &Facts) -> Finding {
    let rejecting =
        facts.those(|node| !matches!(node.variable("wsrep_reject_queries"), "NONE" | ""));
    match rejecting.is_empty() {
        true => Finding::ok("no node rejects statements"),
        false => Finding::warning(
            format!("wsrep_reject_queries is set: {}", list(&rejecting)),
            "SET GLOBAL wsrep_reject_queries = NONE when the maintenance is over",
        ),
    }
}

pub(crate) fn read_only(facts: &Facts) -> Finding {
    let read_only = facts.those(|node| !matches!(node.variable("read_only"), "OFF" | "0" | ""));
    match read_only.is_empty() {
        true => Finding::ok("no node is read_only"),
        false => Finding::warning(
            format!("read_only: {}", list(&read_only)),
            "SET GLOBAL read_only = OFF, unless only reads shall go there",
        ),
    }
}

pub(crate) fn connections(facts: &Facts) -> Finding {
    let full = facts.those(|node| {
        let most: f64 = node
            .variable("max_connections")
            .parse()
            .unwrap_or(f64::INFINITY);
        node.number("threads_connected")
            .is_some_and(|used| used > 0.8 * most)
    });
    match full.is_empty() {
        true => Finding::ok("connections are left"),
        false => Finding::warning(
            format!(
                "more than 80 % of max_connections are in use: {}",
                list(&full)
            ),
            "raise max_connections, or let clients share connections",
        ),
    }
}

pub(crate) fn causal_reads(facts: &Facts) -> Finding {
    match facts.differing(|node| node.variable("wsrep_sync_wait").to_owned()) {
        None => facts.unless_silent("all nodes have the same wsrep_sync_wait"),
        Some(values) => Finding::warning(
            format!("wsrep_sync_wait differs: {values}"),
            "set the same everywhere, else reads are fresh or stale by the node that a client happens to reach",
        ),
    }
}

pub(crate) fn binlog(facts: &Facts) -> Finding {
    let half = facts.those(|node| {
        node.variable("log_bin") == "ON" && node.variable("log_slave_updates") == "OFF"
    });
    match half.is_empty() {
        true => Finding::ok("a binary log, where there is one, holds the writes of all nodes"),
        false => Finding::failed(
            format!("log_bin without log_slave_updates: {}", list(&half)),
            "log_slave_updates=ON: without it the binary log lacks what other nodes wrote",
        ),
    }
}

/// Fails while a long DDL statement, which is a total-order action, holds up all commits.
pub(crate) fn long_statement(facts: &Facts) -> Finding {
    if facts.nodes.iter().all(|seen| seen.statements.is_none()) {
        return Finding::unknown(
            "the user lacks the privilege PROCESS (trireme agent grant --doctor)",
        );
    }
    let held_up = facts.nodes.iter().filter(|seen| !may_be_alone(&seen.node));
    let found = held_up.flat_map(ddl_of);
    let longest = found.max_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds));
    if let Some((seen, process)) = longest {
        return Finding::failed(
            format!(
                "a long statement holds up all commits: {} for {:.0} s on {}, connection {} of {}",
                list(&[&process.statement]),
                process.seconds,
                list(&[seen.node.name()]),
                process.id,
                list(&[&process.user]),
            ),
            "wait for its end: MariaDB lets nobody kill it (error 1095). Next time: ALGORITHM=INSTANT, or wsrep_OSU_method=RSU \
             node by node, or pt-online-schema-change (docs/runbooks.md)",
        );
    }
    // A statement holds up the whole cluster, whichever node a client has sent it to.
    let hidden = facts.hidden(|seen| seen.statements.is_some());
    match (hidden.is_empty(), facts.without_address) {
        (true, 0) => Finding::ok("no ALTER or the like holds up the cluster"),
        (true, _) => Finding::ok(
            "no ALTER or the like is seen on the members that have an address for clients",
        ),
        (false, _) => Finding::unknown(format!(
            "no ALTER or the like is seen, but the statements on these were not shown: {}",
            list(&hidden)
        )),
    }
}

/// Whether a client has desynced the node, beside `SET GLOBAL wsrep_desync`: under `wsrep_OSU_method=RSU` its DDL is
/// this node's alone.
fn may_be_alone(node: &Node) -> bool {
    let by_hand = f64::from(node.variable("wsrep_desync") == "ON");
    let desyncs = node.number("wsrep_desync_count").unwrap_or(0.0);
    desyncs > by_hand
}

/// The long DDL statements of clients on this node.
fn ddl_of(seen: &Seen) -> impl Iterator<Item = (&Seen, &Process)> {
    let statements = seen.statements.iter().flatten();
    let is_long = |process: &&Process| process.seconds * 1000.0 >= f64::from(LONG_MS);
    statements
        .filter(is_long)
        .filter(|process| is_ddl(&process.statement))
        .map(move |process| (seen, process))
}

pub(crate) fn load_balancer(facts: &Facts) -> Finding {
    let monitors = ["proxysql", "maxscale", "haproxy", "clustercheck", "monitor"];
    let is_monitor = |user: &str| {
        monitors
            .iter()
            .any(|name| user.to_lowercase().contains(name))
    };
    let mut seen: Vec<String> = facts
        .nodes
        .iter()
        .flat_map(|seen| seen.users.iter().flatten())
        .filter(|user| is_monitor(user))
        .cloned()
        .collect();
    seen.sort();
    seen.dedup();
    // One node proposes to leave another out: the options of two nodes decide.
    let proposes = facts.those(|node| {
        let after: u64 = node.option("repl.fc_desync_after_ms").parse().unwrap_or(0);
        after > 0
    });
    let shows = facts.those(|node| {
        !node
            .option("repl.fc_desync_state")
            .eq_ignore_ascii_case("synced")
    });
    if facts.nodes.iter().all(|seen| seen.users.is_none()) {
        return Finding::unknown(
            "the user lacks the privilege PROCESS (trireme agent grant --doctor)",
        );
    }
    match seen.is_empty() || proposes.is_empty() || shows.is_empty() {
        true => Finding::ok("no load balancer is seen that a lagging node would confuse"),
        false => Finding::warning(
            format!(
                "a load balancer watches ({}), and takes a node off for as long as it is left out as too slow \
                 (wsrep_local_state 2)",
                list(&seen)
            ),
            "let it ask `trireme agent` (/health/write, /health/read?max_lag_ms=500), or allow donors as readers; \
             docs/agent.md",
        ),
    }
}
