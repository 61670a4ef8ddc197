//! Of nodes that found a cluster without choosing one of them, one does (`docs/protocol.md`, "Founding
//! without choosing a node").
//!
//! Two would be two clusters with one configuration, and each may have acknowledged commits.

use trireme_group::Uuid;

use super::Invariant;
use super::logs::name;
use crate::seen::{NodeId, Seen, Sight};

/// See the module.
#[derive(Default)]
pub struct OneFounder {
    first: Option<(NodeId, Uuid)>,
}

impl Invariant for OneFounder {
    fn name(&self) -> &'static str {
        "one-founder"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let Seen::Supported { history } = &sight.what else {
            return Ok(());
        };
        if let Some((node, first)) = self.first {
            return Err(format!(
                "{} founds {history}, and {} had founded {first}",
                name(sight.node),
                name(node)
            ));
        }
        self.first = Some((sight.node, *history));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use crate::invariants::story::*;
    use crate::seen::Seen;

    #[test]
    fn two_founders() {
        let founds = |fill| Seen::Supported {
            history: Uuid([fill; 16]),
        };
        let mut story = Story::new();
        story.see(0, founds(1)).is_clean();
        story.see(1, founds(2)).violates("one-founder");
    }
}
