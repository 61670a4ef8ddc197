//! An arbitrator is admitted while a node lags behind (rule 12).
//!
//! n1 alone has a majority. Nothing from n1 reaches n2, but n2 stays a member. Then the arbitrator n3 is admitted:
//! its log begins after the entries that n2 lacks. n1 dies. n2 and n3 must not go on without the entries that only n1
//! has.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ArbitratorVotesAtOnce],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 20_000;
        plan.nodes[N1].weight = 2;
        plan.nodes[N3].weight = 2;
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.leave_until_gone(N3)?;
    stage.pass_ms(2_000);
    stage.cut(&[N1], &[N2]);
    let all = stage.commit_many(N1, 0..20)?;
    // It has no older entries.
    stage.world.follows_advice(N3);
    stage.start(N3);
    stage.until("n3 is admitted", |s| {
        s.component_state(N3) == ComponentState::Primary && s.state(N3).is_some()
    })?;
    stage.pass_ms(3_000);
    stage.check("n2 has received nothing", stage.holds(N2, all[0]).is_none())?;
    stage.crash(N1, false);
    stage.heal(&[N1], &[N2]);
    stage.pass_ms(30_000);
    let goes_on = stage.component_state(N3) == ComponentState::Primary;
    stage.must("n2 and n3 do not go on without n1", !goes_on);
    stage.start(N1);
    stage.until("n1 is back", |s| {
        s.component_state(N2) == ComponentState::Primary
    })?;
    stage.pass_ms(5_000);
    let has_all = all.iter().all(|x| stage.has_applied(N2, *x));
    stage.must("n2 has all that was acknowledged", has_all);
    Ok(())
}
