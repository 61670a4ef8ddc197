//! One of three nodes applies so slowly that the writers wait for it (rule 15).
//!
//! n3's apply queue is over the limit, and it asks for a stop. n1, whose clients wait, proposes to leave n3 out of
//! flow control. The others go on at once, and n3 is synced again when it has caught up.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LeftOutStops],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.fc_limit = 1;
        plan.nodes[N3].server.appliers = 1;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.slow_appliers(N3, 2_000);
    let mut writes = stage.write_many(N1, 0..12);
    // A node that is slow only for a moment stops no writers.
    stage.pass_ms(100);
    writes.extend(stage.write_many(N1, 12..24));
    stage.until("n1's clients wait", |s| s.clients_wait(N1))?;
    stage.pass_ms(1_000);
    let done = writes.iter().all(|write| stage.acknowledged(*write));
    stage.must("the others go on", done);
    let left_out = stage.state(N3) == Some(LocalState::Donor);
    stage.must("the group has desynced n3", left_out);
    let in_step = [N1, N2].map(|node| stage.state(node) == Some(LocalState::Synced));
    stage.must("the others are in step", in_step == [true; 2]);
    stage.until("n3 has caught up", |s| {
        s.state(N3) == Some(LocalState::Synced)
    })
}
