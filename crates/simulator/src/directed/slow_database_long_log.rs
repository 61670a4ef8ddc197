//! A node applies nothing for long, and its log is as long as the others' logs (rule 12).
//!
//! n2 executes a long DDL while n1 writes far more than `gcache.size`. n2's log keeps all of it. n1's and n3's logs
//! need not, so that one slow database fills only one disk.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};
use crate::seen::NodeId;
use crate::server::Span;

const LOG_BYTES: u64 = 8 << 10;
/// Number of transactions, each far above 100 bytes.
const MANY: u32 = 400;
/// Enough for a report of what is applied.
const FEW: u32 = 8;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::PauseFillsAllLogs],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        (plan.log_bytes, plan.segment_bytes) = (LOG_BYTES, 4 << 10);
        // A log keeps what follows its newest checkpoint that is flushed.
        plan.scale.engine.write_back_bytes = 4 << 10;
        plan.cert_max_length = 16;
        plan.fc_limit = 10_000;
        for node in &mut plan.nodes {
            node.server.load.ddl_per_mille = 0;
        }
        plan.nodes[N1].server.load.clients = 8;
        plan.nodes[N2].server.speed.ddl_us = Span(60_000_000, 60_000_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let ddl = stage.ddl(N1, 0);
    stage.until("n1 has executed DDL", |s| s.acknowledged(ddl))?;
    let all = stage.write_many_until_told(N1, 0..MANY)?;
    // n2's word that its log holds all this is believed after 10 to 20 s, when there is more to keep.
    for _ in 0..2 {
        stage.pass_ms(11_000);
        stage.write_many_until_told(N1, 0..FEW)?;
    }
    stage.purge_logs(&[N1]);
    stage.pass_ms(2_000);
    let beyond = |s: &Stage, node: NodeId| {
        let link = s.world.machines[node].process.as_ref();
        let link = link.and_then(|process| process.engine.link());
        link.map_or(0, |link| link.storage.bytes_beyond_size())
    };
    stage.check("n2 applies nothing", !stage.has_applied(N2, all[0]))?;
    stage.check("its log has it", beyond(stage, N2) > 10 * LOG_BYTES)?;
    for node in [N1, N3] {
        let is_short = 4 * beyond(stage, node) < beyond(stage, N2);
        stage.must("the others' logs are short", is_short);
    }
    stage.pass_ms(90_000);
    let all: Vec<_> = (all.into_iter())
        .filter(|x| stage.acknowledged(*x))
        .collect();
    let has_all = all.iter().all(|x| stage.has_applied(N2, *x));
    stage.must("n2 applies it all in the end", has_all);
    Ok(())
}
