//! A flush of the leader hangs for half a minute (`repl.durability=disk`, rule 4).
//!
//! n1 and n2 are alone: nothing is acknowledged, because n1's disk does not have it. Then n3 is back: n2 and n3 go
//! on, and n1 gives leadership away. When its disk answers again, it has everything. Meanwhile n1's log comes to the ends
//! of segments, and holds more than `gcache.size`: it must not wait for the disk to remove old ones.

use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::HangUnseen, Mutant::PurgeAwaitsFlush],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.durability = Durability::Disk;
        plan.suspect_timeout_ms = 60_000;
        (plan.segment_bytes, plan.log_bytes) = (2 << 10, 32 << 10);
        plan.cert_max_length = 16;
        plan.nodes[N2].server.load.clients = 8;
        plan
    },
    play,
};

/// Number of transactions that are together larger than `gcache.size`.
const MANY: u32 = 200;

/// Returns the number of segments that n1's log has dropped, and of the flushes that n1 itself has made.
fn counted(stage: &Stage) -> (u64, u64) {
    let link = stage.process(N1).and_then(|process| process.engine.link());
    let log = link.map_or_else(Default::default, |link| link.storage.counters().log);
    (log.dropped, log.flushes_awaited)
}

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.commit_many(N2, 0..MANY)?;
    stage.purge_logs(&[N2]);
    stage.check("n1's log is full", counted(stage).0 > 0)?;
    stage.check("n1 has leadership", stage.is_leading(N1))?;
    stage.part(&[N3], &[N1, N2]);
    stage.hang(N1, 28_000);
    let (_, own_flushes) = counted(stage);
    let x = stage.write(N2, &[row(1)]);
    stage.pass_ms(2_000);
    stage.check("X is in n2's log", stage.holds(N2, x).is_some())?;
    stage.must("nobody acknowledges it", stage.told(x).is_none());
    stage.join(&[N3], &[N1, N2]);
    stage.until("X is acknowledged", |s| s.acknowledged(x))?;
    stage.commit_many(N2, 0..MANY)?;
    stage.check("n1 still has leadership", stage.is_leading(N1))?;
    let (dropped, own_flushes_now) = counted(stage);
    stage.must(
        "n1 does not wait for its disk",
        own_flushes_now == own_flushes,
    );
    let began_us = stage.world.now_us;
    stage.pass_ms(14_000);
    stage.must("n1 has given leadership away", !stage.is_leading(N1));
    let y = stage.write(N2, &[row(2)]);
    stage.until("Y is acknowledged", |s| s.acknowledged(y))?;
    let waited_us = stage.world.now_us - began_us;
    stage.must("n2 and n3 go on", waited_us < 16_000_000);
    stage.until("n1 has Y", |s| s.has_applied(N1, y))?;
    stage.until("n1's log is in its bounds again", |s| {
        counted(s).0 > dropped
    })
}
