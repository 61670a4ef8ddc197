//! An SST was requested before its joiner lost the others, and arrives when the joiner is back (rule 19).
//!
//! n3 joins with an empty database, and n1 begins to send. n3 is cut off and given up, and n2's clients write much. n2
//! restarts and leads: its log begins after the end of n3's. n3 is admitted again with a log that begins anew, above what
//! n1 sends: it needs all between by IST, the first entry, too.

use trireme_group::Preference;
use trireme_mutants::Mutant;
use trireme_replicator::{LocalState, ScriptBeforeIst};

use super::cluster::NEVER_US;
use super::{Directed, N1, N2, N3, Play, Stage, cluster};
use crate::server::Span;

/// Number of write-sets that n3 lacks.
const LACKS: u32 = 200;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::SnapshotSkipsOne],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.tail_bytes = 1;
        plan.sst_donor = "n1,";
        // Nobody but n3 needs a donor.
        plan.script_before_ist = ScriptBeforeIst::Never;
        plan.nodes[N2].server.load.clients = 20;
        plan.nodes[N3].start_us = NEVER_US;
        plan.nodes[N1].server.speed.transfer_us = Span(22_000_000, 22_000_000);
        for node in [N1, N3] {
            plan.nodes[node].preference = Preference::Never;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.until("two nodes serve", |s| s.serve(&[N1, N2]))?;
    stage.start(N3);
    let donates = |s: &Stage| s.state(N1) == Some(LocalState::Donor);
    stage.until("n1 is the donor", donates)?;
    stage.pass_ms(100);
    stage.part(&[N3], &[N1, N2]);
    stage.commit_many(N2, 0..LACKS)?;
    stage.until("n3 is given up", |s| s.members(N1) == 2)?;
    stage.leave_until_gone(N2)?;
    stage.start(N2);
    stage.until("n2 leads", |s| s.is_leading(N2))?;
    for node in [N1, N2] {
        stage.reset(N3, node);
    }
    stage.join(&[N3], &[N1, N2]);
    stage.until("n3 is admitted again", |s| s.members(N3) == 3)?;
    stage.check("n1 still sends", donates(stage))?;
    stage.until("n3 serves", |s| s.serves(N3))
}
