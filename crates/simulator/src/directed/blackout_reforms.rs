//! All nodes lose power in `os` mode and come back with their ordinary configuration, without a bootstrap (rule 4).
//!
//! n1 and n2 have X in their logs, n1 also in its database; n3 has neither. The seed decides whether the logs keep X.
//! While one of the three is missing, the others wait. When all are there they go on, with the best log or, if no log
//! is known to reach n1's database, with that database: X is kept.

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
    let seed = stage.world.plan.seed;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    let keeps = seed % 2 == 0;
    let all = [N1, N2, N3];
    for node in all {
        stage.world.machines[node].disk.lose_power(|| keeps);
        stage.crash(node, true);
    }
    stage.join(&[N3], &[N1, N2]);
    let late = all[(seed / 2 % 3) as usize];
    let early = all.into_iter().filter(|node| *node != late);
    for node in early.clone() {
        stage.start(node);
    }
    stage.pass_ms(10_000);
    for node in early {
        let waits = stage.component_state(node) == ComponentState::NonPrimary;
        stage.must("two of them wait for the third", waits);
    }
    stage.start(late);
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
