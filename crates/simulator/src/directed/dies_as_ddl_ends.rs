//! The only node with a database is killed when a total-order action ends (rule 13).
//!
//! The seed decides how far n1 gets. If it noted the end before grastate.dat names the history again, nothing would
//! explain that file, and n1 would wait with the two arbitrators for a database.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::plan::Plan;
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::EndNotedFirst],
    plan,
    play,
};

/// Three nodes, one of them with a database.
pub(super) fn plan(seed: u64) -> Plan {
    let mut plan = recovering(3, seed);
    for node in [N2, N3] {
        plan.nodes[node].arbitrate();
    }
    plan.nodes[N1].server.speed.ddl_us = Span(50_000, 50_000);
    plan
}

fn play(stage: &mut Stage) -> Play {
    dies(stage, false, stage.world.plan.seed % 4)
}

/// Plays until n1 serves again after it has died so many steps later. `fails`: the action fails, and is voted on.
pub(super) fn dies(stage: &mut Stage, fails: bool, steps: u64) -> Play {
    stage.formed()?;
    let action = match fails {
        true => stage.failing_ddl(N1, 0),
        false => stage.ddl(N1, 0),
    };
    stage.until("it is ordered", |s| s.has_committed(N1, action))?;
    stage.pass_ms(48);
    stage.die_after(N1, steps, false)?;
    stage.start(N1);
    stage.until("n1 serves", |s| s.serves(N1))?;
    let written = stage.write(N1, &[row(1)]);
    stage.until("it writes", |s| s.acknowledged(written))
}
