//! All nodes with a database lose power soon after an arbitrator was admitted (rules 4 and 12).
//!
//! n1 and n2 flush their databases and logs seldom. They commit X, then the arbitrator n3 is admitted without a log: it
//! has nothing up to X. n1 and n2 have applied X, and lose power; with some seeds they have not flushed it. If n3 had its
//! vote by then, its log would be the best, and fit no database. It has none, so n1 and n2 go on by themselves, as if
//! they were alone.

use trireme_mutants::Mutant;

use super::cluster::go_on_with;
use super::{Directed, N1, N2, N3, Play, Stage, recovering};
use crate::server::Flush;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ArbitratorVotesUnflushed],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.tail_bytes = 500;
        for node in [N1, N2] {
            plan.nodes[node].server.flush = Flush::EachSecond;
        }
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.leave_until_gone(N3)?;
    stage.world.follows_advice(N3); // it comes back without a log
    stage.part(&[N1], &[N3]);
    stage.start(N3);
    stage.pass_ms(500); // it is connected to n2
    stage.commit_many(N1, 0..5)?;
    stage.join(&[N1], &[N3]);
    stage.until("n3 is admitted", |s| s.members(N3) == 3)?;
    stage.pass_ms(50);
    stage.commit_many(N1, 5..10)?;
    for _ in 0..20 {
        stage.pass_ms(if stage.has_vote(N3) { 0 } else { 50 });
    }
    stage.commit_many(N1, 10..60)?;
    for node in [N1, N2] {
        stage.lose_power(node);
    }
    for node in [N1, N2] {
        stage.start(node);
    }
    go_on_with(stage, &[N1, N2], &[])
}
