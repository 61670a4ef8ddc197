//! A flush fails, but the operating system still shows the entries that it has given up (`repl.durability=disk`, rule
//! 4).
//!
//! n3 is cut off. n2's flush of X fails: n2 leaves without having acknowledged X. The next process reads X back and
//! acknowledges it, and n1's client is told OK. n2 loses power, and n1 is cut off. n2 is intact, so n2 and n3 go on:
//! they must have X.

use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::CacheCountsAsDisk],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.durability = Durability::Disk;
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let disk = stage.world.machines[N2].disk.clone();
    disk.set_shows_lost(true);
    disk.set_fail_syncs(true);
    let x = stage.write(N1, &[row(1)]);
    stage.until("n2 leaves", |s| s.group(N2).is_none())?;
    stage.must("nobody acknowledges X", stage.told(x).is_none());
    disk.set_fail_syncs(false);
    stage.crash(N2, false);
    stage.start(N2);
    stage.check("n2 reads X back", stage.holds(N2, x).is_some())?;
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.part(&[N1], &[N2, N3]);
    stage.lose_power(N2);
    stage.start(N2);
    stage.join(&[N2], &[N3]);
    stage.takeover(&[N2, N3])?;
    stage.until("X is there", |s| s.has_applied(N3, x))
}
