//! The arbitrator's log wraps (rules 12 and 24).
//!
//! n2 is cut off but stays a member. n1 commits with the arbitrator n3, far more than `gcache.size`. n1 dies for
//! good. n2 and n3 are a majority of the view: n1's acknowledged commits must be in n3's log.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering};

/// Number of transactions, each far above 100 bytes.
const MANY: u32 = 400;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ArbitratorLogWraps],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 60_000;
        (plan.log_bytes, plan.segment_bytes) = (8 << 10, 4 << 10);
        // A log keeps what follows its newest checkpoint that is flushed.
        plan.scale.engine.write_back_bytes = 4 << 10;
        plan.tail_bytes = 2_000;
        plan.nodes[N1].server.load.clients = 8;
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N2], &[N1, N3]);
    let all = stage.write_many_until_told(N1, 0..MANY)?;
    let all: Vec<_> = (all.into_iter())
        .filter(|x| stage.acknowledged(*x))
        .collect();
    stage.check("nearly all", all.len() as u32 > MANY / 2)?;
    // Reports of applied seqnos purge the logs.
    stage.pass_ms(3_000);
    stage.crash(N1, false);
    stage.join(&[N2], &[N1, N3]);
    stage.pass_ms(10_000);
    let has_all = all.iter().all(|x| stage.has_applied(N2, *x));
    stage.must("n2 has all that was acknowledged", has_all);
    Ok(())
}
