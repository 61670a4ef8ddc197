//! An operator overrides on a node beside one with a longer log (rule 11).
//!
//! n4 and n5 have lost the others. n5 alone holds X, which was acknowledged. The operator makes n4 primary. n5 promises,
//! so the forced view must be built on n5's log, which n5 leads.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, Missed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};
use crate::fault::Fault;
use crate::seen::ClientTrx;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ForcedViewOnOwnLog],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    let x = n5_alone_has_x(stage)?;
    stage.strike(Fault::Override { node: N4 });
    stage.until("both are primary, with X", |s| {
        s.members(N4) == 2 && s.members(N5) == 2 && s.has_applied(N4, x)
    })
}

/// Plays until n4 and n5 have lost the others, and hear each other. Only n5's log has X, which was acknowledged.
pub(super) fn n5_alone_has_x(stage: &mut Stage) -> Result<ClientTrx, Missed> {
    stage.formed()?;
    let rest = [N1, N2, N3];
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.part(&[N4], &[N1, N2, N3, N5]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("n5 has X", |s| s.acknowledged(x) && s.has_applied(N5, x))?;
    stage.part(&[N5], &rest);
    stage.reset(N4, N5);
    stage.join(&[N4], &[N5]);
    let lost = |s: &Stage, node| s.component_state(node) == ComponentState::NonPrimary;
    stage.until("both have lost the others", |s| lost(s, N4) && lost(s, N5))?;
    stage.pass_ms(1_000);
    stage.check("n4 lacks X", stage.holds(N4, x).is_none())?;
    Ok(x)
}
