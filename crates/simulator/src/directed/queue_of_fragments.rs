//! The fragments of a streaming transaction wait in one apply queue (rules 9 and 24): a rollback fragment must not
//! overtake the others.
//!
//! n1's client sends four rows in four fragments. n3 applies each slowly and has several appliers. Free appliers must
//! not take the next fragment while the one before is being applied, since all fragments use one transaction of the
//! server. The client rolls back in the end, and the rows are free again for others.

use trireme_mutants::Mutant;

use super::cluster::streaming;
use super::{Directed, N1, N2, N3, Play, Stage, row};
use crate::server::Errand;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[
        Mutant::FragmentOvertakes,
        Mutant::RollbackOvertakes,
        Mutant::RollbackNotSent,
        Mutant::FirstFragmentRepeated,
    ],
    plan: |seed| {
        let mut plan = streaming(3, seed);
        plan.nodes[N1].server.load.rollback_percent = 100;
        plan.nodes[N3].server.appliers = 4;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.slow_appliers(N3, 500);
    let rows = [row(1), row(2), row(3), row(4)];
    let streamed = stage.errand(
        N1,
        Errand {
            writes: rows.to_vec(),
            streams: true,
            ..Errand::default()
        },
    );
    stage.until("n1's client has rolled back", |s| {
        s.told(streamed).is_some()
    })?;
    let next = stage.write(N2, &rows);
    stage.pass_ms(2_000);
    stage.must("the rows are free again", stage.acknowledged(next));
    stage.must("for n3, too", stage.has_applied(N3, next));
    Ok(())
}
