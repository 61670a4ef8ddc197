//! An operator made two nodes primary, and both died. One comes back and meets a leader without a majority (rule 11).
//!
//! n1 and n4 are half of the last view, and n1 is still leader. n2 asks it for admission, with a forced view that n1
//! lacks. n1 must not refuse n2. An operator who obeyed the refusal would drop the branch to which n1 and n4 must
//! yield, and no node has gone on with theirs. n3 comes back, too. It is primary again with n2, and admits the
//! others.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, hasty, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MinorityRefuses],
    plan: |seed| hasty(4, seed),
    play,
};

const ALL: [usize; 4] = [N1, N2, N3, N4];

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let stand = |component_state: ComponentState, nodes: &'static [usize]| {
        move |s: &Stage| {
            nodes
                .iter()
                .all(|node| s.component_state(*node) == component_state)
        }
    };
    stage.part(&[N1, N4], &[N2, N3]);
    stage.until("nobody is primary", stand(ComponentState::NonPrimary, &ALL))?;
    stage.strike(Fault::Override { node: N2 });
    stage.until(
        "n2 and n3 are primary",
        stand(ComponentState::Primary, &[N2, N3]),
    )?;
    let x = stage.write(N2, &[row(1)]);
    stage.until("they go on", |s| {
        s.acknowledged(x) && s.has_committed(N3, x)
    })?;
    stage.crash(N2, false);
    stage.crash(N3, false);
    stage.join(&ALL, &ALL);
    stage.start(N2);
    stage.pass_ms(5_000);
    stage.must("n2 has kept its log", stage.holds(N2, x).is_some());
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.check(
        "it waits",
        stand(ComponentState::NonPrimary, &[N1, N2, N4])(stage),
    )?;
    stage.start(N3);
    stage.until("the others have joined n2", |s| {
        stand(ComponentState::Primary, &ALL)(s)
            && ALL.iter().all(|node| s.view(*node) == s.view(N2))
    })
}
