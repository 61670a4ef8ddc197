//! The cluster goes on with one of two databases in doubt, and that one is lost before the other node has a copy
//! (rule 13).
//!
//! n1 has executed the DDL, and died. n2 or n3 is chosen and executes it again; the other one's SST is under way when the
//! chosen one's machine is lost for good. An operator's override makes the other one primary, and n1 comes back: its
//! database is from before the choice, but it is the only one.

use trireme_replicator::LocalState;

use super::ddl_done_elsewhere::{Absence, Death, SLOW, are_alike, plan, two_die};
use super::{Directed, N1, N2, N3, Play, Stage};
use crate::fault::Fault;
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| {
        let mut plan = plan(seed);
        for node in SLOW {
            plan.nodes[node].server.speed.transfer_us = Span(3_000_000, 3_000_000);
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    two_die(stage, Absence::Dies, Death::Swapped)?;
    let donates = |s: &Stage, node| s.state(node) == Some(LocalState::Donor);
    let chosen = stage.until_one("the chosen one donates", &SLOW, donates)?;
    stage.pass_ms(100);
    stage.crash(chosen, false);
    let other = if chosen == N2 { N3 } else { N2 };
    stage.start(N1);
    stage.pass_ms(10_000); // the other one gives its SST up, and comes back without a database
    stage.strike(Fault::Override { node: other });
    are_alike(stage, &[N1, other])
}
