//! What `SHOW STATUS LIKE 'wsrep%'` shows of this node.

use trireme_group::{Group, Member};
use trireme_replicator::{LocalState, Status};

use crate::node::Node;
use crate::stats::{GroupStats, NodeStats, OwnStats, Stats};

/// Version of the replication protocol, as the status variables show it.
const PROTOCOL: i64 = 1;

/// Everything at one moment.
pub fn collect(node: &Node) -> Stats {
    let segment = {
        let options = node.options.lock().unwrap_or_else(|e| e.into_inner());
        options.int("gmcast.segment")
    };
    node.peek(|core| {
        let status = core.engine.status();
        let group = core.engine.link().map(|link| GroupStats {
            cluster_weight: if status.local_state == LocalState::Initialized {
                0
            } else {
                status.cluster_weight
            }
            .to_string(),
            desync_count: status.desync_count.to_string(),
            evs_repl_latency: "0/0/0/0/0".to_owned(),
            evs_state: match link.group.standing() {
                trireme_group::Standing::Outside => "CLOSED",
                _ => "OPERATIONAL",
            }
            .to_owned(),
            trireme_left_out: (!status.left_out.is_empty()).then(|| status.left_out.join(",")),
            trireme_lost_from: core.engine.lost_from().map(|gtid| gtid.to_string()),
            trireme_catching_up: status.progress.map(|progress| progress.to_string()),
            gcomm_uuid: core.incarnation.to_string(),
            gmcast_segment: segment.to_string(),
            ..GroupStats::default()
        });
        Stats {
            node: node_stats(status),
            group,
            own: core.engine.link().map(|link| {
                let line = core.line.as_ref();
                own_stats(
                    &link.group,
                    line.map_or(0, |line| line.mesh.plaintext_links()),
                )
            }),
        }
    })
}

fn own_stats(group: &Group, plaintext_links: usize) -> OwnStats {
    let named = |member: &Member| {
        let names = [&member.name, &member.address];
        let name = names.into_iter().find(|name| !name.is_empty());
        name.cloned()
            .unwrap_or_else(|| member.incarnation.to_string())
    };
    let counters = group.counters();
    OwnStats {
        sequencer: group.sequencer_member().map(named).unwrap_or_default(),
        offices_taken: counters.offices_taken,
        offices_handed: counters.offices_handed,
        offices_needless: counters.offices_needless,
        plaintext_links: plaintext_links as u64,
    }
}

fn node_stats(status: Status) -> NodeStats {
    let in_view = !status.local_state_uuid.is_nil();
    let protocol = if in_view { PROTOCOL } else { -1 };
    NodeStats {
        local_state_uuid: if in_view {
            status.local_state_uuid.to_string()
        } else {
            String::new()
        },
        protocol_version: protocol,
        protocol_application: status.protocol_application,
        protocol_replicator: protocol,
        protocol_gcs: protocol,
        last_committed: status.last_committed,
        replicated: status.replicated,
        replicated_bytes: status.replicated_bytes,
        repl_keys: status.repl_keys,
        repl_keys_bytes: status.repl_keys_bytes,
        repl_data_bytes: status.repl_data_bytes,
        repl_other_bytes: status.repl_other_bytes,
        received: status.received,
        received_bytes: status.received_bytes,
        local_commits: status.local_commits,
        local_cert_failures: status.local_cert_failures,
        local_replays: status.local_replays,
        local_send_queue: status.local_send_queue.now,
        local_send_queue_max: status.local_send_queue.max,
        local_send_queue_min: status.local_send_queue.min,
        local_send_queue_avg: status.local_send_queue.avg,
        local_recv_queue: status.local_recv_queue.now,
        local_recv_queue_max: status.local_recv_queue.max,
        local_recv_queue_min: status.local_recv_queue.min,
        local_recv_queue_avg: status.local_recv_queue.avg,
        local_cached_downto: status.local_cached_downto,
        flow_control_paused_ns: status.flow_control_paused_ns,
        flow_control_paused: status.flow_control_paused,
        flow_control_sent: status.flow_control_sent,
        flow_control_recv: status.flow_control_recv,
        flow_control_active: status.flow_control_active,
        flow_control_requested: status.flow_control_requested,
        cert_deps_distance: status.cert_deps_distance,
        apply_oooe: status.apply_oooe,
        apply_oool: status.apply_oool,
        apply_window: status.apply_window,
        apply_waits: status.apply_waits,
        commit_oooe: status.commit_oooe,
        commit_oool: status.commit_oool,
        commit_window: status.commit_window,
        local_state: status.local_state as i64,
        local_state_comment: status.local_state_comment.to_owned(),
        cert_index_size: status.cert_index_size,
        causal_reads: status.causal_reads,
        cert_interval: status.cert_interval,
        open_transactions: status.open_transactions,
        open_connections: 0,
        incoming_addresses: status.incoming_addresses,
    }
}
