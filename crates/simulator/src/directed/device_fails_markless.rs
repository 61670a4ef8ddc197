//! A node's volume fails, and its mark is switched off (`repl.mark_dir` empty; rule 4, `os` mode).
//!
//! As in `device_fails`, but only the process that has seen the failure knows of it: n2 connects again in this
//! process. The process must remember the failure, although neither the log's volume nor a mark could take a note.

use trireme_mutants::Mutant;

use super::device_fails::lose_x;
use super::{Directed, N2, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FailureNotNoted, Mutant::FailureForgotten],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan.marks = false;
        plan
    },
    play: |stage| {
        stage.world.machines[N2].is_reconnected = true;
        lose_x(stage)
    },
};
