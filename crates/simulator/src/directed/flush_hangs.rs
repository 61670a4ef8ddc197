//! A flush of the leader hangs for half a minute (`repl.durability=disk`, rule 4).
//!
//! n1 and n2 are alone: nothing is acknowledged, because n1's disk does not have it. Then n3 is back: n2 and n3 go
//! on, and n1 gives leadership away. When its disk answers again, it has everything.

use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::HangUnseen],
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
    stage.check("n1 has leadership", stage.is_leading(N1))?;
    stage.part(&[N3], &[N1, N2]);
    stage.hang(N1, 28_000);
    let x = stage.write(N2, &[row(1)]);
    stage.pass_ms(2_000);
    stage.check("X is in n2's log", stage.holds(N2, x).is_some())?;
    stage.must("nobody acknowledges it", stage.told(x).is_none());
    stage.join(&[N3], &[N1, N2]);
    stage.until("X is acknowledged", |s| s.acknowledged(x))?;
    let began_us = stage.world.now_us;
    stage.pass_ms(14_000);
    stage.must("n1 has given leadership away", !stage.is_leading(N1));
    let y = stage.write(N2, &[row(2)]);
    stage.until("Y is acknowledged", |s| s.acknowledged(y))?;
    let waited_us = stage.world.now_us - began_us;
    stage.must("n2 and n3 go on", waited_us < 16_000_000);
    stage.until("n1 has Y", |s| s.has_applied(N1, y))
}
