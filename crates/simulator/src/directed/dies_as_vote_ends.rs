//! The only node with a database is killed when the error vote on its DDL ends (rules 13 and 22).
//!
//! As in `dies_as_ddl_ends`, but the action fails, and the vote keeps the history out of grastate.dat, too.

use trireme_mutants::Mutant;

use super::dies_as_ddl_ends::{dies, plan};
use super::{Directed, Play, Stage};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::EndNotedInVote],
    plan,
    play,
};

fn play(stage: &mut Stage) -> Play {
    dies(stage, true, 10 + stage.world.plan.seed % 3)
}
