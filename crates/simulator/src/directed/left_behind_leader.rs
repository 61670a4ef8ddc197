//! A leader that the others have left behind hears one of them (rules 1, 11).
//!
//! n1 leads, and does not get through to n2 and n3, which elect another leader. n1 hears only the third one. n1 has
//! ordered X, its own write of a row. The third one writes Y, of the same row. Y conflicts with nothing in its log, where
//! another entry has the seqno of X. An operator makes n1 primary, and its log is committed: n1 must not have ordered Y
//! behind X, while it hears the third one or when their connection breaks off.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, hasty, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::AheadOrdered],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 leads", stage.is_leading(N1))?;
    stage.part(&[N1], &[N2, N3]);
    let x = stage.write(N1, &[row(1)]);
    let leader = stage.takeover(&[N2, N3])?;
    let third = N2 + N3 - leader;
    let other = stage.write(leader, &[row(2)]);
    stage.until("the third one has another entry", |s| {
        s.has_applied(third, other)
    })?;
    stage.heal(&[third], &[N1]);
    let y = stage.write(third, &[row(1)]);
    stage.until("the third one writes Y", |s| s.acknowledged(y))?;
    stage.pass_ms(50);
    stage.reset(third, N1);
    stage.pass_ms(50);
    stage.cut(&[third], &[N1]);
    stage.until("n1 is not primary", |s| {
        s.component_state(N1) == ComponentState::NonPrimary
    })?;
    stage.strike(Fault::Override { node: N1 });
    stage.until("n1 goes on alone with X", |s| {
        s.serves(N1) && s.holds(N1, x).is_some()
    })?;
    let read = stage.read(N1, row(1));
    stage.until("n1 reads the row", |s| s.told(read).is_some())?;
    stage.join(&[N1], &[N2, N3]);
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))
}
