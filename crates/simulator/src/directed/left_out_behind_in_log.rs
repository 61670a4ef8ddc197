//! A node left out of flow control has an empty apply queue only because its log lacks entries (rule 15).
//!
//! n3 is slow for a while, and is left out. Then it is cut off but stays a member: n1 commits with n2. When n3 is
//! back it has applied all its entries, and the leader sends it more little by little. The group does not count on n3
//! before its log is near the others' ends.

use super::{Directed, N1, N2, N3, Play, Stage, cluster};

/// Number of transactions while n3 is away.
const MANY: u32 = 300;
/// The distance that counts as near, in entries.
const NEAR: u64 = 50;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.fc_limit = 1;
        plan.window_bytes = 1_000;
        plan.nodes[N1].server.load.clients = 8;
        plan.nodes[N3].server.appliers = 1;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.slow_appliers(N3, 2_000);
    stage.write_many(N1, 0..12);
    stage.pass_ms(100);
    stage.write_many(N1, 12..24);
    stage.until("n3 is left out", is_left_out)?;
    stage.slow_appliers(N3, 1);
    stage.part(&[N3], &[N1, N2]);
    stage.write_many_until_told(N1, 0..MANY)?;
    stage.pass_ms(1_200);
    let behind = |s: &Stage| s.commit(N1) - s.commit(N3);
    stage.check(
        "n3 lacks them",
        is_left_out(stage) && behind(stage) > MANY.into(),
    )?;
    stage.join(&[N3], &[N1, N2]);
    stage.until("n3 has caught up", |s| !is_left_out(s))?;
    stage.must("its log is near", behind(stage) <= NEAR);
    Ok(())
}

fn is_left_out(stage: &Stage) -> bool {
    let status = stage.process(N1).map(|process| process.engine.status());
    status.is_some_and(|status| !status.left_out.is_empty())
}
