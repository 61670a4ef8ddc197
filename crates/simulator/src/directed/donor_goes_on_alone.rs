//! A donor goes on by a forced view of its own, and copies the end of its database only then (rule 11).
//!
//! n4 joins with an empty database, and n3 is its donor. n3 is cut off, and its operator has set `pc.ignore_quorum`: it
//! is primary alone, in a view that takes the place of a write of the others. The copy that n3's script makes at its end
//! has that view. n1 cannot remove n3, because it cannot reach n2 just then. The copy arrives at n4.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::cluster::{NEVER_US, gives_up_snapshot};
use super::{Directed, N1, N2, N3, N4, Play, Stage, cluster, row};
use crate::server::Span;

/// A script that holds all at its end copies the last rows after this time: when n3 is alone, and before n1 notices
/// that it has no majority.
const COPY_MS: u64 = 4_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DonorsReportNotAwaited],
    plan: |seed| {
        let mut plan = cluster(4, seed);
        plan.sst_donor = "n3,";
        plan.nodes[N4].start_us = NEVER_US;
        for node in &mut plan.nodes[..N4] {
            node.server.speed.transfer_us = Span(COPY_MS * 1_000, COPY_MS * 1_000);
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.until("three nodes serve", |s| s.serve(&[N1, N2, N3]))?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.start(N4);
    stage.until("n3 donates", |s| s.state(N3) == Some(LocalState::Donor))?;
    let began_us = stage.world.now_us;
    let passed_ms = |s: &Stage| (s.world.now_us - began_us) / 1_000;
    stage.configure(N3, |config| config.ignore_quorum = true);
    stage.part(&[N3], &[N1, N2, N4]);
    for number in 0..5 {
        let elsewhere = stage.write(N2, &[row(number)]);
        stage.until("the others write", |s| s.acknowledged(elsewhere))?;
    }
    stage.pass_ms(1_500 - passed_ms(stage));
    stage.part(&[N2], &[N1, N4]);
    stage.until("n3 is primary alone", |s| {
        s.component_state(N3) == ComponentState::Primary && s.members(N3) == 1
    })?;
    stage.check("n3 still copies", passed_ms(stage) < COPY_MS - 50)?;
    stage.pass_ms(COPY_MS - 50 - passed_ms(stage));
    stage.join(&[N3], &[N4]);
    stage.pass_ms(250);
    stage.join(&[N2], &[N1, N4]);
    gives_up_snapshot(stage, N4)
}
