//! A client commits on a joining node (rule 9).
//!
//! n3 loses the others while its client has an open transaction. Meanwhile leadership goes to n2, whose process and
//! log began after the end of n3's log. n3 gets a log checkpoint and is then like a joiner: it knows the order, and
//! pulls the entries that its database lacks, one by one. In the middle of that its client commits. The write-set has
//! no place behind the missing entries: it is refused.

use trireme_group::Preference;
use trireme_mutants::Mutant;
use trireme_replicator::{Code, LocalState};

use super::{Directed, N1, N2, N3, N4, Play, Stage, cluster, row};
use crate::server::{Errand, Span};

/// Number of write-sets that n3 lacks.
const LACKS: u32 = 200;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::JoinerWrites],
    plan: |seed| {
        let mut plan = cluster(4, seed);
        plan.suspect_timeout_ms = 1_000;
        // One entry at a time, every twenty milliseconds.
        plan.ist_chunk_bytes = 1;
        plan.delay_us = vec![vec![10_000; 4]; 4];
        plan.tail_bytes = 1;
        plan.nodes[N1].server.load.clients = 20;
        // A statement takes half a second, and the transaction has ten seconds of idle time.
        plan.nodes[N3].server.speed.statement_us = Span(500_000, 100_000);
        for node in [N1, N3, N4] {
            plan.nodes[node].preference = Preference::Never;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let begun_us = stage.world.now_us;
    let late = stage.errand(
        N3,
        Errand {
            writes: vec![row(1)],
            long: true,
            ..Errand::default()
        },
    );
    stage.pass_ms(1_200);
    stage.part(&[N3], &[N1, N2, N4]);
    let view = stage.view(N1);
    stage.until("n3 is given up", |s| s.view(N1) > view)?;
    stage.write_many(N1, 10..10 + LACKS);
    stage.crash(N2, false);
    stage.pass_ms(1_000);
    stage.start(N2);
    stage.until("n2 has leadership", |s| s.is_leading(N2))?;
    stage.until("it is time", |s| s.world.now_us >= begun_us + 9_500_000)?;
    stage.join(&[N3], &[N1, N2, N4]);
    let joins = |s: &Stage| s.state(N3) == Some(LocalState::Joiner);
    stage.until("n3 joins", joins)?;
    stage.until("n3's client is told", |s| s.told(late).is_some())?;
    stage.check("n3 still joins", joins(stage))?;
    stage.must("it is refused", stage.told(late) == Some(Code::ConnFail));
    Ok(())
}
