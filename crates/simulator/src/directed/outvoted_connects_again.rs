//! A node that was found inconsistent connects again and again while its server runs (rule 22).
//!
//! n3 fails to apply a write-set and is outvoted; what comes behind it is left out. Its server cannot take a
//! snapshot under itself, so nothing may come of its connections: only a new process gets a database.

use trireme_group::Standing;
use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N3, Play, Stage, cluster, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::InconsistencyForgotten],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.nodes[N3].server.apply_errors_per_million = 1_000_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let first = connection(stage).unwrap_or_default();
    stage.write(N1, &[row(1)]);
    stage.until("n3 has diverged", |s| {
        s.process(N3).is_some_and(|p| p.server.has_failed())
    })?;
    for next in [first + 1, first + 2] {
        stage.strike(Fault::Reconnect {
            node: N3,
            for_us: 100_000,
        });
        stage.write(N1, &[row(2)]);
        stage.until("n3 connects again", |s| {
            connection(s) == Some(next) && s.standing(N3) == Standing::Primary
        })?;
    }
    let joins = |s: &Stage| s.state(N3) == Some(LocalState::Synced);
    stage.until("its process has ended, or it serves", |s| {
        joins(s) || connection(s) != Some(first + 2)
    })?;
    stage.must("it does not serve", !joins(stage));
    Ok(())
}

/// Which one n3 is in; it counts on from process to process.
fn connection(stage: &Stage) -> Option<u64> {
    stage.process(N3).map(|process| process.start)
}
