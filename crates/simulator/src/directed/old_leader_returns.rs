//! The old leader is back and meets a member that has promised a higher term (rule 1).
//!
//! n1 is cut off while it orders. The two others elect a leader and commit X. Then the new leader is cut off, and
//! n1's entries reach the third node, which must not follow. n1 still believes to be the leader. It learns of the
//! higher term and asks for a term above it; then the log with X leads.

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan.nodes[N1].server.load.clients = 6;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N2, N3]);
    let lost = stage.write_many(N1, 2..8);
    stage.until("n1 has ordered more", |s| {
        lost.iter().all(|y| s.holds(N1, *y).is_some())
    })?;
    stage.cut(&[N2, N3], &[N1]);
    let e = stage.takeover(&[N2, N3])?;
    let f = N2 + N3 - e;
    let x = stage.write(e, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.part(&[e], &[f]);
    stage.check("n1 believes in itself", stage.is_leading(N1))?;
    stage.join(&[N1], &[f]);
    stage.until("n1 has X", |s| s.has_committed(N1, x))?;
    stage.until("the two go on", |s| s.told(lost[0]).is_some())
}
