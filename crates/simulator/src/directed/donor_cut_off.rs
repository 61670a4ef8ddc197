//! A donor is cut off, and is back before it has applied earlier write-sets (server-contract.md#pause).
//!
//! n4 joins with an empty database. Its donor applies one write-set for 8 s. Meanwhile it is cut off and comes back;
//! only after the write-set does its server hear that it is no longer a donor. Meanwhile the donor's script wants to
//! pause the node (as mariabackup does, at the end). The pause must be allowed before the server hears that, whatever
//! has come since: only a donor's server ends such a pause.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::cluster::NEVER_US;
use super::{Directed, N1, N2, N3, N4, Play, Stage, cluster, row};
use crate::fault::Fault;
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::PauseAfterDonorsLoss],
    plan: |seed| {
        let mut plan = cluster(4, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.nodes[N4].start_us = NEVER_US;
        for node in [N1, N2, N3] {
            let speed = &mut plan.nodes[node].server.speed;
            speed.transfer_us = Span(6_000_000, 6_000_000);
            speed.apply_us = Span(100, 100);
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    let donors = [N1, N2, N3];
    stage.until("three nodes serve", |s| s.serve(&donors))?;
    stage.start(N4);
    let donates = |s: &Stage, node| s.state(node) == Some(LocalState::Donor);
    let donor = stage.until_one("a donor is chosen", &donors, donates)?;
    stage.strike(Fault::SlowAppliers {
        node: donor,
        factor: 10_000,
        for_us: NEVER_US,
    });
    stage.pass_ms(200);
    let others: Vec<_> = (N1..=N4).filter(|node| *node != donor).collect();
    let rows: Vec<u32> = (1..=8).map(row).collect();
    let x = stage.write(others[0], &rows);
    stage.until("the donor has X", |s| s.has_committed(donor, x))?;
    stage.part(&[donor], &others);
    stage.until("it is alone", |s| {
        s.component_state(donor) == ComponentState::NonPrimary
    })?;
    let y = stage.write(others[0], &[row(9)]);
    stage.until("the others go on", |s| s.acknowledged(y))?;
    stage.join(&[donor], &others);
    stage.until("it is back, and has Y", |s| {
        s.component_state(donor) == ComponentState::Primary && s.has_committed(donor, y)
    })?;
    stage.check("it is at X still", !stage.has_applied(donor, x))?;
    stage.until("it serves again", |s| {
        s.serves(donor) && s.has_applied(donor, y)
    })
}
