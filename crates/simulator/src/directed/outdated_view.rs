//! A majority of the last committed view elects a leader, but is no majority of a later view in the log (rule 3).
//!
//! n1 gets the weight of five nodes. The change is in the logs of n1, n2 and n4: n1 has committed it, n2 does not
//! know that yet. Then n1 and n4 are cut off from n2, n3 and n5. These three are a majority of the view without the
//! change and could elect n2, which has the best log. But n1 alone is a majority of the view with it, and goes on.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OutdatedViewElects],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N3, N5]);
    stage.cut(&[N4], &[N2]);
    let (before, end) = (stage.commit(N1), stage.end(N2));
    stage.strike(Fault::Weight {
        node: N1,
        weight: 5,
    });
    stage.until("n2 has the change", |s| s.end(N2) > end)?;
    stage.cut(&[N1], &[N2]);
    stage.until("n1 has committed it", |s| s.commit(N1) > before)?;
    stage.check("n2 does not know", stage.commit(N2) < stage.commit(N1))?;
    stage.part(&[N1, N4], &[N2, N3, N5]);
    let y = stage.write(N1, &[row(1)]);
    stage.until("n1 goes on alone", |s| s.acknowledged(y))?;
    stage.write(N2, &[row(2)]);
    stage.pass_ms(3_000);
    stage.check("n2 has become leader", stage.term(N2) > stage.term(N1))
}
