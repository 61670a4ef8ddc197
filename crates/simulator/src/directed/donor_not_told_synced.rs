//! A member is chosen as donor, and finishes, before its server has heard that it is synced (rule 7).
//!
//! n3's client streams. The others apply its first fragment, but n3 hears nothing before all parts lose the majority.
//! The client fails, and its rollback fragment cannot be sent. n1, n2 and n5 meet again, in a view that differs from
//! the last one: n4 has asked n1 for admission. They hear n3, which hears nothing, and keep it as a synced member.
//! Leadership goes to n2, whose log begins after the end of n3's. n3 hears them again and pulls the entries that its
//! database lacks, one by one. In the middle of that it is chosen as n4's donor. n4 waits for n3's message that it is
//! done, and writes the row that the others hold for n3's client: the rollback fragment must come before.

use trireme_group::{ComponentState, Preference};
use trireme_mutants::Mutant;
use trireme_replicator::{LocalState, ScriptBeforeIst};

use super::cluster::streaming;
use super::{Directed, Missed, N1, N2, N3, N4, N5, Play, Stage, row};
use crate::plan::Plan;
use crate::seen::ClientTrx;
use crate::server::Errand;

/// Number of write-sets that n3 lacks.
const LACKS: u32 = 200;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::RollbackLeftToServer],
    plan,
    play,
};

/// A plan of five nodes, with n3 as the donor.
pub(super) fn plan(seed: u64) -> Plan {
    let mut plan = streaming(5, seed);
    plan.suspect_timeout_ms = 1_000;
    plan.sst_donor = "n3,";
    // Nobody but n4 needs a donor.
    plan.script_before_ist = ScriptBeforeIst::Never;
    // One entry at a time, every twenty milliseconds.
    plan.ist_chunk_bytes = 1;
    plan.delay_us = vec![vec![10_000; 5]; 5];
    plan.tail_bytes = 1;
    plan.nodes[N1].server.load.clients = 20;
    for node in &mut plan.nodes {
        // The simulator does not model DDL beside streaming.
        node.server.load.ddl_per_mille = 0;
    }
    for node in [N1, N3, N4, N5] {
        plan.nodes[node].preference = Preference::Never;
    }
    plan
}

fn play(stage: &mut Stage) -> Play {
    let written = until_it_pulls(stage)?;
    let donates = |s: &Stage| s.state(N3) == Some(LocalState::Donor);
    stage.until("n3 is chosen", donates)?;
    stage.until("n3 is done", |s| !donates(s))?;
    stage.cut(&[N3], &[N1, N2, N5]);
    stage.until("n4 writes", |s| s.told(written).is_some())
}

/// Plays until n3 pulls its missing entries and n4 is about to ask for a database. Returns the transaction of n4's
/// client.
pub(super) fn until_it_pulls(stage: &mut Stage) -> Result<ClientTrx, Missed> {
    let all = [N1, N2, N3, N4, N5];
    let others = [N1, N2, N5];
    stage.formed()?;
    stage.leave_until_gone(N4)?;
    stage.until("n1 knows that n4 has left", |s| s.members(N1) == 4)?;
    stage.cut(&others, &[N3]);
    let streamed = stage.errand(
        N3,
        Errand {
            writes: vec![row(1)],
            locks: vec![row(2)],
            streams: true,
            ..Errand::default()
        },
    );
    stage.until("the others have its fragment", |s| {
        others.iter().all(|node| s.has_committed(*node, streamed))
    })?;
    stage.part(&all, &all);
    let is_primary = |s: &Stage, node| s.component_state(node) == ComponentState::Primary;
    stage.until("nobody is primary", |s| {
        !all.iter().any(|node| is_primary(s, *node))
    })?;
    stage.until("n3's client has failed", |s| s.told(streamed).is_some())?;
    // A next view with the members of the last one would undo all streaming transactions.
    stage.start(N4);
    stage.join(&[N4], &[N1]);
    stage.pass_ms(1_000);
    stage.heal(&[N3], &[N1, N2, N5]);
    stage.pass_ms(1_000);
    stage.join(&[N1, N2, N5], &[N1, N2, N5]);
    stage.until("n1 is primary", |s| is_primary(s, N1))?;
    stage.crash(N4, false);
    // Until then n1 and n5 would be two of four without n2.
    stage.until("n4 is left out", |s| s.members(N1) == 4)?;
    stage.commit_many(N1, 10..10 + LACKS)?;
    stage.leave_until_gone(N2)?;
    stage.start(N2);
    stage.until("n2 has leadership", |s| s.is_leading(N2))?;
    stage.wipe(N4);
    stage.join(&[N4], &[N1, N2, N5]);
    stage.start(N4);
    let written = stage.write(N4, &[row(1)]);
    stage.until("n4 is a member", |s| is_primary(s, N4))?;
    stage.cut(&[N4], &others);
    stage.join(&[N3], &[N1, N2, N5]);
    let joins = |s: &Stage| s.state(N3) == Some(LocalState::Joiner);
    stage.until("n3 joins", joins)?;
    stage.join(&all, &all);
    Ok(written)
}
