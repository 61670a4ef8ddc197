//! A bootstrapped node counts as being at an action above its database's position, and is killed at once (rule 13).
//!
//! All processes die while n3 executes DDL, so that n3's database may hold it. The operator bootstraps n3: its new log
//! begins above the DDL. n3 is killed before its database is at that log's first entry. It must go on with its
//! database and its log, without a second bootstrap.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FoundersActionForgotten],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        let server = &mut plan.nodes[N3].server;
        server.speed.ddl_us = Span(300_000, 300_000);
        server.flush = Flush::WriteEachCommit;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("n3 has X", |s| s.has_applied(N3, x))?;
    let action = stage.ddl(N1, 0);
    stage.until("n3 knows of the DDL", |s| s.has_committed(N3, action))?;
    stage.pass_ms(50);
    let seed = stage.world.plan.seed;
    for node in [N1, N2, N3] {
        stage.crash(node, seed % 2 == 0);
    }
    stage.check("n3's database is behind", !stage.has_applied(N3, action))?;
    stage.world.machines[N3].bootstrap = true;
    stage.start(N3);
    stage.until("it is primary again", |s| s.members(N3) == 1)?;
    stage.crash(N3, false);
    stage.start(N3);
    stage.pass_ms(5_000);
    let serves = stage.serve(&[N3]);
    stage.must("it goes on by itself", serves);
    for node in [N1, N2] {
        stage.start(node);
    }
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("they commit", |s| s.acknowledged(y))
}
