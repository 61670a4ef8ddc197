//! The founder is far away from the two others (rules 2, 24). Its leadership moves to one of them while they write,
//! without an election and a view, and stays there.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};
use crate::plan::Plan;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LeadershipRestless],
    plan: |seed| far_founder(cluster(3, seed)),
    play,
};

/// Changes a plan so that the first node is 100 ms away, there and back.
pub(super) fn far_founder(mut plan: Plan) -> Plan {
    for other in 1..plan.nodes.len() {
        plan.delay_us[N1][other] = 50_000;
        plan.delay_us[other][N1] = 50_000;
    }
    plan
}

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 has leadership", stage.is_leading(N1))?;
    let shown = |s: &Stage| [N1, N2, N3].map(|n| s.views_shown(n));
    let before = shown(stage);
    let begin_us = stage.world.now_us;
    let mut longest_us = 0;
    let mut number = 0;
    while !stage.is_leading(N2) && !stage.is_leading(N3) {
        number += 1;
        let (from_us, write) = (stage.world.now_us, stage.write(N2, &[row(number)]));
        stage.until("n2 writes", |s| s.told(write).is_some())?;
        longest_us = longest_us.max(stage.world.now_us - from_us);
        let late = stage.world.now_us > begin_us + 10_000_000;
        stage.must("leadership moves within ten seconds", !late);
        if late {
            return Ok(());
        }
    }
    // A round trip to n1, even while leadership moves.
    stage.must("nobody waits for the move", longest_us < 160_000);
    let begin_us = stage.world.now_us;
    let write = stage.write(N2, &[row(0)]);
    stage.until("n2 writes", |s| s.told(write).is_some())?;
    let took_us = stage.world.now_us - begin_us;
    stage.must("commits are fast from here on", took_us < 60_000);
    // The founder hears of it later.
    stage.pass_ms(500);
    let moved = stage.world.leaderships_handed();
    stage.pass_ms(30_000);
    stage.must(
        "leadership stays",
        stage.world.leaderships_handed() == moved,
    );
    stage.must("a move shows no view", shown(stage) == before);
    Ok(())
}
