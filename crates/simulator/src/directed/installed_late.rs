//! A member that asked several times is sent as many checkpoints, and has delivered what lies above them (rule 1).
//!
//! As `asked_twice`, but n3 hears the acknowledgements of the others at once: it knows by itself what is committed, and has applied it
//! when the next checkpoint comes.

use trireme_mutants::Mutant;

use super::Directed;
use super::asked_twice::{ACK_US, SCHEDULE as BEFORE, ask_twice};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::InstallGoesBack],
    plan: BEFORE.plan,
    play: |stage| ask_twice(stage, ACK_US),
};
