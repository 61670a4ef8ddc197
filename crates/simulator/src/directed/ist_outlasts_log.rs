//! A node takes an IST for so long that the others write more than `gcache.size` meanwhile (rule 12).
//!
//! n3 was away for a few transactions. Its server applies them slowly, so n3 pulls a few entries now and then. n1 goes on
//! writing. The rest of the IST stays in the logs: n3 has handed entries to its server, and can take no SST any more.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};
use crate::plan::Plan;
use crate::server::Span;

const LOG_BYTES: u64 = 48 << 10;
/// Number of transactions that n3 misses, and of those while it takes the IST. Each has far above 100 bytes.
const MISSED: u32 = 40;
const MANY: u32 = 800;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::BegunTransferNotPinned],
    plan,
    play,
};

fn plan(seed: u64) -> Plan {
    let mut plan = cluster(3, seed);
    (plan.log_bytes, plan.segment_bytes) = (LOG_BYTES, 2 << 10);
    plan.cert_max_length = 16;
    plan.fc_limit = 10_000;
    plan.ist_chunk_bytes = 200;
    plan.scale.replicator.pulled_entries = 3;
    plan.nodes[N1].server.load.clients = 8;
    plan.nodes[N3].server.speed.apply_us = Span(1_000, 1_000);
    plan.nodes[N3].server.appliers = 1;
    plan
}

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    // The log keeps entries for ten seconds that a database may not have flushed; this schedule is not about those.
    stage.pass_ms(11_000);
    stage.crash(N3, false);
    stage.until("n3 is removed", |s| s.members(N1) == 2)?;
    let missed = stage.commit_many(N1, 0..MISSED)?;
    stage.start(N3);
    stage.until("n3 applies the first of it", |s| {
        s.has_applied(N3, missed[0])
    })?;
    // The pauses between two pulls are shorter than ten seconds, or longer.
    let factor = if stage.world.plan.seed % 2 == 0 {
        1_000
    } else {
        6_000
    };
    stage.slow_appliers(N3, factor);
    stage.check(
        "and not the last",
        !stage.has_applied(N3, missed[MISSED as usize - 1]),
    )?;
    let incarnation = stage.process(N3).map(|process| process.incarnation);
    let all = stage.write_many_until_told(N1, 0..MANY)?;
    stage.purge_logs(&[N1, N2]);
    let is_done = |s: &Stage| s.has_applied(N3, all[MANY as usize - 1]);
    stage.pass_ms(10_000);
    stage.check("the transfer goes on for long", !is_done(stage))?;
    stage.slow_appliers(N3, 1);
    stage.pass_ms(30_000);
    stage.must("n3 applies it all in the end", is_done(stage));
    let same = stage.process(N3).map(|process| process.incarnation) == incarnation;
    stage.must("without a restart", same);
    Ok(())
}
