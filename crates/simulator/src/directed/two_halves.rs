//! Four nodes split into two halves (rules 1, 3): neither half may go on.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::HalfIsAMajority],
    plan: |seed| {
        let mut plan = cluster(4, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N1, N2], &[N3, N4]);
    let x = stage.write(N1, &[row(1)]);
    stage.pass_ms(2_000);
    let y = stage.write(N3, &[row(2)]);
    stage.pass_ms(2_000);
    let nobody = !stage.acknowledged(x) && !stage.acknowledged(y);
    stage.check("both wait", nobody)
}
