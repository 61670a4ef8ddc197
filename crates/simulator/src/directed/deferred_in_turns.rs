//! Two candidates defer to the same log, whose owner does not become leader, and then cut each other's attempts short
//! (rule 4).
//!
//! n1 and n3 have X, n2 does not. n1 loses power, and X: nobody leads without the promises of both n2 and n3. First n2 and
//! then n1 ask n3 to lead, and both requests are lost. From then on n1 and n2 stand in turns, each before the other's
//! attempt is over. They must not pass over n3 in every attempt. (n3 itself stands last.)

use trireme_group::Preference;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DeferralOutlivesAttempt],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan.nodes[N3].preference = Preference::Never;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N2], &[N1, N3]);
    // n1 flushes nothing more.
    stage.hang(N1, 60_000);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.check("n2 has it not", stage.holds(N2, x).is_none())?;
    stage.lose_power(N1);
    stage.hang(N1, 0);
    stage.part(&[N1], &[N3]);
    stage.start(N1);
    stage.check("n1 has lost it", stage.holds(N1, x).is_none())?;
    // Each attempt that fails gives the next one more time.
    stage.pass_ms(3_000);
    stage.join(&[N1], &[N2]);
    stage.heal(&[N2], &[N3]);
    // Held messages to n2 arrive within 200 ms.
    for (candidate, ms) in [(N2, 250), (N1, 10)] {
        let asked = "n3 has promised the candidate";
        stage.until(asked, |s| s.has_promised(N3, candidate))?;
        stage.heal(&[N3], &[N2]);
        stage.cut(&[candidate], &[N3]);
        stage.pass_ms(ms);
        stage.reset(candidate, N3);
        stage.heal(&[candidate], &[N3]);
        stage.join(&[N1], &[N3]);
    }
    Ok(())
}
