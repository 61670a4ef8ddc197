//! Half of the nodes and more lose power just after another node has got its vote (rules 3, 4).
//!
//! n4 has come back, gets its vote, and writes X: three of four votes hold X, one of them n4's. n1, n2 and n3 lose
//! power. They lose X and all evidence that n4's vote was committed. The vote itself is in their logs, flushed, as
//! every configuration is. Before it, they were all voters. They must wait for n4, which has X.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, recovering, row};
use crate::seen::NodeId;
use crate::server::Flush;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::PendingVotersNotHeard],
    plan: |seed| {
        let mut plan = recovering(4, seed);
        for node in [N1, N2, N3] {
            plan.nodes[node].server.flush = Flush::EachSecond;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    lose_x(stage, |_, _| ())?;
    stage.start(N4);
    stage.until("they go on by themselves", |s| s.serve(&[N1, N2, N3, N4]))
}

/// Plays until X is lost. `harms` damages the disk of each node that has lost power.
pub(super) fn lose_x(stage: &mut Stage, harms: impl Fn(&mut Stage, NodeId)) -> Play {
    stage.formed()?;
    stage.leave_until_gone(N4)?;
    stage.pass_ms(3_000);
    stage.start(N4);
    stage.until("n4 has its vote", |s| s.has_vote(N4))?;
    let x = stage.write(N4, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    let others = [N1, N2, N3];
    for node in others {
        stage.lose_power(node);
        harms(stage, node);
    }
    stage.crash(N4, false);
    for node in others {
        stage.start(node);
        stage.check("it has forgotten X", stage.holds(node, x).is_none())?;
    }
    stage.pass_ms(15_000);
    // A node whose log is damaged in its first half is in no view at all.
    let waits = others
        .iter()
        .all(|n| stage.component_state(*n) != ComponentState::Primary);
    stage.must("they wait for n4", waits);
    Ok(())
}
