//! The read point of a current read lies in a suffix that is dropped (rule 17).
//!
//! n1 asks for a read point. Before the answers come it orders submissions of n5 that reach no other node. The others
//! elect a leader without those entries, and n5 dies, so that nothing more is ordered. n1 follows: its log now ends
//! below the greatest end that it knew when the answers came. The read has seen everything that it must see, and must
//! not wait for more.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

/// Delay of the answers.
const SLOW_US: u64 = 50_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ReadPointNotCommitted],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 60_000;
        plan.leadership_moves = false;
        plan.nodes[N5].server.load.clients = 40;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let others = [N2, N3, N4];
    stage.cut(&[N5], &others);
    let network = &mut stage.world.network;
    (others.iter()).for_each(|other| network.slow_down(*other, N1, SLOW_US));
    let read = stage.read(N1, row(1));
    stage.pass_ms(5);
    stage.check("n1 is asking", stage.told(read).is_none())?;
    stage.cut(&[N1], &others);
    let end = stage.end(N1);
    stage.write_many(N5, 10..50);
    stage.until("n1 has ordered them", |s| s.end(N1) >= end + 40)?;
    stage.pass_ms(100);
    stage.crash(N5, false);
    stage.part(&[N1], &others);
    let network = &mut stage.world.network;
    (others.iter()).for_each(|other| network.speed_up(*other, N1, SLOW_US));
    let next = stage.takeover(&others)?;
    stage.join(&[N1], &others);
    stage.until("n1 follows", |s| {
        s.term(N1) == s.term(next) && s.end(N1) == s.end(next)
    })?;
    stage.check("without n5's", stage.end(N1) < end + 40)?;
    stage.pass_ms(2_000);
    let ended = stage.acknowledged(read);
    stage.must("the read has ended", ended);
    Ok(())
}
