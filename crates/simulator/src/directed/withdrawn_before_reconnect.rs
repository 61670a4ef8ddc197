//! A submission that was withdrawn must not commit after its origin has connected again (rule 7).
//!
//! As in `withdrawn_entry`, n2 withdraws X, which n1 has ordered. Before the two meet, n2 is told to connect anew
//! (`SET GLOBAL wsrep_cluster_address`). With its new incarnation it must report the withdrawal of X as it would have
//! with the old one. With an odd seed it connects without its log, as an amnesiac replica; but it never held X.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, Play, Stage, cluster, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::WithdrawalsForgotten, Mutant::WithdrawalDoubted],
    plan: |seed| {
        let mut plan = cluster(2, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.recovers = seed % 2 == 0;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N2]);
    let x = stage.write(N2, &[row(1)]);
    stage.until("n1 has ordered X", |s| s.holds(N1, x).is_some())?;
    stage.until("X has failed", |s| s.told(x).is_some())?;
    stage.check("it has", !stage.acknowledged(x))?;
    stage.cut(&[N2], &[N1]);
    stage.strike(Fault::Reconnect {
        node: N2,
        for_us: 100_000,
    });
    let again = |s: &Stage| s.process(N2).is_some_and(|p| p.start > p.first_start);
    stage.until("n2 connects again", again)?;
    stage.join(&[N1], &[N2]);
    stage.until("the two meet", |s| {
        s.view(N2) == s.view(N1) && s.has_vote(N2)
    })?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("n2 goes on", |s| s.told(y).is_some())
}
