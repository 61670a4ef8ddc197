//! All nodes lose power in `os` mode, and neither a log nor a database has kept an acknowledged commit (rules 4, 11).
//!
//! X was committed on n1 and n2. All three go on by themselves, and order another entry in the place of X: that is a
//! branch of its own, which the order names as an override.

use trireme_mutants::Mutant;

use super::cluster::commit_onto_disks;
use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::server::Flush;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ReformsAsElected],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        for node in &mut plan.nodes {
            node.server.flush = Flush::WriteEachCommit;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    commit_onto_disks(stage, N1, &all, 1_000)?;
    let x = stage.write(N1, &[row(2)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    for node in all {
        stage.lose_power(node);
    }
    for node in all {
        stage.start(node);
        stage.check("X is lost", stage.holds(node, x).is_none())?;
    }
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let y = stage.write(N2, &[row(3)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
