//! A node saves its position when it disconnects, and the machine loses power before the database has flushed that far.
//!
//! The next process is told the database's position. It finds neither its log nor the others, and stops. The process after
//! it is started without a position: it must not rely on what grastate.dat said before the loss of power.

use super::{Directed, N1, N3, Play, Stage, recovering, row};
use crate::fault::Fault;
use crate::given_up::Attempt;
use crate::server::Flush;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.unrecovered_percent = 100;
        for node in &mut plan.nodes {
            node.server.flush = Flush::EachSecond;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    // A loss of power takes all commits after a random point of the last second.
    for _ in 0..100 {
        let last = stage.write(N1, &[row(1)]);
        stage.until("a write", |s| s.has_applied(N3, last))?;
    }
    stage.strike(Fault::Reconnect {
        node: N3,
        for_us: 5_000_000,
    });
    stage.until("n3 has disconnected", |s| s.members(N1) == 2)?;
    stage.pass_ms(10);
    stage.strike(Fault::GiveUp {
        node: N3,
        attempts: vec![Attempt {
            wait_us: 300_000,
            again_us: 100_000,
            alone: true,
            unmounted: true,
        }],
    });
    stage.lose_power(N3);
    stage.start(N3);
    stage.until("n3 gives up", |s| s.process(N3).is_none())?;
    stage.start(N3);
    stage.until("n3 is back", |s| s.serves(N3))
}
