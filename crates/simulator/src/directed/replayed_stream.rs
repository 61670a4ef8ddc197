//! A restart replays the end of a streaming transaction (rules 6 and 24): the commit fragment is in the replayed
//! range.
//!
//! n1's clients stream A, B and C. n3 begins to lag with fragments of A and B in its database. It has A's end in its
//! log, and dies. B ends, and C begins and ends, without n3. Then n1 restarts and has another incarnation in every
//! later view. n3 comes back, replays A's end from its own log, and gets the rest by IST. To apply the ends, its
//! server must have seen a view with n1's earlier incarnation: at any other view it undoes its parts of these
//! transactions.

use std::ops::RangeInclusive;

use trireme_group::{Body, Entry};
use trireme_mutants::Mutant;

use super::cluster::streaming;
use super::{Directed, N1, N2, N3, Play, Stage, row};
use crate::seen::{ClientTrx, NodeId};
use crate::server::{Errand, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ReplayBeginsInLaterView],
    plan,
    play,
};

/// A plan of three nodes; a streaming client of n1 is slow with each row.
pub(super) fn plan(seed: u64) -> crate::plan::Plan {
    let mut plan = streaming(3, seed);
    plan.suspect_timeout_ms = 1_000;
    plan.recovers = true;
    let server = &mut plan.nodes[N1].server;
    server.load.clients = 4;
    server.speed.statement_us = Span(20_000, 40_000);
    plan
}

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let b = stream(stage, 11..=22);
    stage.until("n3 has a fragment of B", |s| fragments(s, N3, b) > 0)?;
    let a = stream(stage, 1..=3);
    stage.until("n3 has two of A", |s| fragments(s, N3, a) == 2)?;
    stage.pass_ms(10);
    let applied = |s: &Stage| position(s, N3) == position(s, N2);
    stage.until("and has applied them", applied)?;
    stage.check("A goes on", fragments(stage, N3, a) == 2)?;
    stage.slow_appliers(N3, 10_000);
    stage.until("A is committed", |s| s.acknowledged(a))?;
    let all = fragments(stage, N1, a);
    stage.until("n3 has all of A", |s| fragments(s, N3, a) == all)?;
    stage.check("and has not applied it", !stage.has_applied(N3, a))?;
    stage.check("B goes on", stage.told(b).is_none())?;
    stage.crash(N3, false);
    let c = stream(stage, 5..=7);
    let done = |s: &Stage| s.acknowledged(b) && s.acknowledged(c);
    stage.until("B and C are committed", done)?;
    stage.crash(N1, false);
    stage.start(N1);
    stage.until("n1 is back", |s| s.serves(N1))?;
    stage.start(N3);
    stage.until("n3 is back", |s| s.serves(N3))?;
    let has_all = [a, b, c].iter().all(|trx| stage.has_applied(N3, *trx));
    stage.must("n3 has replayed them", has_all);
    Ok(())
}

/// Lets a client of n1 stream these rows.
pub(super) fn stream(stage: &mut Stage, rows: RangeInclusive<u32>) -> ClientTrx {
    let errand = Errand {
        writes: rows.map(row).collect(),
        streams: true,
        ..Errand::default()
    };
    stage.errand(N1, errand)
}

/// Number of fragments of the transaction in the node's log. Each has one row, the last may have none.
pub(super) fn fragments(stage: &Stage, node: NodeId, trx: ClientTrx) -> usize {
    let is_part = |entry: &Entry| match &entry.body {
        Body::Submission { payload, .. } => [8, 24].iter().any(|from_end| {
            let at = payload.len().checked_sub(*from_end);
            at.is_some_and(|at| payload[at..].starts_with(&trx.to_le_bytes()))
        }),
        _ => false,
    };
    stage.count(node, is_part)
}

/// The seqno of the node's database.
pub(super) fn position(stage: &Stage, node: NodeId) -> Option<i64> {
    Some(stage.process(node)?.server.recovered().seqno)
}
