//! A current read on a node that lacks the latest commit (rule 17).
//!
//! n1's order does not reach n3; n1 and n2 have committed X. A client that has heard of X asks n3, whose own log ends
//! below X. n3 must hear from n2 that there is more, and wait for it.

use trireme_mutants::Mutant;

use super::{Directed, N1, N3, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ReadPointFromOwnLog],
    plan: |seed| cluster(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N3]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is acknowledged", |s| s.acknowledged(x))?;
    stage.check("n3 has it not", stage.holds(N3, x).is_none())?;
    let read = stage.read(N3, row(1));
    stage.pass_ms(50);
    stage.check("the read waits", stage.told(read).is_none())?;
    stage.heal(&[N1], &[N3]);
    stage.until("n3 reads X", |s| s.told(read).is_some())?;
    stage.check("after it was applied", stage.has_applied(N3, x))
}
