//! A node that may have lost views is killed while it founds the history anew on its database (rules 4, 5).
//!
//! As in `killed_in_founding`, but n1's volume has failed within one boot of its machine: n1 notes that it may lack views,
//! too. n1 is killed when its new log has its name, and not yet its notes: the notes are about the old log. n1 is alone
//! in its new log's view, so nobody else could vouch for that view. They must go on without an operator.

use trireme_mutants::Mutant;

use super::killed_in_founding::die_in_founding;
use super::{Directed, N1, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FounderStaysAmnesiac],
    plan: |seed| recovering(3, seed),
    play: |stage| {
        let steps = stage.world.plan.seed % 7;
        die_in_founding(stage, steps, |stage| {
            stage.fail_device(N1);
            stage.crash(N1, false);
            stage.remount(N1);
        })
    },
};
