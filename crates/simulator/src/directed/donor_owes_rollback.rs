//! A joiner waits for the message of its donor, which still owes a rollback fragment (rule 7).
//!
//! As in `donor_not_told_synced`, but n3's messages to the leader stop arriving shortly before n3 has pulled all its
//! missing entries. So the rollback fragment does not arrive either. n4 has its state, which lacks the writes of n3's
//! client, and would write the row that the others hold for that client.

use trireme_mutants::Mutant;

use super::donor_not_told_synced::{plan, until_it_pulls};
use super::replayed_stream::position;
use super::{Directed, N1, N2, N3, N4, Play, Stage};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DonorsReportNotAwaited],
    plan: |seed| {
        let mut plan = plan(seed);
        plan.suspect_timeout_ms = 3_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    let written = until_it_pulls(stage)?;
    let lacks = |s: &Stage| Some(position(s, N1)? - position(s, N3)?);
    stage.until("n3 lacks little", |s| lacks(s).is_some_and(|n| n < 10))?;
    stage.cut(&[N3], &[N2]);
    stage.until("n4 has its state", |s| position(s, N4) > Some(0))?;
    stage.pass_ms(500);
    stage.must("n4 does not write yet", stage.told(written).is_none());
    stage.heal(&[N3], &[N2]);
    stage.until("n4 writes", |s| s.acknowledged(written))
}
