//! A majority whose members have forgotten cannot form beside a leader with `pc.ignore_quorum` that goes on (rules 4, 11).
//!
//! The leader is cut off and goes on alone; n4, which their last view has voted out, joins it. So the other two do not
//! follow them. One of the two has forgotten what it acknowledged, and the other one alone is too little. Both report why
//! they wait, and how to decide. The operator makes the intact one primary: what the two have acknowledged stays, and the
//! others give way.

use trireme_group::ComponentState;
use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, hasty, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::SurvivorSaysNothing],
    plan: |seed| {
        let mut plan = hasty(4, seed);
        plan.durability = Durability::Memory;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let trio = [N1, N2, N3];
    let w = stage.write(N4, &[row(2)]);
    stage.until("n4 was a member", |s| s.acknowledged(w))?;
    let view = stage.view(N1);
    stage.crash(N4, false);
    stage.until("n4 is voted out", |s| {
        trio.iter().all(|node| s.view(*node) > view)
    })?;
    let view = stage.view(N1);
    let leader = stage.takeover(&trio)?;
    let others = trio.map(|node| (node != leader).then_some(node));
    let [intact, forgetful] = others.iter().flatten().copied().collect::<Vec<_>>()[..] else {
        unreachable!("one of three leads");
    };
    let x = stage.write(intact, &[row(1)]);
    stage.until("all write X", |s| s.acknowledged(x))?;
    stage.configure(leader, |config| config.ignore_quorum = true);
    stage.part(&trio, &trio);
    stage.until("the leader goes on alone", |s| {
        s.serves(leader) && s.view(leader) > view
    })?;
    stage.start(N4);
    stage.until("n4 joins it", |s| s.serve(&[leader, N4]))?;
    let y = stage.write(leader, &[row(1)]);
    stage.until("it writes Y", |s| s.acknowledged(y))?;
    stage.crash(forgetful, false);
    stage.start(forgetful);
    stage.pass_ms(500); // it hears n4 before the leader, which it would follow
    stage.join(&trio, &trio);
    stage.pass_ms(15_000);
    for node in [intact, forgetful] {
        let waits = stage.component_state(node) == ComponentState::NonPrimary;
        stage.must("too few of them are intact", waits);
        let advised = stage
            .process(node)
            .is_some_and(|process| process.progress.excluded);
        stage.must("it says how to decide", advised);
    }
    stage.strike(Fault::Override { node: intact });
    stage.until("all serve in one view", |s| {
        s.serve(&[N1, N2, N3, N4]) && s.view(leader) == s.view(intact)
    })?;
    stage.must("X stays", stage.holds(intact, x).is_some());
    stage.must("Y is given up", stage.holds(leader, y).is_none());
    Ok(())
}
