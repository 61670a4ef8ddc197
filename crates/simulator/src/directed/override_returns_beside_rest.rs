//! An operator made two nodes primary, and their leader died. The rest goes on without them and meets the other one
//! (rule 11).
//!
//! n3, n4 and n5 are primary. They do not stop only because n2 alone knows of a forced view. n2 reports the
//! operator's options. n1 comes back before the operator acts. The primary component refuses n1, but n1 and n2 are a
//! majority of their view: they are primary again, and the others yield.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OtherBranchRefuses],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    stage.force_apart(&all)?;
    let primary = |nodes: &'static [usize]| {
        move |s: &Stage| {
            nodes
                .iter()
                .all(|n| s.component_state(*n) == ComponentState::Primary)
        }
    };
    stage.until("n1 and n2 are primary", primary(&[N1, N2]))?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("they go on", |s| s.acknowledged(x))?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.crash(N1, false);
    stage.join(&[N3, N4, N5], &[N3, N4, N5]);
    stage.until("the rest is primary", primary(&[N3, N4, N5]))?;
    let e = stage.takeover(&[N3, N4, N5])?;
    let y = stage.write(e, &[row(1)]);
    stage.until("the rest goes on", |s| s.acknowledged(y))?;
    stage.until("n2 waits", |s| {
        s.component_state(N2) == ComponentState::NonPrimary
    })?;
    stage.join(&all, &all);
    stage.pass_ms(15_000);
    stage.must("the rest is still primary", primary(&[N3, N4, N5])(stage));
    let advised = stage
        .process(N2)
        .is_some_and(|process| process.progress.excluded);
    stage.must("n2 says how to join the rest", advised);
    stage.start(N1);
    stage.pass_ms(10_000);
    stage.must("the rest yields", stage.holds(e, y).is_none());
    stage.must(
        "n1 has not given up what it acknowledged",
        stage.holds(N1, x).is_some(),
    );
    Ok(())
}
