//! A node whose disk is full must not count as holding an entry (rules 4, 23).
//!
//! n3 hears nothing from n1. n1 sends a transaction of n2 back to n2 with its place in the order. With n2's own log
//! that is a majority. But n2 cannot write the entry, and must not tell its client that it has committed. n1 dies.
//! When there is room again, n2 restarts and goes on with n3 without it.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DeliveredBeforeWritten],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N3]);
    stage.world.machines[N2].disk.set_room(Some(0));
    stage.write(N2, &[row(1)]);
    stage.until("n2 leaves", |s| s.group(N2).is_none())?;
    stage.crash(N1, false);
    stage.pass_ms(100);
    stage.world.machines[N2].disk.set_room(None);
    stage.until("n2 is back", |s| s.group(N2).is_some())?;
    stage.until_one("they go on", &[N2, N3], |s, n| s.is_leading(n))?;
    Ok(())
}
