//! A disk is full while a view with its node as a voter is pending (rules 3, 4, 23).
//!
//! n3 is lost. n1 proposes the view without it, which needs both n1 and n2. But n2 has no room for the entry, and
//! leaves. No member may take the view as committed: n1 waits. There is room again, n2 comes back with its log, and
//! they go on.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::HalfIsAMajority],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.until("n2 knows", |s| s.has_committed(N2, x))?;
    let view = stage.view(N1);
    stage.world.machines[N2].disk.set_room(Some(0));
    stage.crash(N3, false);
    stage.until("n2 leaves", |s| s.group(N2).is_none())?;
    stage.must("n1 is in the view with n3", stage.view(N1) == view);
    stage.pass_ms(500);
    stage.world.machines[N2].disk.set_room(None);
    stage.until_one("they go on", &[N1, N2], |s, n| s.is_leading(n))?;
    let y = stage.write(N1, &[row(2)]);
    stage.until("Y is told", |s| s.told(y).is_some())
}
