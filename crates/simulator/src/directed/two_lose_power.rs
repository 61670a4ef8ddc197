//! Two of three lose power in `os` mode (rule 4).
//!
//! n1 and n2 have X, n1 also in its database; n3 was cut off and has lived on. n3 and n2 wait for n1, although they
//! are a majority and one of them is intact. With n1 they go on, and X is kept.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MajorityCountsAsAll, Mutant::DatabaseNotHeeded],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    for node in [N1, N2] {
        stage.lose_power(node);
    }
    stage.join(&[N3], &[N1, N2]);
    stage.start(N2);
    stage.pass_ms(10_000);
    let waits = [N2, N3]
        .iter()
        .all(|n| stage.component_state(*n) == ComponentState::NonPrimary);
    stage.must("they wait for n1", waits);
    stage.start(N1);
    let all = [N1, N2, N3];
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let y = stage.write(N3, &[row(1)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
