//! A node fails to apply a write-set that all others have applied, and none of them has a term (rule 22).
//!
//! n3 was away while n1 wrote a row. n1 and n2 have applied and reported it, and the certification index has
//! forgotten it. n3 comes back, but is busy with DDL. When n3 comes to the row and fails, n1 and n2 are desynced and
//! paused. An error vote waits for neither, and no node knows whose write it was. The purged index proves that all
//! voters had applied the write-set with success: n3 is wrong.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::PurgedSuccessForgotten],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 1_000;
        for node in &mut plan.nodes {
            node.server.load.ddl_per_mille = 0;
            node.server.admin.hold_us = Span(5_000_000, 5_000_000);
        }
        let server = &mut plan.nodes[N3].server;
        server.apply_errors_per_million = 1_000_000;
        server.speed.ddl_us = Span(3_000_000, 3_000_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let view = stage.view(N1);
    stage.until("n3 is given up", |s| s.view(N1) > view)?;
    stage.ddl(N1, 0);
    let write = stage.write(N1, &[row(1)]);
    stage.until("the others have it", |s| {
        s.has_applied(N1, write) && s.has_applied(N2, write)
    })?;
    stage.pass_ms(2_500); // time for their reports
    stage.join(&[N3], &[N1, N2]);
    stage.until("n3 is back", |s| s.holds(N3, write).is_some())?;
    let desynced = |s: &Stage, node| s.state(node) == Some(LocalState::Donor);
    for node in [N1, N2] {
        stage.hold_still(node);
        stage.until("it is desynced", |s| desynced(s, node))?;
    }
    let failed = |s: &Stage| s.process(N3).is_none_or(|p| p.server.has_failed());
    stage.check("n3 has not come to it", !failed(stage))?;
    stage.until("n3 has failed", failed)?;
    stage.check(
        "nobody else votes",
        desynced(stage, N1) && desynced(stage, N2),
    )?;
    stage.pass_ms(500);
    let out = stage.process(N3).is_none() || stage.state(N3) == Some(LocalState::Inconsistent);
    stage.must("n3 is wrong", out);
    Ok(())
}
