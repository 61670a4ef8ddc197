//! One of two nodes applies slowly: the other's writers wait for it, as long as it takes.
//!
//! Nothing else would bound n2's backlog. When n2 has caught up, n1's clients go on.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, Play, Stage, cluster};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LastSyncedLeftOut, Mutant::ContinueLost],
    plan: |seed| {
        let mut plan = cluster(2, seed);
        plan.fc_limit = 1;
        plan.nodes[N2].server.appliers = 1;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.slow_appliers(N2, 2_000);
    let mut writes = stage.write_many(N1, 0..8);
    // A node that is slow only for a moment stops no writers.
    stage.pass_ms(100);
    writes.extend(stage.write_many(N1, 8..12));
    stage.until("n1's clients wait", |s| s.clients_wait(N1))?;
    stage.pass_ms(500);
    let waits = !writes.iter().all(|write| stage.acknowledged(*write));
    stage.must("n1's clients wait on", waits);
    let in_step = stage.state(N2) == Some(LocalState::Synced);
    stage.must("n2 stays in flow control", in_step);
    stage.pass_ms(8_000);
    let done = writes.iter().all(|write| stage.acknowledged(*write));
    stage.must("n1's clients go on when n2 has caught up", done);
    Ok(())
}
