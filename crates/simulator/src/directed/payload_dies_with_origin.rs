//! The payload is lost with its origin (rule 8).
//!
//! n2's write-set reaches only the leader n1; the others have n1's order record for it. If they acknowledged the
//! record, three of five would have it, and the client would be told OK. n1's and n2's machines die, and the
//! write-set is lost.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::PayloadNotAwaited],
    plan: |seed| cluster(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N2], &[N3, N4, N5]);
    let x = stage.write(N2, &[row(1)]);
    stage.until("n1 has ordered X", |s| s.holds(N1, x).is_some())?;
    stage.pass_ms(10);
    let nobody = [N3, N4, N5].iter().all(|n| stage.holds(*n, x).is_none());
    stage.check("the others have no payload", nobody)?;
    stage.crash(N1, true);
    stage.crash(N2, true);
    let e = stage.takeover(&[N3, N4, N5])?;
    let y = stage.write(e, &[row(1)]);
    stage.until("the others go on", |s| s.acknowledged(y))
}
