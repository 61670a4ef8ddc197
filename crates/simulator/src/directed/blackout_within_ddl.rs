//! All die within a total-order action, and are started again with their ordinary configuration (rule 13).
//!
//! A seed decides how far each of them is: the action has begun, was executed (its position not flushed),
//! or has ended; and whether the machines lose power too. If nobody's database is beyond doubt, the furthest is
//! gone on with: nobody bootstraps.

use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[
        Mutant::BegunCountsAsEnded,
        Mutant::DoubtNotSaid,
        Mutant::DoneIsAnError,
    ],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.recovers = true;
        plan.durability = Durability::Disk;
        for node in &mut plan.nodes {
            node.server.speed.ddl_us = Span(1_000, 100_000);
            node.server.speed.stage_us = Span(1_000, 20_000);
            node.server.flush = Flush::EachSecond;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.pass_ms(2_000);
    let before = stage.write(N2, &[row(1)]);
    stage.until("a write", |s| s.acknowledged(before))?;
    let action = stage.ddl(N1, 0);
    stage.until("all know of the action", |s| {
        [N1, N2, N3].iter().all(|n| s.has_committed(*n, action))
    })?;
    let seed = stage.world.plan.seed;
    stage.pass_ms(seed % 60);
    for node in [N2, N1, N3] {
        stage.crash(node, seed % 3 == 0);
    }
    for node in [N3, N2, N1] {
        stage.start(node);
    }
    for node in [N1, N2, N3] {
        stage.until("they serve", |s| s.has_vote(node))?;
    }
    let after = stage.write(N3, &[row(1)]);
    stage.until("a write afterwards", |s| s.acknowledged(after))
}
