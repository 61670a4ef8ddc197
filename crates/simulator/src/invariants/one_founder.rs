//! If nodes found a cluster without a chosen node, exactly one of them founds it (`docs/protocol.md`, "Founding
//! without choosing a node").
//!
//! Two founders would make two clusters with one configuration, and each may have acknowledged commits. A founder
//! that dies before it has told anyone has founded nothing.

use trireme_group::Uuid;

use super::Invariant;
use super::logs::name;
use crate::seen::{NodeId, Seen, Sight, TimeUs};

/// The invariant of this module.
#[derive(Default)]
pub struct OneFounder {
    first: Option<Founding>,
    /// Histories whose founders died during the founding, so that nobody has heard of them.
    stillborn: Vec<Uuid>,
}

struct Founding {
    node: NodeId,
    at_us: TimeUs,
    history: Uuid,
}

impl OneFounder {
    /// Err: a process has heard of a history whose founder was believed dead before it could tell anyone.
    fn heard_of(&self, node: NodeId, history: Uuid) -> Result<(), String> {
        match self.stillborn.contains(&history) {
            true => Err(format!(
                "{} goes on with {history}, whose founder died as it founded it",
                name(node)
            )),
            false => Ok(()),
        }
    }
}

impl Invariant for OneFounder {
    fn name(&self) -> &'static str {
        "one-founder"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let node = sight.node;
        match &sight.what {
            Seen::Supported { history } => {
                if let Some(first) = &self.first {
                    let (founder, before) = (name(first.node), first.history);
                    let text = format!("{} founds {history}, and {founder}", name(node));
                    return Err(format!("{text} had founded {before}"));
                }
                self.first = Some(Founding {
                    node,
                    at_us: sight.at_us,
                    history: *history,
                });
            }
            Seen::Stopped { clean: false } => {
                let dies = |first: &mut Founding| first.node == node && first.at_us == sight.at_us;
                let stillborn = self.first.take_if(dies);
                self.stillborn.extend(stillborn.map(|first| first.history));
            }
            Seen::BeganAnew { checkpoint } => return self.heard_of(node, checkpoint.history),
            Seen::Ordered { history, .. } => return self.heard_of(node, *history),
            _ => {}
        }
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
