//! The content of `SHOW STATUS LIKE 'wsrep%'` for this node.

use trireme_engine::Link;
use trireme_group::{Group, Member};
use trireme_log::Durability;
use trireme_node::{Stage, StageTimer, now_ms};
use trireme_replicator::{LocalState, Status};

use crate::core::Core;
use crate::node::Node;
use crate::stats::{GroupStats, NodeStats, OwnStats, Stats};

/// Version of the replication protocol, as the status variables show it.
const PROTOCOL: i64 = 1;

/// Returns all variables, taken at one moment.
pub fn collect(node: &Node) -> Stats {
    let (segment, delay_margin_ms) = {
        let options = node.options.lock().unwrap_or_else(|e| e.into_inner());
        (
            options.int("gmcast.segment"),
            options.duration_ms("evs.delay_margin"),
        )
    };
    let commit_time = node.times.commits().to_string();
    let (mut stats, of_commits) = node.peek(|core| {
        let status = core.engine.status();
        let group = core.engine.link().map(|link| GroupStats {
            cluster_weight: if status.local_state == LocalState::Initialized {
                0
            } else {
                status.cluster_weight
            }
            .to_string(),
            desync_count: status.desync_count.to_string(),
            evs_delayed: delayed(&link.group, delay_margin_ms),
            evs_repl_latency: commit_time,
            evs_state: match link.group.component_state() {
                trireme_group::ComponentState::Outside => "CLOSED",
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
        let own = (core.engine.link()).map(|link| own_stats(core, link, &status));
        let stats = Stats {
            node: node_stats(status),
            group,
            own,
        };
        (stats, core.commit_clock.timer().clone())
    });
    // Without the lock: this goes through every histogram.
    if let Some(own) = &mut stats.own {
        fill_stages(own, &[&of_commits, &node.times.stages()]);
    }
    stats
}

/// Returns the delayed members in Galera's form: member id, address, and how many times `evs.delay_margin` the member
/// has been silent.
fn delayed(group: &Group, margin_ms: u64) -> String {
    let entry = |(member, silent_ms): (&Member, u64)| {
        let times = silent_ms / margin_ms.max(1);
        format!("{}:tcp://{}:{times}", member.incarnation, member.address)
    };
    let late = group.late_members(now_ms(), margin_ms.max(1));
    late.map(entry).collect::<Vec<_>>().join(",")
}

/// Returns Trireme's own variables, except the stages of a commit.
fn own_stats(core: &Core, link: &Link, status: &Status) -> OwnStats {
    let group = &link.group;
    let named = |member: &Member| {
        let names = [&member.name, &member.address];
        let name = names.into_iter().find(|name| !name.is_empty());
        name.cloned()
            .unwrap_or_else(|| member.incarnation.to_string())
    };
    let counters = group.counters();
    let mesh = core.line.as_ref().map(|line| &line.mesh);
    // The mesh has no link to this process itself.
    let is_linked = |member: &&Member| {
        let peer = member.incarnation.0.0;
        mesh.is_some_and(|mesh| mesh.peer(peer).is_some())
    };
    let members = group.configuration().members.iter();
    OwnStats {
        leader: group.leader_member().map(named).unwrap_or_default(),
        leaderships_taken: counters.leaderships_taken,
        leaderships_handed: counters.leaderships_handed,
        leaderships_needless: counters.leaderships_needless,
        plaintext_links: mesh.map_or(0, |mesh| mesh.plaintext_links()) as u64,
        member_links: members.filter(is_linked).count() as u64,
        is_leader: u64::from(group.is_leader()),
        term: group.term().number,
        leader_changes: core.leaders.changes(),
        lag_seqnos: status.lag_seqnos,
        lag_ms: status.lag_ms,
        paced_ns: status.paced_ns,
        left_out_count: status.left_out.len() as u64,
        catching_up_percent: catching_up_percent(core, status),
        log_bytes: link.storage.log_bytes(),
        log_pinned_bytes: link.storage.bytes_beyond_size(),
        durability: match link.storage.durability() {
            Durability::Memory => 0,
            Durability::Os => 1,
            Durability::Disk => 2,
        },
        conflicts_certification: status.conflicts.certification,
        conflicts_brute_force_abort: status.conflicts.brute_force_abort,
        conflicts_replay: status.conflicts.replay,
        ..OwnStats::default()
    }
}

/// Returns the progress of the catch-up. A node that waits for its admission or for a snapshot has nothing yet.
fn catching_up_percent(core: &Core, status: &Status) -> f64 {
    let serves = matches!(
        status.local_state,
        LocalState::Donor | LocalState::Joined | LocalState::Synced
    );
    match &status.progress {
        Some(progress) => progress.percent(),
        None if serves || core.engine.replicator.waits_for().is_none() => 100.0,
        None => 0.0,
    }
}

fn fill_stages(own: &mut OwnStats, stages: &[&StageTimer]) {
    let of = |stage| {
        let seen = stages.iter().map(|timer| timer.percentiles(stage));
        let most = seen.max_by_key(|seen| seen.count).unwrap_or_default();
        (most.p50_ns as f64 / 1_000.0, most.p99_ns as f64 / 1_000.0)
    };
    (
        own.commit_flow_control_p50_us,
        own.commit_flow_control_p99_us,
    ) = of(Stage::FlowControl);
    (own.commit_ordering_p50_us, own.commit_ordering_p99_us) = of(Stage::Ordering);
    (own.commit_majority_p50_us, own.commit_majority_p99_us) = of(Stage::Majority);
    (
        own.commit_certification_p50_us,
        own.commit_certification_p99_us,
    ) = of(Stage::Certification);
    (
        own.commit_commit_order_p50_us,
        own.commit_commit_order_p99_us,
    ) = of(Stage::CommitOrder);
    (own.commit_apply_p50_us, own.commit_apply_p99_us) = of(Stage::Apply);
    (own.commit_log_write_p50_us, own.commit_log_write_p99_us) = of(Stage::LogWrite);
    (own.commit_log_flush_p50_us, own.commit_log_flush_p99_us) = of(Stage::LogFlush);
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
