//! The disk of an override's founder fills as the override begins (rule 11).
//!
//! n1 and n2 have lost the others, which commit X and are killed. An operator makes n1 primary, which n2 promises. n1's
//! disk has room for one small record, and n2 hears no more from n1. n1 is restarted with room again, and n3 with X. The
//! override's term needed no majority, so n1 must not go on without X.

use trireme_group::{ComponentState, Preference};
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};
use crate::fault::Fault;

/// Room for a term start and not for a view of two members.
const ROOM_BYTES: u64 = 100;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::TermStartsBeforeOverride],
    plan: |seed| {
        let mut plan = hasty(5, seed);
        for node in [N1, N2] {
            plan.nodes[node].preference = Preference::Never;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let (few, rest) = ([N1, N2], [N3, N4, N5]);
    // Their term stays below that of the override.
    let leader = stage.takeover(&rest)?;
    stage.until("n1 and n2 have the start of the term", |s| {
        few.iter()
            .all(|n| s.end(*n) == s.end(leader) && s.has_promised(*n, leader))
    })?;
    stage.part(&few, &rest);
    let x = stage.write(N3, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    for node in rest {
        stage.crash(node, false);
    }
    stage.until("n1 has lost the others", |s| {
        s.component_state(N1) == ComponentState::NonPrimary
    })?;
    let term = stage.term(N2);
    stage.strike(Fault::Override { node: N1 });
    stage.until("n2 promises", |s| s.term(N2) > term)?;
    stage.cut(&[N1], &[N2]);
    stage.world.machines[N1].disk.set_room(Some(ROOM_BYTES));
    stage.until("n1 leaves", |s| s.group(N1).is_none())?;
    stage.crash(N1, false);
    stage.reset(N1, N2);
    stage.world.machines[N1].disk.set_room(None);
    stage.join(&few, &[N1, N2, N3, N4, N5]);
    stage.start(N1);
    stage.start(N3);
    stage.until("they serve", |s| s.serve(&[N1, N2, N3]))?;
    stage.must("n1 has X", stage.has_applied(N1, x));
    Ok(())
}
