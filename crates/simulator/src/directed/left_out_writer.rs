//! A node is left out of flow control while the writers are a little faster than it applies, and its own client writes
//! (rule 21).
//!
//! n3 stumbles, and the group leaves it out. Then it applies two thirds of what n1 would write, for as long as one
//! looks. Its client's transactions would begin further and further behind. So n3 slows n1 down, catches up, and is
//! synced again while n1 writes on.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N3, Play, Stage, cluster};
use crate::server::Span;

/// Time between two steps of the load.
const STEP_MS: u64 = 20;
/// Steps of the load: six seconds.
const STEPS: u32 = 300;
/// Transactions of n1 in each step: 150 per second, where n3 applies about 95.
const WRITES: u32 = 3;
/// Steps between two transactions of n3.
const OWN_STEPS: u32 = 25;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LeftOutWriterForgotten],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.fc_limit = 4;
        plan.nodes[N1].server.load.clients = 8;
        plan.nodes[N3].server.appliers = 1;
        plan.nodes[N3].server.speed.apply_us = Span(4_000, 4_500);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.slow_appliers(N3, 100);
    stage.write_many(N1, 0..30);
    stage.pass_ms(100);
    stage.write_many(N1, 30..50);
    stage.until("n3 is left out", |s| s.state(N3) == Some(LocalState::Donor))?;
    stage.slow_appliers(N3, 1);
    let mut back = false;
    for step in 1..=STEPS {
        let first = 100 * step;
        stage.write_many(N1, first..first + WRITES);
        if step % OWN_STEPS == 0 {
            stage.write_many(N3, [first + WRITES]);
        }
        stage.pass_ms(STEP_MS);
        back |= stage.state(N3) == Some(LocalState::Synced);
    }
    stage.must("n3 has caught up while n1 wrote on", back);
    Ok(())
}
