//! A member that asked several times gets as many log checkpoints, after it has delivered entries above them (rule
//! 1).
//!
//! As `asked_twice`, but n3 hears the others' acknowledgements at once. So it learns the commit point by itself, and
//! has applied the entries when the next log checkpoint comes.

use trireme_mutants::Mutant;

use super::Directed;
use super::asked_twice::{ACK_US, SCHEDULE as BEFORE, ask_twice};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::InstallGoesBack],
    plan: BEFORE.plan,
    play: |stage| ask_twice(stage, ACK_US),
};
