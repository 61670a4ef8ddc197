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
    let page = include_str!("../../../../docs/status-variables.md");
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
fn texts_of_peers_are_plain() {
    let stats = Stats {
        node: NodeStats {
            incoming_addresses: "10.0.0.1:3306\0,\x1b[2J".to_owned(),
            ..NodeStats::default()
        },
        group: Some(GroupStats {
            trireme_left_out: Some("n3\nn4".to_owned()),
            ..GroupStats::default()
        }),
        own: Some(OwnStats {
            leader: "n1\r\u{202e}".to_owned(),
            ..OwnStats::default()
        }),
    };
    let vars = read(&stats);
    let shown = |name: &str| {
        let var = vars.iter().find(|var| var.0 == name);
        var.map(|var| var.2.as_str())
    };
    assert_eq!(shown("incoming_addresses"), Some("10.0.0.1:3306?,?[2J"));
    assert_eq!(shown("trireme_left_out"), Some("n3 n4"));
    assert_eq!(shown("trireme_leader"), Some("n1 ?"));
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
