//! All nodes die within DDL that fails, and die again before its error vote is over (rules 13 and 22).
//!
//! n1 has the only database. It executes the DDL again; the DDL fails, and counts as failed until the members have
//! voted. Meanwhile grastate.dat names no history. If the DDL were noted as ended, nothing would explain that file, and
//! n1 would wait with the two arbitrators for a database. The seed decides how far n1 gets.

use trireme_mutants::Mutant;

use super::dies_as_ddl_ends::plan;
use super::{Directed, N1, N2, N3, Play, Stage, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::EndNotedInVote],
    plan,
    play,
};

fn play(stage: &mut Stage) -> Play {
    presumes(stage)?;
    let all = [N1, N2, N3];
    let steps = 3 + 5 * stage.world.plan.seed;
    stage.die_after(N1, steps, false)?;
    for node in [N2, N3] {
        stage.crash(node, false);
    }
    for node in all {
        stage.start(node);
    }
    stage.until("n1 serves", |s| s.serves(N1))?;
    let written = stage.write(N1, &[row(1)]);
    stage.until("it writes", |s| s.acknowledged(written))
}

/// Plays until n1 takes its error for the outcome.
pub(super) fn presumes(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    let before = stage.position(N1);
    let action = stage.failing_ddl(N1, 0);
    stage.until("it is ordered", |s| s.has_committed(N1, action))?;
    stage.pass_ms(20);
    stage.check("it runs", stage.position(N1) == before)?;
    for node in all {
        stage.crash(node, false);
    }
    for node in all {
        stage.start(node);
    }
    stage.until("n1 has failed to execute it", |s| s.position(N1) > before)
}
