//! Half of the votes are intact in the last committed view, but not in the pending one (rules 3 and 4).
//!
//! n2 dies. The view without it is on its way when n1 and n3 lose power: n2 and n4 are half of the votes of the view
//! before, n4 is one of three in the pending one. With odd seeds the pending view has not reached n3. Then n2 and n3
//! never acknowledged it, and an ordinary election succeeds. With even seeds it may be committed, and more on top of it:
//! all are here, and go on with the best log. Neither needs an operator.

use trireme_mutants::Mutant;

use super::cluster::go_on_with;
use super::{Directed, N1, N2, N3, N4, Play, Stage, hasty};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[
        Mutant::PendingViewAlwaysRequired,
        Mutant::PendingViewElectsNobody,
    ],
    plan: |seed| hasty(4, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = stage.commit_many(N1, 0..1)?;
    stage.pass_ms(1_000);
    let is_excluded = stage.world.plan.seed % 2 == 1;
    if is_excluded {
        stage.cut(&[N1], &[N3]);
    }
    let view = stage.view(N1);
    let has_next = |s: &Stage, node| s.find_view(node, |next| next.number > view).is_some();
    stage.crash(N2, false);
    stage.until("n4 has the view without n2", |s| has_next(s, N4))?;
    if !is_excluded {
        stage.cut(&[N3, N4], &[N1]);
        stage.until("n3 has it, too", |s| has_next(s, N3))?;
        stage.check(
            "n4 does not know that it is committed",
            stage.view(N4) == view,
        )?;
    }
    for node in [N1, N3] {
        stage.lose_power(node);
    }
    stage.join(&[N1], &[N3, N4]);
    for node in [N1, N2, N3] {
        stage.start(node);
    }
    go_on_with(stage, &[N1, N2, N3, N4], &all)?;
    let is_elected = stage.world.coverage.reformed == 0;
    stage.must(
        "they elect a leader, if that is possible",
        is_elected || !is_excluded,
    );
    Ok(())
}
