//! A member must not acknowledge more than the new leader knows of its log (rule 1).
//!
//! n1 sends a large transaction B to all, is cut off, and orders X, which stays in its log. The others elect a
//! leader. The new leader commits its first entry at X's position, and keeps little in memory. When n1 is back, the
//! part of n1's log that the leader knows for certain ends before B. So the leader sends B again, and nothing more
//! before n1 has acknowledged B. n1's log agrees with the leader's up to B. n1 must neither acknowledge its entries
//! after B nor count them as committed by the leader's commit point.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::SuffixAcknowledged],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 60_000;
        (plan.window_bytes, plan.tail_bytes) = (1_000, 1);
        plan.segment_bytes = 4 << 20;
        // B must be ordered before any other node has it.
        plan.large_bytes = usize::MAX;
        let speed = &mut plan.nodes[N1].server.speed;
        (speed.statement_us, speed.stage_us) = (Span(1, 1), Span(1, 1));
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let rows: Vec<u32> = (1..45_000).map(row).collect();
    let b = stage.write(N1, &rows);
    stage.until("n1 has ordered B", |s| s.holds(N1, b).is_some())?;
    stage.part(&[N1], &[N2, N3]);
    let x = stage.write(N1, &[row(0)]);
    stage.until("n1 has ordered X", |s| s.holds(N1, x).is_some())?;
    stage.check("B is not committed", !stage.has_committed(N1, b))?;
    let e = stage.takeover(&[N2, N3])?;
    stage.check("B is everywhere", stage.holds(e, b).is_some())?;
    let taken = stage.end(e);
    stage.until("its first entry is committed", |s| s.commit(e) >= taken)?;
    stage.reset(N1, e);
    stage.join(&[N1], &[e]);
    stage.until("n1 has met its log", |s| s.has_committed(N1, b))?;
    stage.check("with X at its end", stage.holds(N1, x).is_some())?;
    stage.until("X gives way", |s| s.holds(N1, x).is_none())
}
