//! The cluster of a directed schedule: nodes like each other on a quiet network, without a load of its own.

use trireme_group::Preference;
use trireme_log::Durability;
use trireme_replicator::LocalState;

use super::{Play, Stage};
use crate::founding::Founding;
use crate::plan::{NodePlan, Plan};
use crate::profiles;
pub(super) use crate::seen::NEVER_US;
use crate::seen::{ClientTrx, NodeId};
use crate::server::{Errand, Flush, ServerPlan, Span, Workload};

/// A cluster of so many nodes; the first one founds it and leads. Each schedule changes the other settings as it
/// needs.
pub fn cluster(size: usize, seed: u64) -> Plan {
    let node = |node: usize| NodePlan {
        start_us: node as u64 * 100_000,
        weight: 1,
        clock_offset_us: 1_000_000_000,
        drift_ppm: 0,
        work_us: 20,
        wake_us: 20,
        flush_us: 500,
        arbitrator: false,
        server: ServerPlan {
            appliers: 2,
            flush: Flush::EachCommit,
            load: Workload {
                by_hand: true,
                rollback_percent: 0,
                vanish_percent: 0,
                ..Workload::default()
            },
            ..ServerPlan::default()
        },
        preference: Preference::Auto,
    };
    let mut plan = Plan {
        profile: "directed",
        nodes: (0..size).map(node).collect(),
        delay_us: vec![vec![200; size]; size],
        jitter_us: 200,
        queue_frames: 10_000,
        suspect_timeout_ms: 3_000,
        durability: Durability::Os,
        tail_bytes: 16 << 20,
        window_bytes: 8 << 20,
        log_bytes: 16 << 20,
        segment_bytes: 64 << 10,
        fc_limit: 100,
        ist_chunk_bytes: 1 << 20,
        unrecovered_percent: 0,
        faults: Vec::new(),
        calm_us: NEVER_US,
        // A restarted process begins without its log: these stories are about amnesiac replicas.
        recovers: false,
        ..Plan::as_shipped(profiles::by_turn(0), seed)
    };
    for node in &mut plan.nodes {
        node.server.speed.start_us = Span(5_000, 20_000);
        node.server.speed.transfer_us = Span(5_000, 50_000);
    }
    plan
}

/// The same cluster, with clients that may stream.
pub fn streaming(size: usize, seed: u64) -> Plan {
    let mut plan = cluster(size, seed);
    for node in &mut plan.nodes {
        // Not 0, because the simulator models parts of streaming only then.
        node.server.load.streaming_percent = 1;
    }
    plan
}

/// A cluster that three of four nodes found without a chosen founder; see [`replaces`].
pub fn founding(seed: u64) -> Plan {
    let mut plan = recovering(4, seed);
    plan.nodes[N4].start_us = NEVER_US;
    plan.founding = Some(Founding {
        nodes: 3,
        first: vec![N1, N2, N3],
        then: vec![N1, N2, N3],
        changed_us: 0,
    });
    plan
}

/// The operator replaces the node `gone` by the fourth node: edits the others' configurations and restarts them.
/// Returns the others.
pub fn replaces(stage: &mut Stage, gone: NodeId) -> Vec<NodeId> {
    let others: Vec<NodeId> = [N1, N2, N3].into_iter().filter(|n| *n != gone).collect();
    if let Some(founding) = &mut stage.world.plan.founding {
        founding.then = [&others[..], &[N4]].concat();
        founding.changed_us = stage.world.now_us;
    }
    for other in &others {
        stage.crash(*other, false);
        stage.start(*other);
    }
    stage.start(N4);
    others
}

/// A member that is gone, the leader too, holds up a commit no longer than this (Galera, measured: 6.1 s).
pub(super) const TAKEOVER_MS: u64 = 1_000;

/// Lets a client of each of these nodes commit a row, one after the other. Each commit must take at most this long.
pub(super) fn commit_each(stage: &mut Stage, nodes: &[NodeId], within_ms: u64) -> Play {
    for node in nodes {
        let began_us = stage.world.now_us;
        let trx = stage.write(*node, &[row(*node as u32)]);
        stage.until("the client has its answer", |s| s.told(trx).is_some())?;
        let took_ms = (stage.world.now_us - began_us) / 1_000;
        let name = node + 1;
        stage.must(
            &format!("a commit of n{name} takes at most {within_ms} ms, not {took_ms}"),
            took_ms <= within_ms && stage.acknowledged(trx),
        );
    }
    Ok(())
}

/// As [`commit_each`], again and again, until these nodes are the only members.
pub(super) fn commit_until_alone(stage: &mut Stage, nodes: &[NodeId], within_ms: u64) -> Play {
    for _ in 0..400 {
        if stage.members(nodes[0]) == nodes.len() {
            return Ok(());
        }
        stage.pass_ms(50);
        commit_each(stage, nodes, within_ms)?;
    }
    stage.check("the others are removed", false)
}

/// Lets a client of the node commit row 1. All nodes have it, and so much later their operating systems have flushed all
/// written data by themselves.
pub(super) fn commit_onto_disks(
    stage: &mut Stage,
    writer: NodeId,
    nodes: &[NodeId],
    later_ms: u64,
) -> Play {
    let written = stage.write(writer, &[row(1)]);
    stage.until("it is everywhere", |s| {
        nodes.iter().all(|node| s.has_applied(*node, written))
    })?;
    stage.pass_ms(later_ms);
    for node in nodes {
        stage.world.machines[*node].disk.lose_power(|| true);
    }
    Ok(())
}

/// These nodes go on by themselves, with everything that was acknowledged, and commit more.
pub(super) fn go_on_with(stage: &mut Stage, nodes: &[NodeId], acknowledged: &[ClientTrx]) -> Play {
    let go_on = stage.until("they serve again", |s| s.serve(nodes));
    stage.must("they go on by themselves", go_on.is_ok());
    let has_all = |node: &NodeId| (acknowledged.iter()).all(|x| stage.has_applied(*node, *x));
    let kept = nodes.iter().all(has_all);
    stage.must("they have all that was acknowledged", kept);
    let later = stage.write(nodes[nodes.len() - 1], &[row(1)]);
    stage.until("they serve", |s| s.acknowledged(later))
}

/// Cuts the node off from these, and waits until it has gone on alone (`pc.ignore_quorum`).
pub(super) fn goes_on_alone(stage: &mut Stage, node: NodeId, others: &[NodeId]) -> Play {
    stage.configure(node, |config| config.ignore_quorum = true);
    stage.part(&[node], others);
    stage.until("the node is primary alone", |s| s.members(node) == 1)
}

/// The joiner gives its SST up, and takes no database.
pub(super) fn gives_up_snapshot(stage: &mut Stage, joiner: NodeId) -> Play {
    let states = [Some(LocalState::Joined), Some(LocalState::Synced)];
    stage.until("the joiner gives up, or has a database", |s| {
        s.process(joiner).is_none() || states.contains(&s.state(joiner))
    })?;
    stage.must("it has given up", stage.process(joiner).is_none());
    Ok(())
}

/// A row of the database.
pub fn row(number: u32) -> u32 {
    Errand::FIRST_ROW + number
}

/// The first node, which founds the cluster.
pub const N1: NodeId = 0;
/// The second.
pub const N2: NodeId = 1;
/// The third.
pub const N3: NodeId = 2;
/// The fourth.
pub const N4: NodeId = 3;
/// The fifth.
pub const N5: NodeId = 4;

/// The same cluster, but a restarted process continues its log.
pub fn recovering(size: usize, seed: u64) -> Plan {
    Plan {
        recovers: true,
        ..cluster(size, seed)
    }
}

/// The same cluster, which misses no silent member.
pub fn patient(size: usize, seed: u64) -> Plan {
    Plan {
        suspect_timeout_ms: 60_000,
        ..recovering(size, seed)
    }
}

/// The same cluster, which misses a silent member after 1 s already.
pub fn hasty(size: usize, seed: u64) -> Plan {
    Plan {
        suspect_timeout_ms: 1_000,
        ..recovering(size, seed)
    }
}
