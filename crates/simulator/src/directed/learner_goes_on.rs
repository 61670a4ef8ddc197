//! The voters lose power, and the best log is that of a member without a vote (rule 4).
//!
//! n4 is still joining. The others have forgotten X, and n4's log has it. n4 goes on with that log, and is cut off
//! before it has admitted another member. The voters must not go on without it: there would be two primaries.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::cluster::NEVER_US;
use super::{Directed, N1, N2, N3, N4, Play, Stage, recovering, row};
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LearnerNotHeard],
    plan: |seed| {
        let mut plan = recovering(4, seed);
        plan.nodes[N4].start_us = NEVER_US;
        for node in &mut plan.nodes {
            node.server.flush = Flush::EachSecond;
            node.server.speed.transfer_us = Span(10_000_000, 10_000_000);
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    let voters = [N1, N2, N3];
    stage.until("three nodes serve", |s| s.serve(&voters))?;
    stage.start(N4);
    stage.until("n4 is a member", |s| s.members(N4) == 4)?;
    stage.pass_ms(2_000);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| {
        s.acknowledged(x) && s.has_committed(N4, x)
    })?;
    stage.check("n4 has no vote", !stage.has_vote(N4))?;
    for node in voters {
        stage.lose_power(node);
    }
    stage.crash(N4, false);
    for node in voters {
        stage.start(node);
        stage.check("it has forgotten X", stage.holds(node, x).is_none())?;
    }
    stage.pass_ms(15_000);
    let wait = |s: &Stage| voters.iter().all(|n| s.component_state(*n) == ComponentState::NonPrimary);
    let waited = wait(stage);
    stage.must("the voters wait for n4", waited);
    stage.start(N4);
    stage.until("n4 goes on with its log", |s| {
        s.component_state(N4) == ComponentState::Primary
    })?;
    stage.part(&[N4], &voters);
    stage.pass_ms(15_000);
    let waited = wait(stage);
    stage.must("the voters wait for n4 again", waited);
    stage.join(&[N4], &voters);
    stage.until("all go on", |s| s.serve(&[N1, N2, N3, N4]))?;
    let kept = stage.has_applied(N1, x);
    stage.must("X is kept", kept);
    Ok(())
}
