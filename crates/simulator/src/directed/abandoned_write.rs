//! A write-set whose origin has given it up with an unknown outcome commits later (rules 7 and 24).
//!
//! n3's client writes. The leader orders it, but n3 hears nothing and loses the primary component. The client hears
//! that the outcome is unknown: the server must not retry by itself. When n3 is back, it applies its own write-set
//! like another node's.

use trireme_mutants::Mutant;
use trireme_replicator::Code;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::Errand;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::AbandonedNotApplied, Mutant::UnknownIsFailure],
    plan: |seed| cluster(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1, N2], &[N3]);
    let write = stage.errand(
        N3,
        Errand {
            writes: vec![row(1)],
            autocommit: true,
            ..Errand::default()
        },
    );
    stage.until("the others have it", |s| s.has_applied(N1, write))?;
    stage.until("n3 gives up", |s| s.told(write).is_some())?;
    stage.must(
        "its client does not know",
        stage.told(write) == Some(Code::NodeFail),
    );
    stage.heal(&[N1, N2], &[N3]);
    stage.until("n3 has it, too", |s| s.has_applied(N3, write))?;
    let next = stage.write(N3, &[row(1)]);
    stage.until("n3 goes on with that row", |s| s.acknowledged(next))
}
