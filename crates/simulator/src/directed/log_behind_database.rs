//! Databases hold commits that no log holds any more (rules 4, 5 and 24): the log is behind the database.
//!
//! n1 and n2 have X, n3 does not; Y is in n2's database and in n1's log. Both machines lose power (`os`). The commits
//! that InnoDB has flushed by itself stay, but their logs end below X. All three members are there, but X is in no
//! log: they must not give its seqno to another entry. The operator bootstraps n1, which goes on above its database
//! and not above its log. n2's database is ahead of that, and is replaced.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, Play, Stage, patient, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[
        Mutant::AmnesiacCountsAsIntact,
        Mutant::LogOutranksDatabase,
        Mutant::ForkedDatabaseUsed,
    ],
    plan: |seed| patient(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    let everywhere = |s: &Stage| s.acknowledged(x) && s.has_applied(N2, x);
    stage.until("n1 and n2 have X", everywhere)?;
    stage.slow_appliers(N1, 10_000);
    let y = stage.write(N2, &[row(2)]);
    stage.until("Y is committed", |s| s.acknowledged(y))?;
    stage.check("n1 is behind", !stage.has_applied(N1, y))?;
    let at = stage.holds(N1, x).unwrap_or(0);
    for node in [N1, N2] {
        stage.lose_power(node);
    }
    stage.join(&[N3], &[N1, N2]);
    for node in [N1, N2] {
        stage.start(node);
        let end = stage.end(node);
        stage.check("its log ends below X", (1..at).contains(&end))?;
    }
    stage.check("n3's, too", stage.end(N3) < at)?;
    stage.pass_ms(4_000);
    let waits = [N1, N2, N3].iter().all(|node| !stage.is_leading(*node));
    stage.check("they wait for the operator", waits)?;
    for node in [N1, N2, N3] {
        stage.crash(node, false);
    }
    let position = |s: &Stage, node: usize| -> Option<i64> {
        let datadir = s.world.machines[node].datadir.as_ref()?;
        Some(datadir.position().seqno)
    };
    let [first, second, third] = [N1, N2, N3].map(|node| position(stage, node));
    stage.check("X is in n1's database", third < first)?;
    stage.check("Y is in n2's only", first < second)?;
    stage.world.machines[N1].bootstrap = true;
    stage.start(N1);
    stage.pass_ms(1_000);
    let synced = |s: &Stage, node| s.state(node) == Some(LocalState::Synced);
    stage.must("n1 goes on with its database", synced(stage, N1));
    let z = stage.write(N1, &[row(1)]);
    stage.until("n1 serves", |s| s.acknowledged(z))?;
    stage.start(N2);
    stage.start(N3);
    stage.until("the others are back", |s| synced(s, N2) && synced(s, N3))
}
