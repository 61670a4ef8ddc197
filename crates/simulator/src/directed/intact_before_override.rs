//! A member that may have forgotten catches up to the log end of a leader from before a forced view (rules 4, 11).
//!
//! n2 loses power, and n1's heartbeat tells n2 where n1's log ends: with X, which n1 alone has. Then n1 loses power, too,
//! and n3 dies. All voters are here, so n1, with the best log, makes a forced view. n2 gets X from n1, and is cut off
//! before it gets the forced view. n2 and n3 must wait for n1.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::seen::NodeId;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OldLogEndMakesIntact],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        // An append brings one entry, and the next one leaves when it is acknowledged.
        (plan.window_bytes, plan.scale.group.append_entries) = (1, 1);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    stage.part(&all, &all);
    let x = stage.write(N1, &[row(1)]);
    stage.until("n1 has X", |s| s.holds(N1, x).is_some())?;
    lose_nothing(stage, N2);
    stage.start(N2);
    stage.join(&[N1], &[N2]);
    let connected = |s: &Stage| s.world.network.is_connected(N1, N2);
    stage.until("n1 has lost n2", |s| !connected(s))?;
    stage.until("they meet again", connected)?;
    stage.cut(&[N2], &[N1]);
    stage.pass_ms(500);
    stage.check("n2 has only heard n1", stage.holds(N2, x).is_none())?;
    let end = stage.end(N1);
    lose_nothing(stage, N1);
    stage.crash(N3, false);
    stage.join(&all, &all);
    stage.start(N1);
    stage.start(N3);
    stage.until("n2 has X", |s| s.holds(N2, x).is_some())?;
    stage.check("n2 lacks the forced view", stage.end(N2) == end)?;
    stage.part(&[N1], &[N2, N3]);
    // They forget that they have heard of the forced view.
    for node in [N2, N3] {
        stage.crash(node, false);
        stage.start(node);
    }
    stage.until("n1 is primary", |s| {
        s.component_state(N1) == ComponentState::Primary
    })?;
    let w = stage.write(N1, &[row(2)]);
    stage.until("n1 goes on", |s| s.acknowledged(w))?;
    stage.pass_ms(10_000);
    let waits = [N2, N3]
        .iter()
        .all(|n| stage.component_state(*n) == ComponentState::NonPrimary);
    stage.must("n2 and n3 wait for n1", waits);
    stage.join(&all, &all);
    stage.until("all serve", |s| s.serve(&all))?;
    stage.must("n3 has what n1 acknowledged", stage.has_applied(N3, w));
    Ok(())
}

/// The node loses power when its operating system has flushed all written data: it has lost nothing, but cannot know.
fn lose_nothing(stage: &mut Stage, node: NodeId) {
    stage.world.machines[node].disk.lose_power(|| true);
    stage.crash(node, true);
}
