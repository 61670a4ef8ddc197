//! All nodes are killed in `memory` mode and come back with their ordinary configuration (rule 4).
//!
//! n1 and n2 acknowledged X, which is in n1's database. No log has kept it. One node alone waits, and two wait; all
//! three go on with n1's database.

use trireme_group::ComponentState;
use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MajorityCountsAsAll],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.durability = Durability::Memory;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    let all = [N1, N2, N3];
    for node in all {
        stage.crash(node, false);
    }
    stage.join(&[N3], &[N1, N2]);
    let mut here = Vec::new();
    for node in [N3, N2] {
        stage.start(node);
        here.push(node);
        stage.pass_ms(10_000);
        let waits = here
            .iter()
            .all(|n| stage.component_state(*n) == ComponentState::NonPrimary);
        stage.must("they wait for all", waits);
    }
    stage.start(N1);
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
