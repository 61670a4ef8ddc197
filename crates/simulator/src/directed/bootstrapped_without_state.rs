//! An operator removes n1's grastate.dat and bootstraps n1. Its database continues its history, but no saved state
//! vouches for the database (rule 11).
//!
//! The seed modulo 3 decides. 0: n2 and n3 have gone on without n1, and serve. They do not yield to it, and n1 takes
//! an SST. 1: all were killed at once. n2 and n3 follow n1, and each takes an SST from it, although they know
//! everything that n1 has. 2: n2 and n3 have gone on without n1 and were killed, too, as in galera.MDEV-29142. They
//! follow n1: the operator has ordered it, and they serve no clients.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MajorityYieldsToIgnoredQuorum],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let x = stage.write(N1, &[row(1)]);
    let everywhere = |s: &Stage| [N1, N2, N3].iter().all(|n| s.has_applied(*n, x));
    stage.until("all have X", everywhere)?;
    match stage.world.plan.seed % 3 {
        0 => beside_majority(stage),
        1 => {
            stage.crash(N1, false);
            after_blackout(stage)
        }
        _ => {
            let view = stage.view(N2);
            stage.crash(N1, false);
            let goes_on = |s: &Stage| s.view(N2) > view && s.serve(&[N2, N3]);
            stage.until("n2 and n3 go on", goes_on)?;
            after_blackout(stage)
        }
    }
}

fn beside_majority(stage: &mut Stage) -> Play {
    let view = stage.view(N2);
    stage.crash(N1, false);
    let goes_on = |s: &Stage| s.view(N2) > view && s.serve(&[N2, N3]);
    stage.until("n2 and n3 go on", goes_on)?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("they write Y", |s| {
        s.acknowledged(y) && s.has_applied(N3, y)
    })?;
    let view = stage.view(N2);
    stage.bootstrap_without_state(N1);
    for _ in 0..100 {
        stage.pass_ms(100);
        let goes_on = |node| {
            stage.component_state(node) == ComponentState::Primary && stage.holds(node, y).is_some()
        };
        let both = goes_on(N2) && goes_on(N3);
        stage.must("the majority is primary all the time, and keeps Y", both);
    }
    if stage.process(N1).is_none() {
        stage.start(N1);
    }
    stage.until("all serve in one view", |s| {
        s.view(N1) > view && s.serve(&[N1, N2, N3])
    })
}

fn after_blackout(stage: &mut Stage) -> Play {
    stage.crash(N2, false);
    stage.crash(N3, false);
    stage.bootstrap_without_state(N1);
    stage.until("n1 is primary", |s| {
        s.component_state(N1) == ComponentState::Primary
    })?;
    let y = stage.write(N1, &[row(1)]);
    stage.until("n1 writes Y", |s| s.acknowledged(y))?;
    let snapshots = stage.world.coverage.transfers;
    stage.start(N2);
    stage.until("n2 has followed", |s| s.serve(&[N1, N2]))?;
    stage.start(N3);
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))?;
    let taken = stage.world.coverage.transfers - snapshots;
    stage.must("n2 and n3 have taken a snapshot", taken == 2);
    Ok(())
}
