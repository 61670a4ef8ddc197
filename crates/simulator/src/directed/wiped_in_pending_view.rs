//! A disk is lost for good while a view with its node as a voter is pending (rules 3 and 18).
//!
//! n3 dies. n1 proposes a view of itself and n2. n2 has not heard of it when its data directory is lost. n3 comes
//! back with its log, but n1 cannot know that n2 has never acknowledged that view: nothing can be decided without n2.
//! Both nodes report this, and the operator's options. Then the operator acts.

use trireme_group::{Body, ComponentState};
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::SurvivorSaysNothing, Mutant::PendingViewUnheeded],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is everywhere", |s| {
        [N1, N2, N3].iter().all(|node| s.has_applied(*node, x))
    })?;
    let view = stage.view(N1);
    stage.cut(&[N1], &[N2]);
    stage.crash(N3, false);
    stage.until("n1 proposes a view without n3", |s| {
        s.find(
            N1,
            |entry| matches!(&entry.body, Body::Configuration(c) if c.number > view),
        )
        .is_some()
    })?;
    stage.wipe(N2);
    stage.heal(&[N1], &[N2]);
    stage.start(N3);
    let waits = |s: &Stage| {
        [N1, N3]
            .iter()
            .all(|n| s.component_state(*n) == ComponentState::NonPrimary)
    };
    stage.until("n1 and n3 wait", waits)?;
    stage.pass_ms(15_000);
    stage.check("they wait for n2", waits(stage))?;
    for node in [N1, N3] {
        let advised = stage
            .process(node)
            .and_then(|process| process.progress.advised);
        stage.must("it says what to do", advised == Some(1));
    }
    Ok(())
}
