//! An operator made two nodes primary, and their leader died. The rest meets the other one (rule 11).
//!
//! n3, n4 and n5 are a majority of the last view. But n2, although no leader, has committed a forced view that they
//! lack: they do not go on without it. All four report the operator's options. n1 comes back before the operator
//! acts. It is primary again with n2, and admits the rest.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OverrideOfFollowerIgnored],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    stage.force_apart(&all)?;
    stage.until("n1 and n2 are primary", |s| {
        [N1, N2]
            .iter()
            .all(|n| s.component_state(*n) == ComponentState::Primary)
    })?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("they go on", |s| s.acknowledged(x))?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.crash(N1, false);
    stage.join(&[N2], &[N3, N4, N5]);
    stage.pass_ms(500);
    stage.join(&all, &all);
    stage.pass_ms(15_000);
    for node in [N2, N3, N4, N5] {
        let waits = stage.component_state(node) == ComponentState::NonPrimary;
        stage.must("nobody goes on without the override", waits);
        let advised = stage
            .process(node)
            .and_then(|process| process.progress.advised);
        stage.must("it says where to override", advised == Some(2));
    }
    stage.start(N1);
    stage.until("all are in one view", |s| {
        all.iter()
            .all(|n| s.component_state(*n) == ComponentState::Primary && s.view(*n) == s.view(N2))
    })?;
    stage.must("with what n1 has acknowledged", stage.acknowledged(x));
    Ok(())
}
