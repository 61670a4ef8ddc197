//! Once the faults are over, nothing waits for ever (liveness; rules 7, 10, 15).
//!
//! After all nodes have had time to converge, the world reports everything that still waits: a client for its answer,
//! an applier for its turn, a joiner for its state, a node for its component.

use super::Invariant;
use super::logs::name;
use crate::seen::{Seen, Sight};

/// The invariant of this module.
pub struct NobodyWaits;

impl Invariant for NobodyWaits {
    fn name(&self) -> &'static str {
        "nobody-waits"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        match &sight.what {
            Seen::Waiting { what } => Err(format!("{}: {what}", name(sight.node))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::story::Story;
    use crate::seen::Seen;

    #[test]
    fn somebody_waits() {
        let mut story = Story::logs();
        let what = "client 3 waits for certify of 17".to_owned();
        story
            .see(1, Seen::Waiting { what })
            .violates("nobody-waits");
    }
}
