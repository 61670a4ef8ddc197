//! A node that could not write a promise is reconnected, and no later term makes it promise anew (rule 4).
//!
//! n1 is paused, and a candidate asks n2 for a promise, which n2 cannot write: it leaves. The candidate wins without n2.
//! The operator mends the disk and sets `wsrep_cluster_address` again: the process still counts that term as promised.
//! It must write it down, or it would never acknowledge an entry.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, recovering, row};
use crate::fault::Notes;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OldPromiseNotWritten],
    plan: |seed| recovering(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.world.machines[N2].is_reconnected = true;
    stage.world.fail_notes(N2, Notes::Both, false);
    stage.pause(N1);
    let leader = stage.takeover(&[N3, N4, N5])?;
    stage.until("n2 has left", |s| s.group(N2).is_none())?;
    stage.world.mend_disk(N2);
    stage.pass_ms(20_000);
    stage.must("n2 is back", stage.has_vote(N2));
    let spare = [N3, N4, N5].into_iter().find(|node| *node != leader);
    let Some(spare) = spare else { return Ok(()) };
    stage.until("n1 is removed", |s| s.members(leader) == 4)?;
    stage.crash(spare, false);
    let written = stage.write(leader, &[row(1)]);
    stage.until("three of four commit", |s| s.acknowledged(written))?;
    stage.resume(N1);
    stage.start(spare);
    stage.until("all serve", |s| s.serve(&all))
}
