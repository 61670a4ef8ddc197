//! The cluster of a directed schedule: like nodes on a quiet network, and no load of its own.

use trireme_group::Wish;
use trireme_log::Durability;

use super::Stage;
use crate::founding::Founding;
use crate::plan::{NodePlan, Plan};
use crate::profiles;
use crate::seen::{NodeId, TimeUs};
use crate::server::{Errand, Flush, ServerPlan, Span, Workload};

/// So many nodes, of which the first founds the cluster and holds leadership. Everything else is for
/// the schedule to change.
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
        wish: Wish::Auto,
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
        // A restarted process begins without its log: the stories tell of members that have forgotten.
        recovers: false,
        ..Plan::as_shipped(profiles::by_turn(0), seed)
    };
    for node in &mut plan.nodes {
        node.server.speed.start_us = Span(5_000, 20_000);
        node.server.speed.transfer_us = Span(5_000, 50_000);
    }
    plan
}

/// The same, with clients that may stream.
pub fn streaming(size: usize, seed: u64) -> Plan {
    let mut plan = cluster(size, seed);
    for node in &mut plan.nodes {
        // Not 0: what is modelled of streaming depends on it.
        node.server.load.streaming_percent = 1;
    }
    plan
}

/// Three of four found the cluster without being told who; see [`replaces`].
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

/// The operator has the fourth node take this one's place: he edits the others' configurations and restarts
/// them.
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

/// A row of the database.
pub fn row(number: u32) -> u32 {
    Errand::FIRST_ROW + number
}

/// The first node; it founds the cluster.
pub const N1: NodeId = 0;
/// The second.
pub const N2: NodeId = 1;
/// The third.
pub const N3: NodeId = 2;
/// The fourth.
pub const N4: NodeId = 3;
/// The fifth.
pub const N5: NodeId = 4;

/// Beyond the end of every run.
pub(super) const NEVER_US: TimeUs = 1 << 50;

/// The same, and who is started again goes on with its log.
pub fn recovering(size: usize, seed: u64) -> Plan {
    Plan {
        recovers: true,
        ..cluster(size, seed)
    }
}
