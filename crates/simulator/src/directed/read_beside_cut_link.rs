//! A current read on a node that does not reach one of the other members (rule 17).
//!
//! n2 and n3 do not reach each other. Both hear n1, which leads, so all three stay members. n1's answer is enough for a
//! read on n2.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ReadWaitsForAll],
    plan: |seed| cluster(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.part(&[N2], &[N3]);
    stage.pass_ms(5_000);
    let read = stage.read(N2, row(1));
    stage.until("the read ends", |s| s.told(read).is_some())?;
    let all = [N1, N2, N3].iter().all(|node| stage.members(*node) == 3);
    stage.check("all are members", all)
}
