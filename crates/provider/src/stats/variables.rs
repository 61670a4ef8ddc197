//! The status variables: names, types and order are part of the contract (server-contract-reference.md#status-variables).

use std::ffi::CStr;

use super::Value;

/// Declares the statistics: each field with its variable's name and type, in the order of the contract. Names behind a
/// `|` are old ones, which stay valid.
macro_rules! stats {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty = $var:literal $(| $old:literal)*,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)+
        }

        impl $name {
            pub(super) fn append_to<'a>(&'a self, vars: &mut Vec<(&'static CStr, Value<'a>)>) {
                $(for name in [$var $(, $old)*] {
                    match Value::from(&self.$field) {
                        Value::Absent => {}
                        value => vars.push((name, value)),
                    }
                })+
            }
        }
    };
}

stats! {
    /// Statistics of a node, whether connected or not. Averages and the like are since the last `FLUSH STATUS`.
    NodeStats {
        /// UUID of the history, empty before the first view.
        local_state_uuid: String = c"local_state_uuid",
        /// Replication protocol, -1 before the first view.
        protocol_version: i64 = c"protocol_version",
        /// Application protocol of the view.
        protocol_application: i64 = c"protocol_application",
        /// Replication protocol of the view.
        protocol_replicator: i64 = c"protocol_replicator",
        /// Group communication protocol of the view.
        protocol_gcs: i64 = c"protocol_GCS",
        /// Last seqno that is visible here, -1 if none.
        last_committed: i64 = c"last_committed",
        /// Own write-sets that were ordered.
        replicated: u64 = c"replicated",
        /// Their bytes.
        replicated_bytes: u64 = c"replicated_bytes",
        /// Keys in them.
        repl_keys: u64 = c"repl_keys",
        /// Bytes of keys in them.
        repl_keys_bytes: u64 = c"repl_keys_bytes",
        /// Bytes of data in them.
        repl_data_bytes: u64 = c"repl_data_bytes",
        /// All other bytes in them.
        repl_other_bytes: u64 = c"repl_other_bytes",
        /// Events that appliers took.
        received: u64 = c"received",
        /// Their bytes.
        received_bytes: u64 = c"received_bytes",
        /// Local transactions, fragments and replays that committed.
        local_commits: u64 = c"local_commits",
        /// Local transactions that failed certification.
        local_cert_failures: u64 = c"local_cert_failures",
        /// Local transactions that were replayed.
        local_replays: u64 = c"local_replays",
        /// Write-sets waiting to be sent.
        local_send_queue: u64 = c"local_send_queue",
        /// The most that ever waited.
        local_send_queue_max: u64 = c"local_send_queue_max",
        /// The fewest that ever waited.
        local_send_queue_min: u64 = c"local_send_queue_min",
        /// How many waited on average.
        local_send_queue_avg: f64 = c"local_send_queue_avg",
        /// Events waiting to be applied.
        local_recv_queue: u64 = c"local_recv_queue",
        /// The most that ever waited.
        local_recv_queue_max: u64 = c"local_recv_queue_max",
        /// The fewest that ever waited.
        local_recv_queue_min: u64 = c"local_recv_queue_min",
        /// How many waited on average.
        local_recv_queue_avg: f64 = c"local_recv_queue_avg",
        /// Lowest seqno in the log, -1 if none.
        local_cached_downto: i64 = c"local_cached_downto",
        /// Time that flow control stopped this node, or set its writers a pace, in nanoseconds.
        flow_control_paused_ns: u64 = c"flow_control_paused_ns",
        /// The same as a fraction of all time.
        flow_control_paused: f64 = c"flow_control_paused",
        /// Pause requests that this node sent.
        flow_control_sent: u64 = c"flow_control_sent",
        /// Pause requests that it received, its own included.
        flow_control_recv: u64 = c"flow_control_recv",
        /// Whether replication is stopped now.
        flow_control_active: bool = c"flow_control_active",
        /// Whether this node requested the stop.
        flow_control_requested: bool = c"flow_control_requested",
        /// Average distance between a write-set and the seqno that it depends on.
        cert_deps_distance: f64 = c"cert_deps_distance",
        /// How often write-sets were applied out of order.
        apply_oooe: f64 = c"apply_oooe",
        /// How often a later write-set was done before an earlier one.
        apply_oool: f64 = c"apply_oool",
        /// Average distance between the highest and lowest seqno being applied.
        apply_window: f64 = c"apply_window",
        /// How often an applier had to wait for a dependency.
        apply_waits: u64 = c"apply_waits",
        /// How often write-sets asked to commit out of order.
        commit_oooe: f64 = c"commit_oooe",
        /// How often a later one left before an earlier one: never, but the name exists.
        commit_oool: f64 = c"commit_oool",
        /// Average distance between the highest and lowest seqno being committed.
        commit_window: f64 = c"commit_window",
        /// State of the node as a number: 0 Initialized, 1 Joiner, 2 Donor, 3 Joined, 4 Synced, 5 Inconsistent.
        local_state: i64 = c"local_state",
        /// State of the node in words, as monitoring expects them.
        local_state_comment: String = c"local_state_comment",
        /// Entries of the certification index.
        cert_index_size: u64 = c"cert_index_size",
        /// Reads that waited for the group's position.
        causal_reads: u64 = c"causal_reads",
        /// Average number of write-sets ordered between what an origin had seen and its write-set.
        cert_interval: f64 = c"cert_interval",
        /// Transactions that the provider knows of.
        open_transactions: u64 = c"open_transactions",
        /// Connections with a total-order-isolation action in progress.
        open_connections: u64 = c"open_connections",
        /// Client addresses of the members, comma separated, in view order.
        incoming_addresses: String = c"incoming_addresses",
    }
}

stats! {
    /// Statistics that exist only while connected: sorted by name, numbers as text, as in Galera.
    GroupStats {
        /// Sum of the members' weights, 0 when non-primary.
        cluster_weight: String = c"cluster_weight",
        /// How many desyncs are in force.
        desync_count: String = c"desync_count",
        /// Members whose messages come late.
        evs_delayed: String = c"evs_delayed",
        /// Evicted members.
        evs_evict_list: String = c"evs_evict_list",
        /// Replication latency in seconds: minimum/average/maximum/standard deviation/samples.
        evs_repl_latency: String = c"evs_repl_latency",
        /// State of group communication, `OPERATIONAL` when all is well.
        evs_state: String = c"evs_state",
        /// This node's member id.
        gcomm_uuid: String = c"gcomm_uuid",
        /// This node's segment.
        gmcast_segment: String = c"gmcast_segment",
        /// How far the database has come: entries, percent, rate, seconds left; only while it catches up.
        trireme_catching_up: Option<String> = c"trireme_catching_up",
        /// Names of the members that the group has left out of flow control, comma separated; only while there are
        /// any: the suites know the list of names without it.
        trireme_left_out: Option<String> = c"trireme_left_out",
        /// The first GTID that may have been acknowledged and is lost, after this node has let the cluster go on with
        /// the best state that was left (rule 4); absent otherwise.
        trireme_lost_from: Option<String> = c"trireme_lost_from",
    }
}

stats! {
    /// Trireme's own, which exist only while connected. They come last: MariaDB's suite lists the others, in their
    /// order, in `wsrep.variables` (that test requires a later Galera than [`crate::entry`] claims to be, since these
    /// would be too many).
    OwnStats {
        /// The leader, as far as this node knows: its `wsrep_node_name`, or else its address or member id.
        leader: String = c"trireme_leader" | c"trireme_sequencer",
        /// Times that this node took leadership.
        leaderships_taken: u64 = c"trireme_leaderships_taken" | c"trireme_offices_taken",
        /// Times that this node handed leadership over, to a better member or to leave.
        leaderships_handed: u64 = c"trireme_leaderships_handed" | c"trireme_offices_handed",
        /// Times that this node took leadership from a leader that was alive all the time.
        leaderships_needless: u64 = c"trireme_leaderships_needless" | c"trireme_offices_needless",
        /// Peers that are connected without TLS.
        plaintext_links: u64 = c"trireme_plaintext_links",
        /// Other members with which this node is connected, with or without TLS.
        member_links: u64 = c"trireme_member_links",
        /// 1: this node is the leader.
        is_leader: u64 = c"trireme_is_leader",
        /// The term in force.
        term: u64 = c"trireme_term",
        /// Changes of leader that this node has seen since it connected.
        leader_changes: u64 = c"trireme_leader_changes",
        /// Write-sets that this node knows to be ordered and has not committed.
        lag_seqnos: u64 = c"trireme_lag_seqnos",
        /// Age of the oldest of them here, in milliseconds.
        lag_ms: u64 = c"trireme_lag_ms",
        /// Time that own writers waited for a pace, in nanoseconds.
        paced_ns: u64 = c"trireme_paced_ns",
        /// Members that the group has left out of flow control.
        left_out_count: u64 = c"trireme_left_out_count",
        /// The catch-up progress of the database in percent; 100 if it does not catch up.
        catching_up_percent: f64 = c"trireme_catching_up_percent",
        /// Bytes of the write-set log.
        log_bytes: u64 = c"trireme_log_bytes",
        /// Bytes of the log beyond `gcache.size`.
        log_pinned_bytes: u64 = c"trireme_log_pinned_bytes",
        /// `repl.durability`: 0 memory, 1 os, 2 disk.
        durability: u64 = c"trireme_durability",
        /// Own write-sets that failed certification.
        conflicts_certification: u64 = c"trireme_conflicts_certification",
        /// Own transactions that an applier rolled back before their write-set was sent.
        conflicts_brute_force_abort: u64 = c"trireme_conflicts_brute_force_abort",
        /// Own transactions that an applier rolled back, and that were applied anew.
        conflicts_replay: u64 = c"trireme_conflicts_replay",
        /// Time of the stage, in microseconds.
        commit_flow_control_p50_us: f64 = c"trireme_commit_flow_control_p50_us",
        /// Time of the stage, in microseconds.
        commit_flow_control_p99_us: f64 = c"trireme_commit_flow_control_p99_us",
        /// Time of the stage, in microseconds.
        commit_ordering_p50_us: f64 = c"trireme_commit_ordering_p50_us",
        /// Time of the stage, in microseconds.
        commit_ordering_p99_us: f64 = c"trireme_commit_ordering_p99_us",
        /// Time of the stage, in microseconds.
        commit_majority_p50_us: f64 = c"trireme_commit_majority_p50_us",
        /// Time of the stage, in microseconds.
        commit_majority_p99_us: f64 = c"trireme_commit_majority_p99_us",
        /// Time of the stage, in microseconds.
        commit_certification_p50_us: f64 = c"trireme_commit_certification_p50_us",
        /// Time of the stage, in microseconds.
        commit_certification_p99_us: f64 = c"trireme_commit_certification_p99_us",
        /// Time of the stage, in microseconds.
        commit_commit_order_p50_us: f64 = c"trireme_commit_commit_order_p50_us",
        /// Time of the stage, in microseconds.
        commit_commit_order_p99_us: f64 = c"trireme_commit_commit_order_p99_us",
        /// Time of the stage, in microseconds.
        commit_apply_p50_us: f64 = c"trireme_commit_apply_p50_us",
        /// Time of the stage, in microseconds.
        commit_apply_p99_us: f64 = c"trireme_commit_apply_p99_us",
        /// Time of the stage, in microseconds.
        commit_log_write_p50_us: f64 = c"trireme_commit_log_write_p50_us",
        /// Time of the stage, in microseconds.
        commit_log_write_p99_us: f64 = c"trireme_commit_log_write_p99_us",
        /// Time of the stage, in microseconds.
        commit_log_flush_p50_us: f64 = c"trireme_commit_log_flush_p50_us",
        /// Time of the stage, in microseconds.
        commit_log_flush_p99_us: f64 = c"trireme_commit_log_flush_p99_us",
    }
}
