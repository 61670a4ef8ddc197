//! A leader that hears one member only, and that member hears a majority without it (rule 2).
//!
//! The leader of four members loses two of them. The fourth hears everybody: the leader, which hears no majority, and the
//! two others, with which it is one. The three elect another leader and go on.

use trireme_mutants::Mutant;

use super::cluster::commit_each;
use super::{Directed, N1, N2, N3, N4, Play, Stage, hasty};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LonelyLeaderObeyed],
    plan: |seed| hasty(4, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4];
    let leader = stage.takeover(&all)?;
    let others: Vec<_> = all.into_iter().filter(|n| *n != leader).collect();
    stage.part(&[leader], &others[..2]);
    let went_on = stage.until("the others serve", |s| {
        let is_leading = others.iter().any(|n| s.is_leading(*n));
        is_leading && s.serve(&others)
    });
    stage.must("the three others go on", went_on.is_ok());
    commit_each(stage, &others, 1_000)
}
