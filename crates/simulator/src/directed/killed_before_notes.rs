//! A node is bootstrapped at an action that it may hold, and killed when its new log has its name, and not yet its
//! notes (rule 13).
//!
//! As in `killed_in_bootstrap`; here the seed decides how far the founding gets. The node must go on with its database
//! and its log, without a second bootstrap, or, if its old log still stands, as before the bootstrap.

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        let server = &mut plan.nodes[N3].server;
        server.speed.ddl_us = Span(300_000, 300_000);
        server.flush = Flush::WriteEachCommit;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("n3 has X", |s| s.has_applied(N3, x))?;
    let action = stage.ddl(N1, 0);
    stage.until("n3 knows of the DDL", |s| s.has_committed(N3, action))?;
    stage.pass_ms(50);
    for node in [N1, N2, N3] {
        stage.crash(node, false);
    }
    stage.check("n3's database is behind", !stage.has_applied(N3, action))?;
    stage.world.machines[N3].bootstrap = true;
    stage.world.machines[N3].dies_at_rename = Some(1 + stage.world.plan.seed % 7);
    stage.start(N3);
    stage.until("it is dead", |s| s.process(N3).is_none())?;
    stage.start(N3);
    stage.pass_ms(20_000);
    let serves = stage.serve(&[N3]);
    stage.must("it goes on by itself", serves);
    for node in [N1, N2] {
        stage.start(node);
    }
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("they commit", |s| s.acknowledged(y))
}
