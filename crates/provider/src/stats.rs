//! Status variables (`SHOW STATUS LIKE 'wsrep_%'`): their names, types and order are part of the contract
//! (server-contract-reference.md#status-variables).

use std::ffi::CStr;

use trireme_wsrep_abi::{CBlock, StatsVar, VarType, VarValue};

/// Declares the statistics: each field with its variable's name and type, in the order of the contract.
macro_rules! stats {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty = $var:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)+
        }

        impl $name {
            fn append_to<'a>(&'a self, vars: &mut Vec<(&'static CStr, Value<'a>)>) {
                $(match Value::from(&self.$field) {
                    Value::Absent => {}
                    value => vars.push(($var, value)),
                })+
            }
        }
    };
}

enum Value<'a> {
    Int(i64),
    Double(f64),
    Text(&'a str),
    /// There is no such variable now.
    Absent,
}

impl From<&i64> for Value<'_> {
    fn from(value: &i64) -> Self {
        Value::Int(*value)
    }
}

impl From<&u64> for Value<'_> {
    fn from(value: &u64) -> Self {
        Value::Int(i64::try_from(*value).unwrap_or(i64::MAX))
    }
}

impl From<&f64> for Value<'_> {
    fn from(value: &f64) -> Self {
        Value::Double(*value)
    }
}

impl From<&bool> for Value<'_> {
    fn from(value: &bool) -> Self {
        Value::Text(if *value { "true" } else { "false" })
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Value::Text(value)
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Self {
        value.as_ref().map_or(Value::Absent, Value::from)
    }
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
        /// Time that flow control stopped this node, in nanoseconds.
        flow_control_paused_ns: u64 = c"flow_control_paused_ns",
        /// The same as a fraction of all time.
        flow_control_paused: f64 = c"flow_control_paused",
        /// Pause requests that this node sent.
        flow_control_sent: u64 = c"flow_control_sent",
        /// Pause requests that it received, its own included.
        flow_control_recv: u64 = c"flow_control_recv",
        /// Whether replication is stopped now.
        flow_control_active: bool = c"flow_control_active",
        /// Whether this node asked for it.
        flow_control_requested: bool = c"flow_control_requested",
        /// Average distance between a write-set and what it depends on.
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
        /// The first GTID of what may have been acknowledged and is lost, since this node has let the cluster go on with the best
        /// that was left (rule 4); only then.
        trireme_lost_from: Option<String> = c"trireme_lost_from",
    }
}

stats! {
    /// Trireme's own, which exist only while connected. They come last: MariaDB's suite lists the others, in their order, in
    /// `wsrep.variables` (which asks for a later Galera than [`crate::entry`] claims to be, since these would be too many).
    OwnStats {
        /// Who has the sequencer's office, as this node knows: its `wsrep_node_name`, or else its address or member id.
        sequencer: String = c"trireme_sequencer",
        /// Times that this node took the office.
        offices_taken: u64 = c"trireme_offices_taken",
        /// Times that it handed the office over, to a better seat or to leave.
        offices_handed: u64 = c"trireme_offices_handed",
        /// Times that it took the office from a sequencer that was alive all the time.
        offices_needless: u64 = c"trireme_offices_needless",
        /// Peers that are connected without TLS.
        plaintext_links: u64 = c"trireme_plaintext_links",
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
        /// How far the database has come that catches up; 100 if it does not.
        catching_up_percent: f64 = c"trireme_catching_up_percent",
        /// Bytes of the write-set log.
        log_bytes: u64 = c"trireme_log_bytes",
        /// Those beyond `gcache.size`.
        log_pinned_bytes: u64 = c"trireme_log_pinned_bytes",
        /// `repl.durability`: 0 memory, 1 os, 2 disk.
        durability: u64 = c"trireme_durability",
        /// Own write-sets that failed certification.
        conflicts_certification: u64 = c"trireme_conflicts_certification",
        /// Own transactions that an applier rolled back before they were ordered.
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

/// All statistics of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Those that always exist.
    pub node: NodeStats,
    /// Those that exist only while connected.
    pub group: Option<GroupStats>,
    /// Likewise.
    pub own: Option<OwnStats>,
}

impl Stats {
    /// The variables as `stats_get` returns them: one malloc'ed block with the array and, behind it, the text values;
    /// names are static. NULL when memory is out. Free it with [`free_vars`].
    pub fn to_vars(&self) -> *mut StatsVar {
        let mut vars = Vec::with_capacity(112);
        self.node.append_to(&mut vars);
        if let Some(group) = &self.group {
            group.append_to(&mut vars);
        }
        if let Some(own) = &self.own {
            own.append_to(&mut vars);
        }
        let array_bytes = (vars.len() + 1) * size_of::<StatsVar>();
        let text_bytes: usize = vars
            .iter()
            .map(|(_, value)| {
                if let Value::Text(text) = value {
                    text.len() + 1
                } else {
                    0
                }
            })
            .sum();
        let Some(mut block) = CBlock::new(array_bytes + text_bytes) else {
            return std::ptr::null_mut();
        };
        let base = block.as_mut_ptr();
        let mut next_text = array_bytes;
        for (i, (name, value)) in vars.iter().enumerate() {
            let (var_type, value) = match value {
                Value::Int(number) => (VarType::INT64, VarValue { int64: *number }),
                Value::Double(number) => (VarType::DOUBLE, VarValue { double: *number }),
                Value::Text(text) => {
                    let start = next_text;
                    next_text += text.len() + 1;
                    // SAFETY: `text_bytes` counted this text and its NUL, which is there since the block is zeroed.
                    let string = unsafe {
                        std::ptr::copy_nonoverlapping(text.as_ptr(), base.add(start), text.len());
                        base.add(start)
                    };
                    (
                        VarType::STRING,
                        VarValue {
                            string: string.cast(),
                        },
                    )
                }
                Value::Absent => continue, // none is in the list
            };
            // SAFETY: the block starts with room for `vars.len() + 1` variables and is aligned for any C type; the last
            // one stays zero, that is, without name.
            unsafe {
                base.cast::<StatsVar>().add(i).write(StatsVar {
                    name: name.as_ptr(),
                    var_type,
                    value,
                })
            };
        }
        block.into_raw().cast()
    }
}

/// Frees what [`Stats::to_vars`] returned; NULL is allowed.
///
/// # Safety
/// `vars` must come from [`Stats::to_vars`] and not be used again.
pub unsafe fn free_vars(vars: *mut StatsVar) {
    // SAFETY: the block comes from malloc and the caller gives it up.
    unsafe { libc::free(vars.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_wsrep_abi::cstr_to_string;

    /// The list that `suite/wsrep/r/variables.result` demands, in lower case as the server shows it.
    const NAMES: &str = "local_state_uuid protocol_version protocol_application protocol_replicator protocol_gcs \
        last_committed replicated replicated_bytes repl_keys repl_keys_bytes repl_data_bytes repl_other_bytes received \
        received_bytes local_commits local_cert_failures local_replays local_send_queue local_send_queue_max \
        local_send_queue_min local_send_queue_avg local_recv_queue local_recv_queue_max local_recv_queue_min \
        local_recv_queue_avg local_cached_downto flow_control_paused_ns flow_control_paused flow_control_sent \
        flow_control_recv flow_control_active flow_control_requested cert_deps_distance apply_oooe apply_oool \
        apply_window apply_waits commit_oooe commit_oool commit_window local_state local_state_comment cert_index_size \
        causal_reads cert_interval open_transactions open_connections incoming_addresses cluster_weight desync_count \
        evs_delayed evs_evict_list evs_repl_latency evs_state gcomm_uuid gmcast_segment";

    /// Name, type and value as text of every variable.
    fn read(stats: &Stats) -> Vec<(String, VarType, String)> {
        let raw = stats.to_vars();
        // SAFETY: an array just made; the field read is the one that the type names.
        let vars = unsafe { StatsVar::array(raw) }
            .iter()
            .map(|var| unsafe {
                let value = match var.var_type {
                    VarType::INT64 => var.value.int64.to_string(),
                    VarType::DOUBLE => var.value.double.to_string(),
                    _ => cstr_to_string(var.value.string),
                };
                (cstr_to_string(var.name), var.var_type, value)
            })
            .collect();
        // SAFETY: not used any more.
        unsafe { free_vars(raw) };
        vars
    }

    #[test]
    fn names_and_order_are_the_suites() {
        let connected = Stats {
            group: Some(GroupStats::default()),
            ..Stats::default()
        };
        let names: Vec<String> = read(&connected)
            .into_iter()
            .map(|(name, _, _)| name.to_lowercase())
            .collect();
        assert_eq!(names, NAMES.split_whitespace().collect::<Vec<_>>());
        assert_eq!(names.len(), 56);
        let with_own = Stats {
            own: Some(OwnStats::default()),
            ..connected
        };
        let own = read(&with_own).split_off(56);
        assert!(own.iter().all(|(name, ..)| name.starts_with("trireme_")));
        assert_eq!(read(&Stats::default()).len(), 48);
    }

    /// Every variable that there can be.
    fn all_names() -> Vec<String> {
        let text = Some(String::new());
        let stats = Stats {
            group: Some(GroupStats {
                trireme_catching_up: text.clone(),
                trireme_left_out: text.clone(),
                trireme_lost_from: text,
                ..GroupStats::default()
            }),
            own: Some(OwnStats::default()),
            ..Stats::default()
        };
        let names = read(&stats).into_iter();
        names
            .map(|(name, ..)| format!("wsrep_{}", name.to_lowercase()))
            .collect()
    }

    #[test]
    fn the_page_lists_exactly_the_variables_that_there_are() {
        let page = include_str!("../../../docs/status-variables.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let listed: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
        let mut names = all_names();
        for name in &names {
            assert!(listed.contains(&name.as_str()), "{name} is not in the page");
        }
        for name in &listed {
            let at = names.iter().position(|known| known == name);
            let at = at.unwrap_or_else(|| panic!("the page lists {name}, which is none, or twice"));
            names.remove(at);
        }
    }

    #[test]
    fn who_is_left_out_is_named_only_while_somebody_is() {
        let stats = Stats {
            group: Some(GroupStats {
                trireme_left_out: Some("n3".to_owned()),
                ..GroupStats::default()
            }),
            ..Stats::default()
        };
        let vars = read(&stats);
        assert_eq!(vars.len(), 57);
        let named = |var: &&(String, VarType, String)| var.0 == "trireme_left_out";
        assert_eq!(
            vars.iter().find(named).map(|var| var.2.as_str()),
            Some("n3")
        );
    }

    #[test]
    fn values_keep_their_types() {
        let stats = Stats {
            node: NodeStats {
                local_state_uuid: "3b1c0f2e".to_string(),
                last_committed: -1,
                replicated: u64::MAX,
                flow_control_paused: 0.25,
                flow_control_active: true,
                incoming_addresses: "[::1]:1,[::1]:2".to_string(),
                ..NodeStats::default()
            },
            group: Some(GroupStats {
                gmcast_segment: "3".to_string(),
                ..GroupStats::default()
            }),
            own: None,
        };
        let vars = read(&stats);
        let get = |name: &str| {
            vars.iter()
                .find(|var| var.0 == name)
                .map(|var| (var.1, var.2.as_str()))
                .unwrap()
        };
        assert_eq!(get("local_state_uuid"), (VarType::STRING, "3b1c0f2e"));
        assert_eq!(get("last_committed"), (VarType::INT64, "-1"));
        assert_eq!(get("replicated"), (VarType::INT64, "9223372036854775807"));
        assert_eq!(get("flow_control_paused"), (VarType::DOUBLE, "0.25"));
        assert_eq!(get("flow_control_active"), (VarType::STRING, "true"));
        assert_eq!(get("flow_control_requested"), (VarType::STRING, "false"));
        assert_eq!(get("local_state_comment"), (VarType::STRING, ""));
        assert_eq!(
            get("incoming_addresses"),
            (VarType::STRING, "[::1]:1,[::1]:2")
        );
        assert_eq!(get("gmcast_segment"), (VarType::STRING, "3"));
    }

    #[test]
    fn freeing_null_is_allowed() {
        // SAFETY: NULL is allowed.
        unsafe { free_vars(std::ptr::null_mut()) };
    }
}
