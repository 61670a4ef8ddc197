//! All nodes die within a total-order action and are started again with their ordinary configuration (rule 13).
//!
//! The seed decides the progress of each node: the action has begun, was executed (its position not flushed), or has
//! ended. It also decides whether the machines lose power, and whether one node had died before. If every database is
//! in doubt, the cluster goes on with the most advanced one: nobody bootstraps.

use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DoubtNotSaid],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.durability = Durability::Disk;
        for node in &mut plan.nodes {
            node.server.speed.ddl_us = Span(40_000, 100_000);
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
    let seed = stage.world.plan.seed;
    let (all, pair) = ([N1, N2, N3], [N1, N2]);
    // One node may have been away and lack the action: it gets the action from the others' logs.
    let was_away = seed % 2 == 1;
    let killed = if was_away { &pair[..] } else { &all[..] };
    if was_away {
        let view = stage.view(N1);
        stage.crash(N3, false);
        stage.until("n3 is out", |s| pair.iter().all(|n| s.view(*n) > view))?;
    }
    let before = stage.write(N2, &[row(1)]);
    stage.until("a write", |s| s.acknowledged(before))?;
    let action = stage.ddl(N1, 0);
    stage.until("all know of the action", |s| {
        killed.iter().all(|n| s.has_committed(*n, action))
    })?;
    stage.pass_ms(seed % 90);
    for node in killed {
        stage.crash(*node, seed % 3 == 0);
    }
    for node in killed.iter().rev() {
        stage.start(*node);
    }
    for node in killed {
        stage.until("they serve", |s| s.has_vote(*node))?;
    }
    let after = stage.write(N2, &[row(1)]);
    stage.until("a write afterwards", |s| s.acknowledged(after))?;
    stage.start(N3);
    stage.until("n3 is back", |s| s.has_vote(N3))
}
