//! A joiner dies in the view change that admits it (rule 3).
//!
//! n1 is a cluster of one. n2 joins, is in the view, and dies before it has the database. If n2 had got its vote at
//! once, n1 could not even remove it, and nothing would commit any more.

use trireme_mutants::Mutant;

use super::cluster::NEVER_US;
use super::{Directed, N1, N2, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::JoinerVotesAtOnce],
    plan: |seed| {
        let mut plan = cluster(2, seed);
        plan.nodes[N2].start_us = NEVER_US;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.until("n1 has its first view", |s| s.views_shown(N1) == 1)?;
    stage.start(N2);
    stage.until("n2 is admitted", |s| s.view(N1) == 2)?;
    stage.crash(N2, false);
    stage.part(&[N2], &[N1]);
    let x = stage.write(N1, &[row(1)]);
    stage.pass_ms(500);
    stage.must("a cluster of one commits", stage.acknowledged(x));
    Ok(())
}
