//! An SST that was requested before a fork point arrives after it (rule 11).
//!
//! n1 is cut off from the other three, which go on and write. n5 joins them with an empty database, and a donor
//! begins to send. Then n5 loses them, and `pc.bootstrap` makes n1 primary. n5 finds n1's group and takes n1's log,
//! which never had the write. The SST that n5's donor still sends has the write.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::cluster::{NEVER_US, gives_up_snapshot};
use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};
use crate::fault::Fault;
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OldBranchSnapshotTaken],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.nodes[N5].start_us = NEVER_US;
        for node in [N2, N3, N4] {
            plan.nodes[node].server.speed.transfer_us = Span(6_000_000, 6_000_000);
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    let rest = [N2, N3, N4];
    stage.until("four nodes serve", |s| (N1..N5).all(|node| s.serves(node)))?;
    stage.part(&[N1], &[N2, N3, N4, N5]);
    stage.until("n1 is alone", |s| {
        s.component_state(N1) == ComponentState::NonPrimary
    })?;
    let write = stage.write(N2, &[row(1)]);
    stage.until("the rest goes on", |s| {
        rest.iter().all(|node| s.has_applied(*node, write))
    })?;
    stage.start(N5);
    let donates = |s: &Stage, node| s.state(node) == Some(LocalState::Donor);
    stage.until_one("a donor is chosen", &rest, donates)?;
    stage.pass_ms(100);
    stage.part(&[N5], &rest);
    stage.until("n5 has lost them", |s| {
        s.component_state(N5) == ComponentState::NonPrimary
    })?;
    stage.strike(Fault::Override { node: N1 });
    stage.until("n1 is primary", |s| {
        s.component_state(N1) == ComponentState::Primary
    })?;
    stage.join(&[N1], &[N5]);
    gives_up_snapshot(stage, N5)
}
