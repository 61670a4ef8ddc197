//! A forced view commits entries that its members had not known as committed (rule 11).
//!
//! n1 and n2 hold four write-sets without a majority when all five nodes lose each other. `pc.bootstrap` makes n1 and
//! n2 primary, and so commits the four write-sets: the fork point is below them. The other three, a majority of the
//! last view, have gone on with other write-sets at the same seqnos. If these seqnos counted as common to both, the
//! three databases would seem good ones that only lag a little.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ForkNotedTooHigh],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.nodes[N1].server.load.clients = 4;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    stage.part(&[N1, N2], &[N3, N4, N5]);
    let tail = stage.write_many(N1, 1..=4);
    stage.until("n2 has the tail", |s| {
        tail.iter().all(|trx| s.holds(N2, *trx).is_some())
    })?;
    let committed = tail.iter().any(|trx| stage.has_committed(N1, *trx));
    stage.check("it is not committed", !committed)?;
    stage.force_apart(&all)?;
    stage.until("n1 and n2 have committed it", |s| {
        tail.iter().all(|trx| s.has_applied(N2, *trx))
    })?;
    stage.join(&[N3, N4, N5], &[N3, N4, N5]);
    let e = stage.takeover(&[N3, N4, N5])?;
    let primary = |s: &Stage| {
        [N3, N4, N5]
            .iter()
            .all(|n| s.component_state(*n) == ComponentState::Primary)
    };
    stage.until("the rest is primary", primary)?;
    let other = stage.write(e, &[row(1)]);
    stage.until("the rest goes on", |s| {
        [N3, N4, N5].iter().all(|n| s.has_applied(*n, other))
    })?;
    stage.join(&all, &all);
    stage.until("the rest yields", |s| s.holds(e, other).is_none())
}
