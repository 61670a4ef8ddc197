//! All nodes with a database lose power, the arbitrator does not (rules 4, 12 and 24).
//!
//! n1 and n2 flush their databases once a second, and their logs seldom. They commit far more than `gcache.size`, and
//! report it as applied. Then both lose power: the arbitrator n3 has the only log with the last commits. It must still
//! have those that the databases lack, so that nothing is lost and no operator is needed.

use trireme_mutants::Mutant;

use super::cluster::go_on_with;
use super::{Directed, N1, N2, N3, Play, Stage, recovering};
use crate::server::Flush;

/// Number of transactions, each far above 100 bytes.
const MANY: u32 = 400;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ArbitratorDropsUnflushed],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        (plan.log_bytes, plan.segment_bytes) = (8 << 10, 4 << 10);
        plan.tail_bytes = 2_000;
        for node in [N1, N2] {
            plan.nodes[node].server.flush = Flush::EachSecond;
        }
        plan.nodes[N1].server.load.clients = 8;
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.purge_logs(&[N1, N2]);
    let all = stage.write_many_until_told(N1, 0..MANY)?;
    let all: Vec<_> = (all.into_iter())
        .filter(|x| stage.acknowledged(*x))
        .collect();
    stage.check("nearly all", all.len() as u32 > MANY / 2)?;
    // Reports of applied seqnos purge the logs.
    stage.until("n1 and n2 have applied all", |s| {
        [N1, N2]
            .iter()
            .all(|node| all.iter().all(|x| s.has_applied(*node, *x)))
    })?;
    for node in [N1, N2] {
        stage.lose_power(node);
    }
    for node in [N1, N2] {
        stage.start(node);
    }
    go_on_with(stage, &[N1, N2], &all)
}
