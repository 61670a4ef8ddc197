//! A member that asked several times gets as many log checkpoints (rule 1).
//!
//! n3 has missed X, which n1 cannot read any more. n1's messages to n3 take three seconds. Before the first log
//! checkpoint arrives, n3 asks again and again, and n1 goes on ordering. Between two log checkpoints n3 gets entries
//! and acknowledges them. Each log checkpoint is at n1's commit point at the time of the question: n3 has
//! acknowledged more than that.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};
use crate::world::segments;

/// Delay from n1 to n3. When n3 asks, n1 has told no member its commit point lately.
const FAR_US: u64 = 3_050_000;
/// Delay of the others' acknowledgements to n1: some are always under way.
pub(super) const ACK_US: u64 = 50_000;
/// Time between two writes.
const EVERY_MS: u64 = 10;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::InstallDropsAcknowledged],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 60_000;
        // Committed entries are in the log only.
        plan.tail_bytes = 1;
        plan.leadership_moves = false;
        plan.nodes[N1].server.load.clients = 40;
        plan
    },
    // The acknowledgements reach n3 later than n1's messages: n3 does not learn the commit point by itself.
    play: |stage| ask_twice(stage, FAR_US + 2 * ACK_US),
};

/// Plays the schedule. `ack_us`: delay of the others' acknowledgements to n3.
pub(super) fn ask_twice(stage: &mut Stage, ack_us: u64) -> Play {
    stage.formed()?;
    let rest = [N2, N4, N5];
    stage.part(&[N3], &[N1]);
    stage.part(&[N3], &rest);
    let disk = stage.world.machines[N1].disk.clone();
    let segment = segments(&disk).pop().unwrap_or_default();
    let at = disk.contents(&segment).map_or(0, |bytes| bytes.len());
    for number in 1..=2 {
        let written = stage.write(N1, &[row(number)]);
        stage.until("it is committed", |s| s.acknowledged(written))?;
    }
    disk.flip_bit(&segment, at + 40, 3);
    for other in [N1, N2, N4, N5] {
        stage.reset(N3, other);
    }
    stage.pass_ms(6_000);
    let mut lines = vec![(N1, N3, FAR_US)];
    for other in rest {
        lines.extend([(other, N1, ACK_US), (other, N3, ack_us)]);
    }
    let network = &mut stage.world.network;
    (lines.iter()).for_each(|(from, to, by)| network.slow_down(*from, *to, *by));
    stage.join(&[N3], &[N1]);
    stage.join(&[N3], &rest);
    let behind = stage.end(N3);
    let (mut rows, mut highest, mut kept) = (10, behind, true);
    let asked = |s: &Stage| s.group(N3).map_or(0, |g| g.counters().summaries_sent);
    let before = asked(stage);
    while asked(stage) < before + 4 && rows < 1_500 {
        stage.write(N1, &[row(rows)]);
        rows += 1;
        stage.pass_ms(EVERY_MS);
    }
    stage.check("n3 has asked again", asked(stage) >= before + 4)?;
    let last = stage.end(N1);
    stage.until("it has all that was sent until then", |s| {
        kept &= s.end(N3) >= highest;
        highest = s.end(N3);
        highest >= last
    })?;
    let installs = stage.group(N3).map_or(0, |g| g.counters().installs);
    stage.check("by a checkpoint", installs > 0)?;
    stage.must("n3 holds what it has acknowledged", kept);
    let network = &mut stage.world.network;
    (lines.iter()).for_each(|(from, to, by)| network.speed_up(*from, *to, *by));
    Ok(())
}
