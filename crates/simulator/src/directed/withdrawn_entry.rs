//! A submission that its origin has withdrawn must not commit (rule 7).
//!
//! n1 has ordered n2's X, but n2 hears nothing of it. n2 gives up the primary component, and tells its client that X
//! has failed: nothing can commit without n2, and n2 will not acknowledge X. When the two meet again, X is in n1's
//! log, and n1 leads; n2's promise says that X is withdrawn.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::WithdrawnKept],
    plan: |seed| {
        let mut plan = cluster(2, seed);
        plan.suspect_timeout_ms = 1_000;
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
    stage.reset(N1, N2);
    stage.heal(&[N1], &[N2]);
    stage.until("the two meet", |s| {
        s.view(N2) == s.view(N1) && s.has_vote(N2)
    })?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("n2 goes on", |s| s.told(y).is_some())
}
