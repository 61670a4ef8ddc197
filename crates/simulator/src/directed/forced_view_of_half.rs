//! Half of the votes have made a forced view, and one of them meets the other half (rules 3 and 11).
//!
//! n1 and n2 are cut off from n3 and n4, and the operator makes them primary. n2 knows that the forced view is
//! committed. n1 is killed before it knows, and meets n3 and n4, which lack the view. It is committed all the same,
//! since it needed no vote of theirs. They must wait for n2.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::cluster::go_on_with;
use super::{Directed, N1, N2, N3, N4, Play, Stage, hasty};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ForcedViewNeedsOthers],
    plan: |seed| hasty(4, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = stage.commit_many(N1, 0..1)?;
    stage.part(&[N1, N2], &[N3, N4]);
    let is_in = |s: &Stage, node, state| s.component_state(node) == state;
    stage.until("nobody is primary", |s| {
        [N1, N2, N3, N4]
            .iter()
            .all(|n| is_in(s, *n, ComponentState::NonPrimary))
    })?;
    stage.strike(Fault::Override { node: N1 });
    stage.until("n1 has made the forced view", |s| {
        s.find_view(N1, |view| view.override_id.is_some()).is_some()
    })?;
    stage.cut(&[N2], &[N1]);
    stage.until("n2 knows that it is committed", |s| s.members(N2) == 2)?;
    stage.check("n1 does not", stage.members(N1) == 4)?;
    stage.crash(N1, false);
    stage.part(&[N2], &[N1, N3, N4]);
    stage.join(&[N1], &[N3, N4]);
    stage.start(N1);
    stage.pass_ms(10_000);
    let waits = [N1, N3, N4]
        .iter()
        .all(|n| is_in(stage, *n, ComponentState::NonPrimary));
    stage.must("they wait for n2", waits);
    stage.join(&[N2], &[N1, N3, N4]);
    go_on_with(stage, &[N1, N2, N3, N4], &all)
}
