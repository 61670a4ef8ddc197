//! A node joins while the leader's server holds the leader still (FLUSH TABLES WITH READ LOCK, rule 2).
//!
//! n3 dies, comes back without its log, and is Synced again by n2's help. n1, which leads, does not hear of that before it
//! is let go. So it transfers leadership to n2, and n3 gets its vote. When n1 dies, n2 and n3 are a majority.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::HeldLeaderStays],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.nodes[N1].server.admin.hold_us = Span(25_000_000, 25_000_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.flush_tables(N1);
    stage.until("n1 is held still", |s| s.is_held_still(N1))?;
    stage.crash(N3, false);
    stage.start(N3);
    let is_synced = |s: &Stage| s.state(N3) == Some(LocalState::Synced);
    stage.until("n3 is back", is_synced)?;
    stage.pass_ms(12_000);
    stage.check("n1 is held still yet", stage.is_held_still(N1))?;
    stage.must("n3 has a vote", stage.has_vote(N3));
    stage.crash(N1, false);
    let write = stage.write(N3, &[row(1)]);
    stage.until("the others go on", |s| {
        s.acknowledged(write) && s.has_applied(N2, write)
    })
}
