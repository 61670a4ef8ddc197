//! A streaming transaction is committed on the branch that a forced view has left, its origin with it (rules 7 and 11).
//!
//! n5's client sends the last fragment. n1, n2 and n3 commit it, and n5 and n4 hear nothing of that. n4 goes on with n5
//! (`pc.ignore_quorum`). That branch orders n5's next submission, and not the fragment: so n5's client gets its answer.
//! n3 is slow, and applies the fragment only then. n5 must not have said that the transaction failed.

use trireme_mutants::Mutant;
use trireme_replicator::Code;

use super::cluster::streaming;
use super::replayed_stream::fragments;
use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, row};
use crate::server::{Errand, Span};

/// One for each row, and the last one.
const FRAGMENTS: usize = 4;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OvertakenBehindForkFails],
    plan: |seed| {
        let mut plan = streaming(5, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.recovers = true;
        plan.nodes[N5].server.speed.statement_us = Span(20_000, 40_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    let (few, rest) = ([N4, N5], [N1, N2, N3]);
    stage.configure(N4, |config| config.ignore_quorum = true);
    let has = |s: &Stage, node, trx, count| fragments(s, node, trx) == count;
    let mut open = None;
    while open.is_none() {
        let errand = Errand {
            writes: vec![row(1), row(2), row(3)],
            streams: true,
            ..Errand::default()
        };
        let trx = stage.errand(N5, errand);
        stage.until("n5 has a fragment of each row", |s| {
            has(s, N5, trx, FRAGMENTS - 1) && s.commit(N5) == s.end(N5)
        })?;
        stage.pass_ms(5);
        // The last row's fragment may be the last one.
        open = stage.told(trx).is_none().then_some(trx);
    }
    let trx = open.unwrap_or_default();
    stage.slow_appliers(N3, 100_000);
    stage.cut(&rest, &few);
    stage.until("the rest commits the last", |s| {
        has(s, N2, trx, FRAGMENTS) && s.commit(N2) == s.end(N2) && s.has_applied(N2, trx)
    })?;
    stage.cut(&few, &rest);
    stage.check("n5 has not heard of it", has(stage, N5, trx, FRAGMENTS - 1))?;
    stage.until("n4 goes on with n5", |s| s.members(N5) == 2)?;
    stage.check("the client waits", stage.told(trx).is_none())?;
    stage.until("n5's client has its answer", |s| s.told(trx).is_some())?;
    stage.check("n3 is slow", !stage.has_applied(N3, trx))?;
    stage.until("n3 has it, too", |s| s.has_applied(N3, trx))?;
    let is_unknown = stage.told(trx) == Some(Code::NodeFail);
    stage.must("n5's client does not know", is_unknown);
    Ok(())
}
