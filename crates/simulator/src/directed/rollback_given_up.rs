//! A rollback fragment is voided, but a later write-set of its origin is not (rules 9 and 24).
//!
//! A streaming transaction of n2 holds a row on all nodes. n3 and n4 are cut off: n1, the leader, hears n2 but orders
//! nothing. n2's client rolls back; the next client, which has waited for the row, writes it and commits. With the
//! loss of the majority n2 gives up both. n1 hears of the first withdrawal when it is sent again, and of the second
//! one three tenths of a second later; in between the four nodes meet. If n1 orders the second submission without the
//! first, the other servers write a row that a streaming transaction holds.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;
use trireme_replicator::Code;

use super::cluster::streaming;
use super::{Directed, N1, N2, N3, N4, Play, Stage, row};
use crate::server::{Errand, Span};

/// Duration of a statement of n2.
const STATEMENT_US: u64 = 300_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::VoidedOneByOne],
    plan: |seed| {
        let mut plan = streaming(4, seed);
        plan.suspect_timeout_ms = 1_000;
        let server = &mut plan.nodes[N2].server;
        server.speed.statement_us = Span(STATEMENT_US, STATEMENT_US);
        // With such statements their locks would last for half a minute.
        server.load.long_percent = 0;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let streamed = stage.errand(
        N2,
        Errand {
            writes: vec![row(1)],
            locks: vec![row(2)],
            streams: true,
            rolls_back: true,
            ..Errand::default()
        },
    );
    stage.until("its fragment is everywhere", |s| {
        let nodes = [N1, N2, N3, N4];
        nodes.iter().all(|node| s.has_committed(*node, streamed))
    })?;
    stage.part(&[N1, N2], &[N3, N4]);
    let written = stage.write(N2, &[row(1)]);
    stage.until("n2 rolls back", |s| s.told(streamed).is_some())?;
    let rolled_back_us = stage.world.now_us;
    let is_primary = |s: &Stage, node| s.component_state(node) == ComponentState::Primary;
    stage.check("n2 has the majority still", is_primary(stage, N2))?;
    stage.until("it is lost", |s| !is_primary(s, N1) && !is_primary(s, N2))?;
    let unknown = |s: &Stage| s.told(written) == Some(Code::NodeFail);
    stage.until("nobody knows whether the other has committed", unknown)?;
    // Plus a heartbeat and a little: the message is on its way, or there.
    let resent_us = rolled_back_us + 1_170_000;
    let left_us = resent_us.checked_sub(stage.world.now_us);
    stage.check("the rollback is not sent again yet", left_us.is_some())?;
    stage.pass_ms(left_us.unwrap_or(0) / 1000);
    stage.join(&[N1, N2], &[N3, N4]);
    let next = stage.write(N2, &[row(1)]);
    stage.until("n2 goes on", |s| s.told(next).is_some())
}
