//! An override commits the last fragment of a streaming transaction, which its origin has withdrawn (rules 7 and 11).
//!
//! n2's client sends the last fragment. n1, which leads, has it in its log, and n2 hears nothing of that: both lose the
//! majority. n2 withdraws the fragment, and its client is told of a certain failure. The operator overrides on n1, which
//! commits the fragment. n2 joins n1 again. Its database is not beyond the fork, and lacks the transaction.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;
use trireme_replicator::Code;

use super::cluster::streaming;
use super::replayed_stream::fragments;
use super::{Directed, N1, N2, Play, Stage, row};
use crate::fault::Fault;
use crate::server::{Errand, Span};

/// One for each row, and the last one.
const FRAGMENTS: usize = 4;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::GivenUpCommitSkipped],
    plan: |seed| {
        let mut plan = streaming(2, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.recovers = true;
        plan.nodes[N2].server.speed.statement_us = Span(20_000, 40_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    let has = |s: &Stage, node, trx, count| fragments(s, node, trx) == count;
    let mut open = None;
    while open.is_none() {
        let errand = Errand {
            writes: vec![row(1), row(2), row(3)],
            streams: true,
            ..Errand::default()
        };
        let trx = stage.errand(N2, errand);
        stage.until("n2 has a fragment of each row", |s| {
            has(s, N2, trx, FRAGMENTS - 1) && s.commit(N2) == s.end(N2)
        })?;
        stage.pass_ms(5);
        // The last row's fragment may be the last one.
        open = stage.told(trx).is_none().then_some(trx);
    }
    let trx = open.unwrap_or_default();
    stage.cut(&[N1], &[N2]);
    stage.until("n1 has the last", |s| has(s, N1, trx, FRAGMENTS))?;
    stage.cut(&[N2], &[N1]);
    stage.check("n2 has not heard of it", has(stage, N2, trx, FRAGMENTS - 1))?;
    let is = |s: &Stage, state| [N1, N2].iter().all(|n| s.component_state(*n) == state);
    stage.until("both have lost the majority", |s| {
        is(s, ComponentState::NonPrimary)
    })?;
    stage.until("n2's client has its answer", |s| s.told(trx).is_some())?;
    stage.check(
        "it is a certain failure",
        stage.told(trx) == Some(Code::ConnFail),
    )?;
    stage.strike(Fault::Override { node: N1 });
    stage.until("n1 has committed it", |s| s.has_applied(N1, trx))?;
    stage.join(&[N1], &[N2]);
    stage.until("n2 is back", |s| s.serve(&[N1, N2]))
}
