//! A node asks the others to stop, and is paused (rules 15 and 24).
//!
//! n3 applies slowly, its apply queue grows, and it asks for a stop. Then its process is paused and withdraws
//! nothing. The stop lapses: the others go on long before n3 is removed, even if no member is ever left out of flow
//! control.

use trireme_mutants::Mutant;

use super::{Directed, N1, N3, Play, Stage, cluster};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::StopNeverLapses],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.fc_limit = 1;
        plan.fc_desync_after_ms = 0;
        plan.suspect_timeout_ms = 60_000;
        let server = &mut plan.nodes[N3].server;
        server.appliers = 1;
        server.speed.apply_us = Span(150_000, 150_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let mut writes = stage.write_many(N1, 0..12);
    // A node that is slow only for a moment stops no writers.
    stage.pass_ms(100);
    writes.extend(stage.write_many(N1, 12..18));
    stage.until("n1's clients wait", |s| s.clients_wait(N1))?;
    stage.pause(N3);
    stage.pass_ms(3_000);
    let done = writes.iter().all(|write| stage.acknowledged(*write));
    stage.must("the others go on", done);
    Ok(())
}
