//! A write-set whose origin has given it up with an unknown outcome is overwritten there unseen (rules 9d and 24):
//! the lost update of one origin.
//!
//! n3's client writes a row. The leader orders it, but n3 hears nothing and loses the primary component. The client
//! hears that the outcome is unknown, and releases the row. Another client of n3 waits for the row and writes it on
//! the old version. n3 comes back and commits that write while its appliers are still busy with earlier entries.
//! Write-sets of one origin do not conflict, because row locks order them; no row lock has ordered these two.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::{Errand, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::EpochNotRaised],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 1_000;
        for node in &mut plan.nodes {
            node.server.load.ddl_per_mille = 0;
        }
        let server = &mut plan.nodes[N3].server;
        server.appliers = 1;
        server.speed.ddl_us = Span(5_000_000, 5_000_000);
        // A statement takes a tenth of a second, and the transaction has two seconds of idle time.
        server.speed.statement_us = Span(100_000, 20_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let ddl = stage.ddl(N1, 0);
    let known = |s: &Stage| s.holds(N3, ddl).is_some_and(|at| at <= s.commit(N3));
    stage.until("n3 has the DDL before it", known)?;
    stage.cut(&[N1, N2], &[N3]);
    let first = stage.write(N3, &[row(1)]);
    stage.until("the others have it", |s| s.has_applied(N1, first))?;
    let second = stage.errand(
        N3,
        Errand {
            writes: vec![row(1)],
            long: true,
            ..Errand::default()
        },
    );
    stage.until("n3 gives up", |s| s.told(first).is_some())?;
    stage.heal(&[N1, N2], &[N3]);
    let back = |s: &Stage| s.component_state(N3) == ComponentState::Primary;
    stage.until("n3 is back", back)?;
    stage.until("the second is ordered", |s| s.holds(N1, second).is_some())?;
    let early = !stage.has_applied(N3, first);
    stage.check("the first waits for n3's applier", early)?;
    stage.until("its client is told", |s| s.told(second).is_some())?;
    stage.must("it has failed", !stage.acknowledged(second));
    Ok(())
}
