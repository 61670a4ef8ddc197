//! Half of the nodes and more lose power, and their logs are damaged in flushed parts: views are lost (rule 4).
//!
//! As in `blackout_in_pending_vote`, n4 has got its vote, and X. The logs of n1, n2 and n3 lose their ends with the
//! entry of n4's vote. As far as they know they are the whole cluster. But they know that they may miss views, and
//! wait even with n4: an operator decides.

use trireme_log::MemoryDisk;
use trireme_mutants::Mutant;

use super::blackout_in_pending_vote::{SCHEDULE as BEFORE, lose_x};
use super::{Directed, N4, Stage};
use crate::fault::Fault;
use crate::seen::NodeId;
use crate::world::segments;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LostViewsVouch],
    plan: BEFORE.plan,
    play: |stage| {
        lose_x(stage, damage)?;
        stage.start(N4);
        stage.pass_ms(15_000);
        stage.must("n4 alone cannot vouch", !stage.is_leading(N4));
        stage.strike(Fault::Override { node: N4 });
        stage.until("an operator decides", |s| s.serves(N4))
    },
};

/// Flips a bit in the second half of the last segment.
fn damage(stage: &mut Stage, node: NodeId) {
    let disk: MemoryDisk = stage.world.machines[node].disk.clone();
    let segment = segments(&disk).pop().unwrap_or_default();
    let length = disk.contents(&segment).map_or(0, |bytes| bytes.len());
    disk.flip_bit(&segment, length / 2, 3);
}
