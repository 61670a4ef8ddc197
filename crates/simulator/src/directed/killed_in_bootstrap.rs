//! A bootstrapped node counts as being at an action above its database's position, and is killed at once (rule 13).
//!
//! All processes die while n3 executes DDL, so that n3's database may hold it. The operator bootstraps n3: its new log
//! begins above the DDL. n3 is killed before its database is at that log's first entry. It must go on with its
//! database and its log, without a second bootstrap.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::plan::Plan;
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FoundersActionForgotten],
    plan: slow_ddl,
    play,
};

pub(super) fn slow_ddl(seed: u64) -> Plan {
    let mut plan = recovering(3, seed);
    let server = &mut plan.nodes[N3].server;
    server.speed.ddl_us = Span(300_000, 300_000);
    server.flush = Flush::WriteEachCommit;
    plan
}

fn play(stage: &mut Stage) -> Play {
    let power_loss = stage.world.plan.seed % 2 == 0;
    die_within_ddl(stage, power_loss)?;
    stage.world.machines[N3].bootstrap = true;
    stage.start(N3);
    stage.until("it is primary again", |s| s.members(N3) == 1)?;
    stage.crash(N3, false);
    goes_on_by_itself(stage, 5_000)
}

/// All processes die while n3 executes DDL.
pub(super) fn die_within_ddl(stage: &mut Stage, power_loss: bool) -> Play {
    stage.formed()?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("n3 has X", |s| s.has_applied(N3, x))?;
    let action = stage.ddl(N1, 0);
    stage.until("n3 knows of the DDL", |s| s.has_committed(N3, action))?;
    stage.pass_ms(50);
    for node in [N1, N2, N3] {
        stage.crash(node, power_loss);
    }
    stage.check("n3's database is behind", !stage.has_applied(N3, action))
}

/// n3 is started again, and serves within this time without an operator; then the others come.
pub(super) fn goes_on_by_itself(stage: &mut Stage, within_ms: u64) -> Play {
    stage.start(N3);
    stage.pass_ms(within_ms);
    let serves = stage.serve(&[N3]);
    stage.must("it goes on by itself", serves);
    for node in [N1, N2] {
        stage.start(node);
    }
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("they commit", |s| s.acknowledged(y))
}
