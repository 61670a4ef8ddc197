//! A write-set that its origin has given up would overwrite a row that other nodes had written before (rule 7).
//!
//! n3 has W in its log but not in its database: its applier is busy. n3's client writes the same row, on the version
//! before W. The submission is ordered when n3 has lost the primary component and its client has heard that the
//! outcome is unknown. It fails certification: otherwise W's write would be lost, and a reader of the row would see a
//! list that never existed.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LastSeenTooHigh],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        for node in &mut plan.nodes {
            node.server.load.ddl_per_mille = 0;
        }
        let server = &mut plan.nodes[N3].server;
        server.appliers = 1;
        server.speed.ddl_us = Span(8_000_000, 8_000_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let ddl = stage.ddl(N1, 0);
    let w = stage.write(N1, &[row(1)]);
    let known = |s: &Stage| s.has_committed(N3, ddl) && s.has_committed(N3, w);
    stage.until("n3 knows both", known)?;
    stage.pass_ms(200);
    stage.cut(&[N1, N2], &[N3]);
    stage.pass_ms(2_500);
    stage.cut(&[N3], &[N1, N2]);
    let x = stage.write(N3, &[row(1)]);
    stage.until("n3 gives up", |s| s.told(x).is_some())?;
    stage.check("n3 has not applied W", !stage.has_applied(N3, w))?;
    stage.heal(&[N3], &[N1, N2]);
    stage.until("it is ordered all the same", |s| s.has_committed(N1, x))?;
    stage.pass_ms(100);
    let read = stage.read(N1, row(1));
    stage.until("the row is read", |s| s.acknowledged(read))?;
    stage.heal(&[N1, N2], &[N3]);
    stage.until("n3 is back", |s| s.has_applied(N3, w))
}
