//! The only node with a database connects again before an error vote is over (rules 13 and 22).
//!
//! As in `blackout_before_vote`, n1 takes its error for the outcome. Then its operator sets `wsrep_cluster_address` anew.
//! The error counts for the next connection, too: otherwise no vote would give grastate.dat its history back, and n1's
//! database would be in doubt after its next death, however much later.

use trireme_mutants::Mutant;

use super::blackout_before_vote::presumes;
use super::dies_as_ddl_ends::plan;
use super::{Directed, N1, Play, Stage, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::PresumptionForgotten],
    plan,
    play,
};

fn play(stage: &mut Stage) -> Play {
    presumes(stage)?;
    stage.strike(Fault::Reconnect {
        node: N1,
        for_us: 100_000,
    });
    stage.until("it has left", |s| !s.serves(N1))?;
    stage.until("n1 serves", |s| s.serves(N1))?;
    let written = stage.write(N1, &[row(1)]);
    stage.until("it writes", |s| s.acknowledged(written))?;
    let is_named = stage.world.machines[N1].saved.names_history();
    stage.must("grastate.dat names the history", is_named);
    Ok(())
}
