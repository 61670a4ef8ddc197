//! A donor dies after it was chosen and before it begins to send (rules 19 and 24).
//!
//! n3 joins with an empty database and gets a donor. The donor's process dies before its script has started. No
//! process will ever answer n3's script, so n3 must not wait.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::cluster::NEVER_US;
use super::{Directed, N1, N2, N3, Play, Stage, cluster};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DonorLossIgnored],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.nodes[N3].start_us = NEVER_US;
        for node in &mut plan.nodes {
            // The donor's script starts slowly.
            node.server.speed.stage_us = Span(5_000, 10_000);
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.until("n1 and n2 serve", |s| s.serves(N1) && s.serves(N2))?;
    stage.start(N3);
    let donates = |s: &Stage, node| s.state(node) == Some(LocalState::Donor);
    let donor = stage.until_one("a donor is chosen", &[N1, N2], donates)?;
    stage.crash(donor, false);
    stage.pass_ms(3_000);
    Ok(())
}
