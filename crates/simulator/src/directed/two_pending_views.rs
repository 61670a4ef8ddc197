//! A view must not be proposed while another one is pending (rule 3).
//!
//! n1's messages reach only n2, but n1 hears all nodes: n5 wants to leave, then n4. If n1 could take one step after
//! the other without waiting, it would end with a view of n1, n2 and n3, with n1 and n2 as a majority. But n3, n4 and
//! n5 are a majority of the view that all nodes know.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::TwoPendingViews],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1, N2], &[N3, N4, N5]);
    let end = stage.end(N2);
    stage.leave(N5);
    stage.until("a view without n5", |s| s.end(N2) > end)?;
    stage.leave(N4);
    stage.pass_ms(20);
    stage.write(N1, &[row(1)]);
    stage.pass_ms(20);
    stage.check("n1 waits", stage.view(N1) == stage.view(N3))?;
    stage.cut(&[N3, N4, N5], &[N1, N2]);
    stage.takeover(&[N3, N4, N5])?;
    let y = stage.write(N3, &[row(2)]);
    stage.until("the others go on", |s| s.acknowledged(y))
}
