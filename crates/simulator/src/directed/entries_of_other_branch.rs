//! A joiner asks a member for the entries of an IST that has still to yield to the joiner's branch (rule 11).
//!
//! n3 is cut off and misses entries. n2, n4 and n5 go on without n1, which an operator makes primary alone; n1's log has
//! purged the entries that n3 lacks. n1 admits n2 and n3. n3 has n1's log and control state. n2 has not: it answers with
//! the entries that n3 lacks, and behind them with those of its own branch. Found by seed 30766293257 of profile
//! overrides.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};
use crate::fault::Fault;
use crate::plan::Plan;

const LOG_BYTES: u64 = 8 << 10;
const MISSED: u32 = 8;
/// Each write has far above 100 bytes.
const MANY: u32 = 400;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OtherBranchsEntriesTaken],
    plan,
    play,
};

fn plan(seed: u64) -> Plan {
    let mut plan = cluster(5, seed);
    plan.suspect_timeout_ms = 5_000;
    (plan.log_bytes, plan.segment_bytes) = (LOG_BYTES, 2 << 10);
    // A log keeps what follows its newest checkpoint that is flushed.
    plan.scale.engine.write_back_bytes = 4 << 10;
    plan.tail_bytes = 2_000;
    plan.cert_max_length = 16;
    plan.nodes[N1].server.load.clients = 8;
    plan
}

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    // A log keeps entries for ten seconds that a database may not have flushed.
    stage.pass_ms(11_000);
    let (branch, rest) = ([N2, N4, N5], [N1, N2, N4, N5]);
    stage.cut(&rest, &[N3]); // the others hear n3, and keep it in their view
    let missed = stage.commit_many(N1, 0..MISSED)?;
    stage.until("all but n3 have them", |s| {
        let last = missed[MISSED as usize - 1];
        rest.iter().all(|node| s.has_applied(*node, last))
    })?;
    stage.part(&[N1], &[N2, N3, N4, N5]);
    stage.until("n1 is alone", |s| {
        s.component_state(N1) == ComponentState::NonPrimary
    })?;
    stage.takeover(&branch)?;
    let theirs = stage.write(N2, &[row(1)]);
    stage.until("the others go on", |s| s.has_applied(N2, theirs))?;
    stage.strike(Fault::Override { node: N1 });
    stage.until("n1 is primary", |s| {
        s.component_state(N1) == ComponentState::Primary
    })?;
    stage.write_many_until_told(N1, 0..MANY)?;
    stage.purge_logs(&[N1]);
    stage.write_many_until_told(N1, 0..MANY / 4)?;
    stage.join(&[N1], &[N2]);
    stage.until("n2 is to yield", |s| {
        s.component_state(N2) == ComponentState::NonPrimary
    })?;
    stage.cut(&[N1], &[N2]);
    stage.until("n1 admits n2", |s| s.members(N1) == 2)?;
    stage.part(&[N2], &[N4, N5]);
    stage.join(&[N3], &[N1, N2]);
    stage.until("n3 has n1's log", |s| s.members(N3) == 3)?;
    stage.pass_ms(3_000);
    stage.check("n2 has still to yield", stage.has_committed(N2, theirs))?;
    stage.must(
        "n3 did not take n2's branch",
        !stage.has_applied(N3, theirs),
    );
    stage.join(&[N1, N4, N5], &[N2]);
    stage.until("n3 has a snapshot", |s| s.serves(N3))
}
