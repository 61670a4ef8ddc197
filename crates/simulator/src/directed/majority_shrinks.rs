//! Five nodes go on as three, then as two: each time a majority of the last view is left (rule 3).

use super::cluster::{TAKEOVER_MS, commit_each, commit_until_alone};
use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, recovering};

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
