//! The founder gets too little of its processor, and does not report it (rule 2). The others measure long round trips
//! to it, and it transfers its leadership.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LeadershipRestless],
    plan: |seed| cluster(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.pass_ms(10_000);
    stage.must("without a reason it stays", stage.is_leading(N1));
    stage.slow(N1, 4_000);
    let begin_us = stage.world.now_us;
    stage.takeover(&[N2, N3])?;
    let took_us = stage.world.now_us - begin_us;
    stage.must("it goes soon", took_us < 5_000_000);
    let needless = [N2, N3].map(|n| {
        stage
            .group(n)
            .map_or(0, |g| g.counters().leaderships_needless)
    });
    stage.must("it was handed over, not taken", needless == [0, 0]);
    Ok(())
}
