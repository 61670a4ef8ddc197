//! A candidate's log is shorter than the log of a member that promises (rules 1, 3).
//!
//! n1, n2 and n3 have committed X. n1 is cut off, and n2 and n3 cannot talk to each other. Both need n4 or n5 for a
//! majority. Every such majority holds X, but its candidate may lack X. The candidate asks the owner of the best log
//! to lead.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ShorterLogLeads],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N4, N5]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is acknowledged", |s| s.acknowledged(x))?;
    let short = [N4, N5].iter().all(|n| stage.holds(*n, x).is_none());
    stage.check("n4 and n5 have it not", short)?;
    stage.part(&[N1], &[N2, N3, N4, N5]);
    stage.part(&[N2], &[N3]);
    let e = stage.takeover(&[N2, N3, N4, N5])?;
    stage.check("whoever leads holds X", stage.holds(e, x).is_some())?;
    let y = stage.write(e, &[row(1)]);
    stage.until("they go on", |s| s.acknowledged(y))
}
