//! All nodes lose power in `os` mode within a total-order action, before their operating systems have written their
//! logs back (rules 4, 13).
//!
//! Every database may hold the action. No log without its entry could bring up any of them, so each node has flushed
//! its log before the action began. They go on by themselves, and execute the action again.

use trireme_mutants::Mutant;

use super::cluster::commit_onto_disks;
use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::NoteAheadOfLog],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        for node in &mut plan.nodes {
            node.server.speed.ddl_us = Span(80_000, 100_000);
            node.server.flush = Flush::WriteEachCommit;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    commit_onto_disks(stage, N1, &all, 100)?;
    let action = stage.ddl(N2, 0);
    stage.until("all know of the action", |s| {
        all.iter().all(|n| s.has_committed(*n, action))
    })?;
    stage.pass_ms(20);
    for node in all {
        stage.lose_power(node);
    }
    for node in all {
        stage.start(node);
    }
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let y = stage.write(N2, &[row(3)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
