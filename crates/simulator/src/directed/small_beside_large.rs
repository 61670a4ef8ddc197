//! A bulk payload travels, and small write-sets pass it (rule 8): those of other nodes, and later ones of its own
//! node.

use trireme_group::Position;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::plan::Plan;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LargeNotAwaited],
    plan,
    play,
};

/// A plan in which a write-set of sixty rows takes twenty round trips.
pub(super) fn plan(seed: u64) -> Plan {
    Plan {
        delay_us: vec![vec![5_000; 3]; 3],
        large_bytes: 500,
        part_bytes: 10,
        staged_bytes: 0,
        ..cluster(3, seed)
    }
}

pub(super) fn many_rows() -> Vec<u32> {
    (1..=60).map(row).collect()
}

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let large = stage.write(N2, &many_rows());
    stage.pass_ms(30);
    let begin_us = stage.world.now_us;
    let small = [(N1, 101), (N2, 102), (N3, 103)].map(|(n, r)| stage.write(n, &[row(r)]));
    stage.until("small ones are acknowledged", |s| {
        small.iter().all(|trx| s.acknowledged(*trx))
    })?;
    let took_us = stage.world.now_us - begin_us;
    stage.must("they wait for nobody", took_us < 60_000);
    stage.until("the large one is acknowledged", |s| s.acknowledged(large))?;
    let at = |trx| stage.holds(N1, trx).unwrap_or(Position::MAX);
    let last = small.map(at).into_iter().max();
    stage.check("it comes last", last < Some(at(large)))
}
