//! A total-order action is executed, but the database's position is behind it (rules 13 and 24).
//!
//! n3 executes DDL. Before its storage engine has flushed the new position, all processes die. n2 was paused and does
//! not know of the DDL. n3 is bootstrapped. It must not give the action's seqno to another entry (with half of the
//! seeds the crash takes the position from n3).

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ExecutedActionForgotten],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan.nodes[N1].server.speed.ddl_us = Span(400_000, 400_000);
        let server = &mut plan.nodes[N3].server;
        server.speed.ddl_us = Span(1_000, 1_000);
        server.flush = Flush::EachSecond;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.pass_ms(2_000);
    stage.pause(N2);
    let action = stage.ddl(N1, 0);
    stage.until("n3 has executed it", |s| s.has_applied(N3, action))?;
    stage.check("n1 has not", !stage.has_applied(N1, action))?;
    for node in [N1, N2, N3] {
        stage.crash(node, false);
    }
    stage.world.machines[N3].bootstrap = true;
    stage.start(N3);
    stage.until("n3 serves", |s| s.has_vote(N3))?;
    stage.pass_ms(500);
    stage.start(N2);
    Ok(())
}
