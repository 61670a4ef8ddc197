//! A joiner waits for the word of its donor, which owes a rollback fragment (rule 7).
//!
//! n3's client streams; the others apply its first fragment, but no word comes back to n3 before nobody has
//! the majority: its client fails. n1, n2 and n3 meet again without n4, in a view that closes nothing. n4 has lost
//! everything, and n3 is to send it its database. n3's server executes a long DDL all the while: only then it hears
//! that it is synced, and says that the fragment is to be undone, which does not arrive; and sends its database, in
//! which there is nothing of that fragment. n4's client wants to write the row that n1 and n2 still hold for it.

use trireme_group::Standing;
use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::replayed_stream::position;
use super::{Directed, N1, N2, N3, N4, Play, Stage, cluster, row};
use crate::seen::TimeUs;
use crate::server::{Errand, Span};

/// n3 executes DDL for so long.
const DDL_US: TimeUs = 5_000_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::JoinsBeforeDonated],
    plan: |seed| {
        let mut plan = cluster(4, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.sst_donor = "n3,";
        for node in &mut plan.nodes {
            // Not 0: what is modelled of streaming depends on it. DDL beside it is not modelled.
            node.server.load.streaming_percent = 1;
            node.server.load.ddl_per_mille = 0;
        }
        plan.nodes[N3].server.speed.ddl_us = Span(DDL_US, DDL_US);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    let all = [N1, N2, N3, N4];
    stage.formed()?;
    let ddl = stage.ddl(N1, 0);
    let begun_us = stage.world.now_us;
    stage.until("n3 has the DDL", |s| s.has_committed(N3, ddl))?;
    stage.cut(&[N1, N2, N4], &[N3]);
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
        let others = [N1, N2, N4];
        others.iter().all(|node| s.has_committed(*node, streamed))
    })?;
    stage.part(&all, &all);
    let is_primary = |s: &Stage, node| s.standing(node) == Standing::Primary;
    stage.until("nobody is primary", |s| {
        !all.iter().any(|node| is_primary(s, *node))
    })?;
    stage.check("n3's client has failed", stage.told(streamed).is_some())?;
    stage.join(&[N1, N2, N3], &[N1, N2, N3]);
    stage.until("n3 is primary", |s| is_primary(s, N3))?;
    stage.join(&all, &all);
    stage.wipe(N4);
    stage.start(N4);
    let written = stage.write(N4, &[row(1)]);
    let donates = |s: &Stage| s.state(N3) == Some(LocalState::Donor);
    stage.until("n3 is chosen", donates)?;
    let left_us = (begun_us + DDL_US - 100_000).checked_sub(stage.world.now_us);
    stage.check("n3 executes the DDL still", left_us.is_some())?;
    stage.pass_ms(left_us.unwrap_or(0) / 1000);
    stage.cut(&[N3], &[N1, N2]);
    stage.until("n4 has its state", |s| position(s, N4) > Some(0))?;
    stage.pass_ms(300);
    stage.must("n4 does not write yet", stage.told(written).is_none());
    stage.heal(&[N3], &[N1, N2]);
    stage.until("n4 writes", |s| s.acknowledged(written))
}
