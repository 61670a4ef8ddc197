//! An operator overrides on a node that does not know that its last entry is committed (rule 11).
//!
//! n4 and n5 have lost the others, and n4 does not hear n5. Both hold X, which was acknowledged, and only n5 knows that
//! it is committed. The operator makes n4 primary, and n4 hears n5's promise. The forced view's fork point must be what
//! n5 knows: n5's database has X.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ForkPointFromOwnLog],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.cut(&[N2, N3, N5], &[N4]);
    let end = stage.end(N4);
    let x = stage.write(N1, &[row(1)]);
    stage.until("n4 has X", |s| s.end(N4) > end)?;
    stage.cut(&[N1], &[N4]);
    stage.until("n5 has X", |s| s.acknowledged(x) && s.has_applied(N5, x))?;
    stage.cut(&[N4], &[N1, N2, N3]);
    stage.part(&[N5], &[N1, N2, N3]);
    let lost = |s: &Stage, node| s.component_state(node) == ComponentState::NonPrimary;
    stage.until("both have lost the others", |s| lost(s, N4) && lost(s, N5))?;
    stage.strike(Fault::Override { node: N4 });
    stage.until("n5 promises", |s| s.has_promised(N5, N4))?;
    let unaware = stage.commit(N4) == end && stage.end(N4) > end;
    stage.check("n4 does not know X as committed", unaware)?;
    stage.heal(&[N5], &[N4]);
    stage.until("both are primary, with X", |s| {
        s.members(N4) == 2 && s.members(N5) == 2 && s.has_applied(N4, x)
    })
}
