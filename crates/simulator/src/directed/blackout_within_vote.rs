//! All databases die during the error vote on a DDL (rules 13 and 22).
//!
//! n1, with the arbitrator n3, cannot execute the DDL and reports so. n2 is cut off when it has the DDL, and cannot
//! execute it either, but no node hears that. n1 and n2 are killed. Their positions cover the DDL, and neither knows
//! how it ended. n3 has n1's ballot, and no other ballot will come. The cluster goes on with one of the databases.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DoubtIsASuccess],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 60_000;
        for node in &mut plan.nodes {
            node.server.load.ddl_per_mille = 0;
            node.server.speed.ddl_us = Span(20_000, 40_000);
        }
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.pass_ms(2_000);
    let action = stage.failing_ddl(N1, 0);
    stage.until("n2 knows of the action", |s| s.has_committed(N2, action))?;
    stage.part(&[N2], &[N1, N3]);
    stage.pass_ms(1_000);
    stage.check("n1 waits for n2's ballot", stage.told(action).is_none())?;
    for node in [N1, N2] {
        stage.crash(node, false);
    }
    stage.join(&[N2], &[N1, N3]);
    for node in [N1, N2] {
        stage.start(node);
    }
    for node in [N1, N2] {
        stage.until("they serve", |s| s.has_vote(node))?;
    }
    let after = stage.write(N2, &[row(1)]);
    stage.until("a write afterwards", |s| s.acknowledged(after))
}
