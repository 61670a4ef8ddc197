//! All nodes lose power in `os` mode while an operator's override is committed (rules 4, 11).
//!
//! The nodes lose each other, and `pc.bootstrap` makes n1 and n2 primary. n1 dies a few steps into the commit; the seed
//! decides how many. If it has noted the override in its database's past, its log must count the override as committed.
//! Otherwise nobody could compare that database with the logs, and all would wait for an operator.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::NoteAheadOfLog],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    stage.force_apart(&all)?;
    let end = stage.end(N2);
    stage.until("n2 has the override", |s| s.end(N2) > end)?;
    let steps = 2 + stage.world.plan.seed % 6;
    stage.die_after(N1, steps, true)?;
    for node in all {
        stage.lose_power(node);
    }
    stage.join(&all, &all);
    for node in all {
        stage.start(node);
    }
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let written = stage.write(N3, &[row(1)]);
    stage.until("they serve", |s| s.acknowledged(written))
}
