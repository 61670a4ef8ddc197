//! A node that was found inconsistent connects again and again while its server runs (rule 22).
//!
//! n3 fails to apply a write-set and is outvoted; what comes behind it is left out. Its server cannot take a
//! snapshot under itself, so nothing may come of its connections: only a new process gets a database.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N3, Play, Stage, cluster, row};
use crate::fault::Fault;
use crate::machine::Process;

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
    stage.write(N1, &[row(1)]);
    stage.until("n3 has diverged", |s| {
        s.process(N3).is_some_and(|p| p.server.has_failed())
    })?;
    for made in [1, 2] {
        stage.strike(Fault::Reconnect {
            node: N3,
            for_us: 100_000,
        });
        stage.write(N1, &[row(2)]);
        stage.until("n3 is to be brought up to date", |s| {
            connections(s) == made && s.state(N3) == Some(LocalState::Joiner)
        })?;
    }
    let serves = |s: &Stage| s.state(N3) == Some(LocalState::Synced);
    stage.until("its process has ended, or it serves", |s| {
        serves(s) || connections(s) != 2
    })?;
    stage.must("it does not serve", !serves(stage));
    Ok(())
}

/// How often n3's process has connected again; 0: it has ended.
fn connections(stage: &Stage) -> u64 {
    let made = |process: &Process| process.start - process.first_start;
    stage.process(N3).map_or(0, made)
}
