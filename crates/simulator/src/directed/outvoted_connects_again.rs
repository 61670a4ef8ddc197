//! An inconsistent node connects again and again while its server runs (rule 22).
//!
//! n3 fails to apply a write-set and loses the error vote; the write-sets after it are left out. Its server cannot
//! take an SST while it runs, so its new connections must lead to nothing: only a new process gets a database.

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

/// Number of new connections of n3's process; 0: the process has ended.
fn connections(stage: &Stage) -> u64 {
    let made = |process: &Process| process.start - process.first_start;
    stage.process(N3).map_or(0, made)
}
