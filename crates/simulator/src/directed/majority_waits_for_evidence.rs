//! All nodes lose power in `os` mode, and one of three does not come back. An operator has set beforehand how long
//! the others wait (`pc.wait_evidence`, rule 4).
//!
//! n3 has X in its database; n1 and n2 have forgotten it. n2 alone waits for ever. With n1 it is a majority: the two
//! go on when the time has passed, and not before. n3 comes back: its database is beyond the fork point, and is
//! replaced.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::cluster::commit_onto_disks;
use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::server::Flush;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MajorityCountsAsAll, Mutant::MinorityReforms],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.wait_evidence_ms = 20_000;
        for node in [N1, N2] {
            plan.nodes[node].server.flush = Flush::EachSecond;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    commit_onto_disks(stage, N3, &all, 3_000)?;
    let x = stage.write(N3, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    for node in all {
        stage.lose_power(node);
    }
    stage.start(N2);
    stage.pass_ms(40_000);
    let alone = stage.component_state(N2) == ComponentState::NonPrimary;
    stage.must("a minority never goes on", alone);
    stage.start(N1);
    stage.pass_ms(15_000);
    let waits = [N1, N2]
        .iter()
        .all(|n| stage.component_state(*n) == ComponentState::NonPrimary);
    stage.must("a majority waits for as long as it was told to", waits);
    stage.until("it goes on", |s| s.serves(N1) && s.serves(N2))?;
    let y = stage.write(N1, &[row(1)]);
    stage.until("Y is committed", |s| s.acknowledged(y))?;
    stage.start(N3);
    stage.until("n3 is back", |s| s.serves(N3))?;
    let forks = stage.process(N3).map(|process| process.progress.forks);
    stage.must("its database is beyond a fork", forks == Some(1));
    Ok(())
}
