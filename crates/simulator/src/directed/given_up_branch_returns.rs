//! A yielding branch that has lost against a majority does not come back with a node that joined it (rule 11).
//!
//! n3 goes on alone (`pc.ignore_quorum`), and the new node n4 joins it. n1 and n2 write W. n4 is cut off, and n3 gives way
//! to the two. Then all lose each other. When they meet again, n4 still has n3's branch, and n3 has a vote there.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::cluster::{NEVER_US, goes_on_alone};
use super::{Directed, N1, N2, N3, N4, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::GivenUpBranchRevived],
    plan: |seed| {
        let mut plan = hasty(4, seed);
        plan.nodes[N4].start_us = NEVER_US;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    let trio = [N1, N2, N3];
    stage.until("three nodes serve", |s| s.serve(&trio))?;
    stage.part(&[N4], &[N1, N2]);
    goes_on_alone(stage, N3, &[N1, N2])?;
    stage.start(N4);
    stage.until("n4 joins it", |s| s.serve(&[N3, N4]))?;
    let w = stage.write(N2, &[row(1)]);
    stage.until("the others write W", |s| s.acknowledged(w))?;
    stage.part(&[N3], &[N4]);
    stage.join(&[N3], &[N1, N2]);
    stage.until("n3 gives way", |s| {
        s.serve(&trio) && s.view(N3) == s.view(N1)
    })?;
    stage.configure(N3, |config| config.ignore_quorum = false);
    stage.scatter(&trio)?;
    let waits = stage.component_state(N4) == ComponentState::NonPrimary;
    stage.check("n4 waits", waits)?;
    stage.join(&trio, &trio);
    stage.join(&trio, &[N4]);
    stage.until("the three serve", |s| s.serve(&trio))?;
    stage.must("W stays", stage.holds(N2, w).is_some());
    stage.until("n4 follows", |s| s.serves(N4) && s.view(N4) == s.view(N1))
}
