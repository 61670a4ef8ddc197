//! If nodes found a cluster without a chosen node, exactly one of them founds it (`docs/protocol.md`, "Founding
//! without choosing a node").
//!
//! Two founders would make two clusters with one configuration, and each may have acknowledged commits. A founder
//! that dies before it has told anyone has founded nothing, unless its log was written: then it goes on by itself.

use trireme_group::Uuid;

use super::Invariant;
use super::logs::name;
use crate::seen::{NodeId, Seen, Sight, TimeUs};

/// The invariant of this module.
#[derive(Default)]
pub struct OneFounder {
    first: Option<Founding>,
    /// Histories whose founders died during the founding, so that nobody else has heard of them.
    stillborn: Vec<(NodeId, Uuid)>,
}

struct Founding {
    node: NodeId,
    at_us: TimeUs,
    history: Uuid,
}

impl OneFounder {
    /// Err: there is another founder.
    fn founds(&mut self, founding: Founding) -> Result<(), String> {
        if let Some(first) = &self.first {
            let (founder, before) = (name(first.node), first.history);
            let (node, history) = (name(founding.node), founding.history);
            return Err(format!(
                "{node} founds {history}, and {founder} had founded {before}"
            ));
        }
        self.first = Some(founding);
        Ok(())
    }

    /// Err: a process has heard of a history whose founder died before it could tell anyone, or which comes too late.
    fn heard_of(&mut self, node: NodeId, history: Uuid, at_us: TimeUs) -> Result<(), String> {
        let known = self.stillborn.iter().position(|(_, of)| *of == history);
        let Some(known) = known else { return Ok(()) };
        let (founder, _) = self.stillborn[known];
        if node != founder {
            let node = name(node);
            return Err(format!(
                "{node} goes on with {history}, whose founder died as it founded it"
            ));
        }
        self.stillborn.remove(known);
        self.founds(Founding {
            node,
            at_us,
            history,
        })
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
                return self.founds(Founding {
                    node,
                    at_us: sight.at_us,
                    history: *history,
                });
            }
            Seen::Stopped { clean: false } => {
                let dies = |first: &mut Founding| first.node == node && first.at_us == sight.at_us;
                let stillborn = self.first.take_if(dies);
                let stillborn = stillborn.map(|first| (first.node, first.history));
                self.stillborn.extend(stillborn);
            }
            Seen::BeganAnew { checkpoint } => {
                return self.heard_of(node, checkpoint.history, sight.at_us);
            }
            Seen::Ordered { history, .. } => return self.heard_of(node, *history, sight.at_us),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::Checkpoint;

    use super::*;
    use crate::invariants::story::Story;

    fn founds(fill: u8) -> Seen {
        let history = Uuid([fill; 16]);
        Seen::Supported { history }
    }

    fn goes_on_with(fill: u8) -> Seen {
        let history = Uuid([fill; 16]);
        let checkpoint = Checkpoint {
            history,
            ..Checkpoint::default()
        };
        Seen::BeganAnew { checkpoint }
    }

    /// n1 founds history 1, and dies at the same moment. Returns true if what follows is in order.
    fn may_follow(later: Vec<(NodeId, Seen)>) -> bool {
        let dies = Seen::Stopped { clean: false };
        let first = [(0, founds(1)), (0, dies)].map(|(node, what)| (5, node, what));
        let later = later.into_iter().map(|(node, what)| (6, node, what));
        let mut invariant = OneFounder::default();
        let sights = first.into_iter().chain(later);
        sights
            .map(|(at_us, node, what)| Sight { at_us, node, what })
            .all(|sight| invariant.see(&sight).is_ok())
    }

    #[test]
    fn two_founders() {
        let mut story = Story::new();
        story.see(0, founds(1)).is_clean();
        story.see(1, founds(2)).violates("one-founder");
    }

    #[test]
    fn a_founder_that_died_at_once_may_go_on_but_not_beside_another() {
        assert!(may_follow(vec![(1, founds(2)), (0, goes_on_with(2))]));
        assert!(may_follow(vec![(0, goes_on_with(1)), (1, goes_on_with(1))]));
        assert!(!may_follow(vec![(0, goes_on_with(1)), (1, founds(2))]));
        assert!(!may_follow(vec![(1, founds(2)), (0, goes_on_with(1))]));
        assert!(!may_follow(vec![(1, goes_on_with(1))]), "it told nobody");
    }
}
