//! Neither `trireme-state.log` nor the promises of a node can be written, while its log can (rule 4).
//!
//! n2 is asked for a promise and cannot keep it: it must not be given. It leaves, and is back when the files can be written.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UnkeptPromiseGiven],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.world.fail_notes(N2, false);
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
