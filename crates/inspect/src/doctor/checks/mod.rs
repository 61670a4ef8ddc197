//! The checks of `trireme doctor`: facts go in, one finding per check comes out. Each is a pure function.

mod membership;
mod options;
mod security;
mod server;
mod storage;
mod system;
mod tables;
mod traffic;

use super::facts::Facts;
use super::finding::Finding;

/// The name of a check, and its function. Names never change, because scripts know checks by name.
pub(crate) type Named = (&'static str, fn(&Facts) -> Finding);

/// All checks, in the order of the report.
pub(crate) const CHECKS: &[Named] = &[
    ("majority", membership::majority),
    ("missing-members", membership::missing),
    ("losses", membership::loss),
    ("members-answer", membership::answers),
    ("one-history", membership::one_history),
    ("one-view", membership::one_view),
    ("lost-commits", membership::lost_commits),
    ("in-step", membership::in_step),
    ("left-out", membership::left_out),
    ("desynced", membership::desynced),
    ("long-statement", server::long_statement),
    ("free-space", storage::free_space),
    ("backlog", storage::backlog),
    ("ist-window", storage::ist_window),
    ("damaged-log", storage::damaged),
    ("mark-dir", storage::mark_dir),
    ("copied-data", storage::copies),
    ("clocks", traffic::clocks),
    ("slow-commits", traffic::slow_commits),
    ("flow-control", traffic::paused),
    ("conflicts", traffic::conflicts),
    ("mixed-durability", options::mixed_durability),
    ("durability", options::durability),
    ("pc-recovery", options::recovery),
    ("gcache-recover", options::log_recovery),
    ("split-brain", options::split_brain),
    ("wait-evidence", options::forgetting_without),
    ("options-alike", options::alike),
    ("options-without-effect", options::without_effect),
    ("bootstrap-expect", options::expected_founders),
    ("automatic-bootstrap", system::automatic_bootstrap),
    ("bootstrap-address", membership::bootstrap_address),
    ("cluster-address", membership::addresses),
    ("own-address", system::own_address),
    ("ports", system::ports),
    ("weights", membership::weights),
    ("names", membership::names),
    ("library-versions", membership::versions),
    ("server-versions", membership::server_versions),
    ("primary-keys", tables::primary_keys),
    ("engines", tables::engines),
    ("default-engine", server::engine),
    ("nonpk", server::nonpk),
    ("row-format", server::row_format),
    ("autoinc", server::autoinc),
    ("snapshot-isolation", server::snapshot_isolation),
    ("causal-reads", server::causal_reads),
    ("binary-log", server::binlog),
    ("innodb-flush", server::innodb_flush),
    ("innodb-flush-interval", server::innodb_flush_interval),
    ("appliers", server::appliers),
    ("connections", server::connections),
    ("rejects", server::rejects),
    ("read-only", server::read_only),
    ("load-balancer", server::load_balancer),
    ("agent", system::agent),
    ("start-timeout", system::start_timeout),
    ("sst-method", system::sst_method),
    ("sst-programs", system::sst_programs),
    ("sst-user", system::sst_user),
    ("plaintext", security::plaintext),
    ("mixed-tls", security::mixed_tls),
    ("both-accepted", security::both_accepted),
    ("certificates", security::expiry),
    ("revocation-lists", security::revocation),
    ("key-mode", security::key_mode),
];
