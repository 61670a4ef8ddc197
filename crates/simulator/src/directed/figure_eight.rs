//! Raft's figure 8: an entry of an older term is in a majority of logs, and still not safe (rule 1).
//!
//! n1 (term 1) orders a large transaction X that reaches no other node. Another node becomes leader (term 2); its
//! first entry stays in its own log. n1 is back, leads again (term 3), and sends X on alone, because X is too large
//! to travel with n1's own first entry. Now X is in two logs of three. If X counted as committed, its client would
//! hear so. But the node with the entry of term 2 outranks the other holder of X and leads (term 4), and X is gone
//! with n1's machine.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OldEntriesCommitByCount],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan.window_bytes = 1_000;
        plan.segment_bytes = 4 << 20;
        // X must be ordered before any other node has it.
        plan.large_bytes = usize::MAX;
        let speed = &mut plan.nodes[N1].server.speed;
        (speed.statement_us, speed.stage_us) = (Span(1, 1), Span(1, 1));
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N2, N3]);
    let rows: Vec<u32> = (0..45_000).map(row).collect();
    let x = stage.write(N1, &rows);
    stage.until("n1 holds X", |s| s.holds(N1, x).is_some())?;
    stage.cut(&[N2, N3], &[N1]);
    let promised = |s: &Stage, e: usize| s.has_promised(N2 + N3 - e, e);
    let e = stage.until_one("a candidate with a promise", &[N2, N3], promised)?;
    let f = N2 + N3 - e;
    stage.cut(&[e], &[f]);
    stage.until("the second leadership", |s| s.is_leading(e))?;
    stage.part(&[e], &[N1, f]);
    stage.reset(e, f);
    stage.join(&[N1], &[f]);
    stage.until("X is in two logs", |s| s.holds(f, x).is_some())?;
    stage.cut(&[N1], &[f]);
    stage.check("n1's own entry is not", stage.end(f) < stage.end(N1))?;
    stage.pass_ms(20);
    stage.crash(N1, true);
    stage.join(&[e], &[f]);
    stage.until("the fourth leadership", |s| {
        s.is_leading(e) && s.term(f) == s.term(e)
    })?;
    stage.until("X is replaced", |s| s.holds(f, x).is_none())
}
