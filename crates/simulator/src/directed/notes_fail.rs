//! A node can write its log, but neither `trireme-state.log` nor its promises (rule 4).
//!
//! A candidate asks n2 for a promise, and n2 cannot write it: n2 must not give the promise. n2 leaves, and is back
//! when the files can be written.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering};
use crate::fault::Notes;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UnkeptPromiseGiven],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.world.fail_notes(N2, Notes::Both, false);
    stage.pause(N1);
    stage.pass_ms(2_000);
    let is_leading = stage.is_leading(N2) || stage.is_leading(N3);
    stage.must("nobody leads by n2's promise", !is_leading);
    stage.check("n2 has left", stage.group(N2).is_none())?;
    stage.world.mend_disk(N2);
    stage.until("n2 is back", |s| s.group(N2).is_some())?;
    stage.resume(N1);
    stage.until_one("they go on", &[N1, N2, N3], |s, n| s.is_leading(n))?;
    Ok(())
}
