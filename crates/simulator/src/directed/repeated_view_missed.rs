//! A server that connects anew has missed a view that repeats the one before (rule 6).
//!
//! n2's client streams, and all nodes have its first fragment. n3 stops hearing the others and declares itself
//! non-primary. The others meet it in a view with the same members, at which all servers undo streaming transactions.
//! n3 does not hear of that either, and its server connects anew, with another incarnation. Meanwhile a row of that
//! transaction was written. To apply that write, n3's server must see that the missed view repeats its own last view.

use trireme_mutants::Mutant;

use super::cluster::streaming;
use super::{Directed, N1, N2, N3, Play, Stage, row};
use crate::fault::Fault;
use crate::server::{Errand, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::RepeatedViewHidden],
    plan: |seed| {
        let mut plan = streaming(3, seed);
        plan.suspect_timeout_ms = 1_000;
        for node in &mut plan.nodes {
            // The simulator does not model DDL beside streaming.
            node.server.load.ddl_per_mille = 0;
        }
        let speed = &mut plan.nodes[N2].server.speed;
        // A statement takes half a second, and the transaction has ten seconds of idle time.
        speed.statement_us = Span(500_000, 100_000);
        // Its rollback fragment comes late.
        speed.view_us = Span(1_000_000, 1_000_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let streamed = stage.errand(
        N2,
        Errand {
            writes: vec![row(1)],
            locks: vec![row(2)],
            streams: true,
            long: true,
            ..Errand::default()
        },
    );
    stage.until("its fragment is everywhere", |s| {
        let nodes = [N1, N2, N3];
        nodes.iter().all(|node| s.has_committed(*node, streamed))
    })?;
    stage.pass_ms(50);
    stage.cut(&[N1, N2], &[N3]);
    let other = stage.write(N1, &[row(3)]);
    stage.until("n1 goes on", |s| s.acknowledged(other))?;
    let view = stage.view(N1);
    stage.until("a view repeats the one before", |s| s.view(N1) > view)?;
    stage.check("n3 misses it", stage.view(N3) == view)?;
    let next = stage.write(N1, &[row(1)]);
    stage.until("the row is free", |s| s.acknowledged(next))?;
    stage.check("n2 has not undone it yet", stage.told(streamed).is_none())?;
    stage.strike(Fault::Reconnect {
        node: N3,
        for_us: 100_000,
    });
    let is_anew = |s: &Stage| s.process(N3).is_some_and(|p| p.start > p.first_start);
    stage.until("n3 connects anew", is_anew)?;
    stage.heal(&[N1, N2], &[N3]);
    stage.until("n3 has it, too", |s| s.has_applied(N3, next))
}
