//! A write-set has seen less than the certification index still holds (rules 16 and 24): a lagging node with a purged
//! index.
//!
//! n3 loses the other nodes while its client has read and locked a row, and comes back. The entries ordered meanwhile
//! wait at n3 behind two long DDLs. Purging does not wait for a node that has only joined: the index holds none of
//! the entries in n3's queue. After the first DDL the queue is short enough for n3 to count as synced, and its client
//! commits. n1 has written the row meanwhile: n3's commit must fail, on all nodes alike.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::{Errand, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FloorNotHeeded],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.fc_limit = 2;
        plan.suspect_timeout_ms = 1_000;
        for node in &mut plan.nodes {
            node.server.load.ddl_per_mille = 0;
            node.server.load.think_us = Span(1_000_000, 2_000_000);
        }
        plan.nodes[N1].server.load.clients = 6;
        let server = &mut plan.nodes[N3].server;
        server.appliers = 1;
        server.speed.apply_us = Span(30_000, 30_000);
        server.speed.ddl_us = Span(5_500_000, 5_500_000);
        // A statement takes half a second, and the transaction has ten seconds of idle time.
        server.speed.statement_us = Span(500_000, 100_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let late = stage.errand(
        N3,
        Errand {
            writes: vec![row(1)],
            long: true,
            ..Errand::default()
        },
    );
    stage.pass_ms(1_200);
    stage.part(&[N3], &[N1, N2]);
    let view = stage.view(N1);
    stage.until("n3 is given up", |s| s.view(N1) > view)?;
    for _ in 0..2 {
        let ddl = stage.ddl(N1, 0);
        stage.until("n1 has executed DDL", |s| s.acknowledged(ddl))?;
    }
    let first = stage.write(N1, &[row(1)]);
    stage.write_many(N1, 30..=31);
    stage.until("n1 has written the row", |s| s.acknowledged(first))?;
    stage.join(&[N3], &[N1, N2]);
    let joined = |s: &Stage| s.state(N3) == Some(LocalState::Joined);
    stage.until("n3 has joined", joined)?;
    stage.pass_ms(2_500);
    stage.check("and has not caught up", joined(stage))?;
    let behind = |s: &Stage| !s.has_applied(N3, first);
    stage.until("n3's client commits", |s| s.holds(N1, late).is_some())?;
    stage.check("n3 is behind", behind(stage))?;
    stage.until("n3's client is told", |s| s.told(late).is_some())?;
    stage.must("it has failed", !stage.acknowledged(late));
    Ok(())
}
