//! All nodes are killed in `memory` mode, and a database has the history of an override that no log holds (rules 4, 5).
//!
//! The nodes lose each other, and an operator makes n1 primary, which commits X alone. n1's disk loses the override, and
//! X. All three are there again, but n1's database cannot be compared with the logs: they wait for the operator, who
//! bootstraps n1.

use trireme_group::ComponentState;
use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::fault::Fault;
use crate::world::segments;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UnclearDatabaseIgnored],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.durability = Durability::Memory;
        plan.suspect_timeout_ms = 1_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    stage.scatter(&all)?;
    let disk = stage.world.machines[N1].disk.clone();
    let segment = segments(&disk).pop().unwrap_or_default();
    let at = disk.contents(&segment).map_or(0, |bytes| bytes.len());
    stage.strike(Fault::Override { node: N1 });
    stage.until("n1 is primary", |s| s.serves(N1))?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is acknowledged", |s| s.acknowledged(x))?;
    for node in all {
        stage.crash(node, false);
    }
    disk.flip_bit(&segment, at + 40, 3);
    stage.join(&all, &all);
    for node in all {
        stage.start(node);
    }
    stage.pass_ms(15_000);
    for node in all {
        let waits = stage.component_state(node) == ComponentState::NonPrimary;
        stage.must("they wait for the operator", waits);
    }
    for node in all {
        stage.crash(node, false);
    }
    stage.world.machines[N1].bootstrap = true;
    for node in all {
        stage.start(node);
    }
    stage.until("they are back", |s| s.serve(&all))?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
