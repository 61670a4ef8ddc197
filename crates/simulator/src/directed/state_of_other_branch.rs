//! A joiner asks a member for its control state that has still to yield to the joiner's branch (rule 11).
//!
//! n2 and n3 have `pc.ignore_quorum`, lose n1 and go on without it; n1, which is a majority by its weight, goes on, too.
//! n1 admits both again. n3 has n1's log, and asks n1 for the control state in vain: the lines are bad. n2 is the next
//! to be asked; it has not got n1's log yet, and its state knows an override that n3's log does not have.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OtherBranchsStateTaken],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 10_000;
        plan.nodes[N1].weight = 3;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    for node in [N2, N3] {
        stage.configure(node, |config| config.ignore_quorum = true);
    }
    stage.part(&[N1], &[N2, N3]);
    stage.until("both sides go on", |s| {
        let without = |node, size| s.serves(node) && s.members(node) == size;
        without(N1, 1) && without(N2, 2) && without(N3, 2)
    })?;
    for number in 1..40 {
        let written = stage.write(N2, &[row(number)]);
        stage.until("n2 and n3 write", |s| s.has_applied(N3, written))?;
    }
    stage.join(&[N1], &[N2]);
    stage.until("n2 is to yield", |s| {
        s.component_state(N2) == ComponentState::NonPrimary
    })?;
    stage.cut(&[N1], &[N2]);
    stage.until("n1 admits n2", |s| s.members(N1) == 2)?;
    stage.join(&[N1], &[N3]);
    let end = stage.end(N2);
    stage.until("n3 has n1's log", |s| s.end(N3) < end)?;
    stage.cut(&[N1], &[N3]);
    stage.pass_ms(3_000);
    stage.check("n2 has still to yield", stage.end(N2) == end)?;
    let all = [N1, N2, N3];
    stage.join(&all, &all);
    stage.until("all serve in one view", |s| {
        s.members(N1) == 3 && s.serve(&all)
    })?;
    let written = stage.write(N3, &[row(1)]);
    stage.until("they go on", |s| s.acknowledged(written))
}
