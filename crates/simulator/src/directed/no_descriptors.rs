//! A server has too many files open (docs/log-format.md, "When the disk fails").
//!
//! n1, the leader, can open no file for a while: it cannot begin the next segment of its log. It stays leader,
//! commits and flushes, and n3, which was cut off, gets the entries that it lacks.

use trireme_log::Durability;

use super::{Directed, N1, N2, N3, Play, Stage, recovering};

/// Number of transactions; only a few fit into a segment.
const MANY: u32 = 200;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.durability = Durability::Disk;
        plan.suspect_timeout_ms = 60_000;
        plan.segment_bytes = 4 << 10;
        plan.tail_bytes = 2_000;
        plan.nodes[N1].server.load.clients = 8;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let all = stage.write_many_until_told(N1, 0..MANY)?;
    stage.world.machines[N1].disk.set_no_descriptors(true);
    let more = stage.write_many_until_told(N1, 0..MANY)?;
    let all: Vec<_> = (all.into_iter().chain(more))
        .filter(|x| stage.acknowledged(*x))
        .collect();
    stage.check("nearly all", all.len() as u32 > MANY)?;
    let before = stage.view(N1);
    stage.join(&[N3], &[N1, N2]);
    let fed = |s: &Stage| all.iter().all(|x| s.has_applied(N3, *x));
    stage.until("n3 gets them", fed)?;
    stage.must(
        "n1 has stayed",
        stage.is_leading(N1) && stage.view(N1) == before,
    );
    stage.world.machines[N1].disk.set_no_descriptors(false);
    Ok(())
}
