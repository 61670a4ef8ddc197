//! Two of three nodes die within DDL; the third is away, and has executed it once or not at all (rule 13).
//!
//! n2 and n3 come back, and one of them executes the DDL again. If they had executed it, but did not know so, and the
//! statement swaps names, the second execution undoes the first, without an error. n1 has told its client that the DDL is
//! done, and then it dies, or is only cut off; or it was away from the beginning. Its database may differ from that of the
//! others, so it must take a snapshot. The seed decides on n1, on the statement and on the moment of the kill.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::plan::Plan;
use crate::server::{Ddl, Errand, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[
        Mutant::ChoiceNotNoted,
        Mutant::ChoiceMissed,
        Mutant::BegunCountsAsEnded,
    ],
    plan,
    play,
};

/// The nodes that die within the DDL.
pub(super) const SLOW: [usize; 2] = [N2, N3];

/// The absence of n1 while the others die.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// It dies when it has executed the DDL.
    Dies,
    /// It is cut off when it has executed the DDL.
    IsCutOff,
    /// It died before the DDL.
    WasDead,
}

/// The statement, and the moment at which the others die.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    /// It swaps names, and they have executed it.
    Swapped,
    /// It creates something, and they have executed it.
    Created,
    /// It swaps names, and they have begun.
    Begun,
}

/// Three nodes, two of them slow within DDL.
pub(super) fn plan(seed: u64) -> Plan {
    let mut plan = recovering(3, seed);
    plan.nodes[N1].server.speed.ddl_us = Span(2_000, 2_000);
    for node in SLOW {
        plan.nodes[node].server.speed.ddl_us = Span(5_000_000, 5_000_000);
        plan.nodes[node].server.speed.stage_us = Span(10_000, 10_000);
    }
    plan
}

/// Plays until n2 and n3 are primary again after their death within the DDL, without n1.
pub(super) fn two_die(stage: &mut Stage, n1: Absence, death: Death) -> Play {
    stage.formed()?;
    stage.pass_ms(2_000);
    let before = stage.digest(N2);
    let two = |s: &Stage| SLOW.iter().all(|node| s.members(*node) == 2);
    let statement = Errand {
        ddl: Some(0),
        effect: match death {
            Death::Created => Ddl::Once,
            Death::Swapped | Death::Begun => Ddl::Each,
        },
        ..Errand::default()
    };
    if n1 == Absence::WasDead {
        stage.crash(N1, false);
        stage.until("the others go on without n1", two)?;
        stage.errand(N2, statement);
    } else {
        let action = stage.errand(N1, statement);
        stage.until("n1 has told its client", |s| s.acknowledged(action))?;
        match n1 {
            Absence::IsCutOff => stage.part(&[N1], &SLOW),
            _ => stage.crash(N1, false),
        }
        stage.until("the others go on without n1", two)?;
    }
    match death {
        Death::Begun => stage.pass_ms(500),
        Death::Swapped | Death::Created => stage.until("they have executed it", |s| {
            SLOW.iter().all(|node| s.digest(*node) != before)
        })?,
    }
    for node in SLOW {
        stage.crash(node, false);
    }
    for node in SLOW {
        stage.start(node);
    }
    stage.until("they are primary", two)
}

/// Plays until these nodes have applied a write, and compares them.
pub(super) fn are_alike(stage: &mut Stage, nodes: &[usize]) -> Play {
    stage.until("all serve", |s| s.serve(nodes))?;
    let after = stage.write(N1, &[row(1)]);
    stage.until("a write afterwards", |s| {
        nodes.iter().all(|node| s.has_applied(*node, after))
    })?;
    let digest = stage.digest(N1);
    let is_alike = nodes.iter().all(|node| stage.digest(*node) == digest);
    stage.must("all databases are alike", is_alike);
    Ok(())
}

fn play(stage: &mut Stage) -> Play {
    let n1 = match stage.world.plan.seed % 3 {
        0 => Absence::Dies,
        1 => Absence::IsCutOff,
        _ => Absence::WasDead,
    };
    let death = match (stage.world.plan.seed + stage.world.plan.seed / 3) % 3 {
        0 => Death::Swapped,
        1 => Death::Created,
        _ => Death::Begun,
    };
    two_die(stage, n1, death)?;
    stage.until("both serve", |s| s.serve(&SLOW))?;
    if n1 == Absence::IsCutOff {
        stage.join(&[N1], &SLOW);
        stage.pass_ms(5_000); // it leaves, and comes back
    }
    stage.start(N1);
    are_alike(stage, &[N1, N2, N3])
}
