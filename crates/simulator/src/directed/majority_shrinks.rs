//! Five nodes go on as three, then as two: each time a majority of the last view is left (rule 3).

use super::cluster::{commit_each, commit_until_alone};
use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, recovering};

/// A member that is gone, the leader too, holds up a commit no longer than this.
const TAKEOVER_MS: u64 = 1_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| recovering(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 leads", stage.is_leading(N1))?;
    for (gone, rest) in [
        (&[N1, N5][..], &[N2, N3, N4][..]),
        (&[N2][..], &[N3, N4][..]),
    ] {
        for node in gone {
            stage.crash(*node, false);
        }
        commit_each(stage, rest, TAKEOVER_MS)?;
        commit_until_alone(stage, rest, TAKEOVER_MS)?;
    }
    Ok(())
}
