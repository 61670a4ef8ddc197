//! A donor is found inconsistent while it donates (rule 22).
//!
//! n3 joins with an empty database and gets a donor. The donor fails to apply a write-set while its script copies,
//! and loses the error vote. On these long links the group needs a while to remove it. Meanwhile its script wants to
//! pause the database for the last part of the copy, and must not.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::cluster::NEVER_US;
use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::InconsistentDonates],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.delay_us = vec![vec![50_000; 3]; 3];
        plan.nodes[N3].start_us = NEVER_US;
        for node in [N1, N2] {
            let server = &mut plan.nodes[node].server;
            // Each of the two fails to apply the other's write-sets.
            server.apply_errors_per_million = 1_000_000;
            server.speed.transfer_us = Span(100_000, 600_000);
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
    stage.write(N1 + N2 - donor, &[row(1)]);
    let failed = |s: &Stage| s.process(donor).is_none_or(|p| p.server.has_failed());
    stage.until("the donor has diverged", failed)?;
    stage.pass_ms(1_000);
    Ok(())
}
