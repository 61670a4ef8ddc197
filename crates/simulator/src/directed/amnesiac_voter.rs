//! A process that has lost its log takes part in an election (rule 4).
//!
//! n1 and n2 have X, n3 does not. n2's process dies and comes back with an empty log; n1 is cut off. n2 and n3 are
//! two votes of three, but neither remembers X: they must wait for n1.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::AmnesiacCountsAsIntact],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.check("n3 has it not", stage.holds(N3, x).is_none())?;
    stage.crash(N2, false);
    stage.part(&[N1], &[N2, N3]);
    stage.join(&[N2], &[N3]);
    stage.start(N2);
    stage.pass_ms(4_000);
    let promised = stage.has_promised(N2, N3) || stage.has_promised(N2, N2);
    stage.check("n3 has tried", promised)?;
    stage.check(
        "and waits for n1",
        !stage.is_leading(N2) && !stage.is_leading(N3),
    )
}
