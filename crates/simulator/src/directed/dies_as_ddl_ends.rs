//! The only node with a database is killed when a total-order action ends (rule 13).
//!
//! The seed decides how far n1 gets. If it noted the end before grastate.dat names the history again, nothing would
//! explain that file, and n1 would wait with the two arbitrators for a database.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::EndNotedFirst],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        for node in [N2, N3] {
            plan.nodes[node].arbitrate();
        }
        plan.nodes[N1].server.speed.ddl_us = Span(50_000, 50_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let action = stage.ddl(N1, 0);
    stage.until("it is ordered", |s| s.has_committed(N1, action))?;
    stage.pass_ms(48);
    let steps = stage.world.plan.seed % 4;
    stage.die_after(N1, steps, false)?;
    stage.start(N1);
    stage.until("n1 serves", |s| s.serves(N1))?;
    let written = stage.write(N1, &[row(1)]);
    stage.until("it writes", |s| s.acknowledged(written))
}
