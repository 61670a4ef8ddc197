//! Within one term, a member holds all entries that it has acknowledged (rules 1, 4).
//!
//! A leader counts an acknowledgement for good: an entry committed with it must stay in that log as long as the term
//! is in force. Another term's leader may cut the log or start it anew lower down. A process that continues an
//! earlier process's log, and claims to be intact, holds all entries that the earlier one acknowledged and did not
//! drop.

use trireme_group::{Position, Term};

use super::Invariant;
use super::logs::name;
use crate::seen::{NodeId, Seen, Sight};

/// The acknowledgements of a data directory.
#[derive(Default)]
struct Held {
    /// The last acknowledgement.
    acknowledged: (Term, Position),
    in_force: Term,
    /// Last position acknowledged in any term, and not dropped since by another term.
    upto: Position,
}

/// The invariant of this module.
#[derive(Default)]
pub struct AcknowledgementsHeld {
    nodes: Vec<Held>,
}

impl AcknowledgementsHeld {
    fn of(&mut self, node: NodeId) -> &mut Held {
        if self.nodes.len() <= node {
            self.nodes.resize_with(node + 1, Held::default);
        }
        &mut self.nodes[node]
    }

    /// Checks a log that ends at `after` now.
    fn is_cut(&mut self, node: NodeId, after: Position, how: &str) -> Result<(), String> {
        let held = self.of(node);
        let (term, position) = held.acknowledged;
        if term == held.in_force && after < position {
            return Err(format!(
                "{}'s log {how} {after} in term {term}, in which it has acknowledged {position}",
                name(node)
            ));
        }
        held.upto = held.upto.min(after);
        Ok(())
    }
}

impl Invariant for AcknowledgementsHeld {
    fn name(&self) -> &'static str {
        "acknowledgements-held"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let node = sight.node;
        match &sight.what {
            Seen::InForce { term } => self.of(node).in_force = *term,
            Seen::Acknowledged { term, position } => {
                let held = self.of(node);
                let before = Some(held.acknowledged).filter(|(last, _)| last == term);
                // A restarted process begins with 0.
                let upto = before.map_or(0, |(_, upto)| upto);
                held.acknowledged = (*term, upto.max(*position));
                held.upto = held.upto.max(*position);
            }
            Seen::Truncated { after } => return self.is_cut(node, *after, "is cut above"),
            Seen::BeganAnew { checkpoint } => {
                let held = self.of(node);
                // A process that has just started only reports the log that it found.
                if held.in_force != Term::default() {
                    return self.is_cut(node, checkpoint.position, "begins anew at");
                }
            }
            Seen::Started { .. } => self.of(node).in_force = Term::default(),
            Seen::Resumed { end } => {
                let held = self.of(node);
                match *end {
                    Some(end) if end < held.upto => {
                        return Err(format!(
                            "rule 4: {} goes on with a log that ends at {end} and says that nothing is missing; it has \
                             acknowledged {}",
                            name(node),
                            held.upto
                        ));
                    }
                    Some(_) => {}
                    None => *held = Held::default(),
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::story::*;
    use crate::seen::Seen;

    const NAME: &str = "acknowledgements-held";

    fn acknowledged(story: &mut Story, number: u64, position: u64) {
        let term = term(number);
        story.see(1, Seen::InForce { term });
        story.see(1, Seen::Acknowledged { term, position });
    }

    fn truncated(story: &mut Story, number: u64, after: u64) {
        let term = term(number);
        story.see(1, Seen::InForce { term });
        story.see(1, Seen::Truncated { after });
    }

    fn restart(story: &mut Story) {
        story.see(1, Seen::Stopped { clean: false });
        story.see(1, Seen::Started { database: NOWHERE });
    }

    fn acknowledged_6() -> Story {
        let mut story = Story::logs();
        story.append(1, entry(6, term(1), submission(1, 2, "c")));
        acknowledged(&mut story, 1, 6);
        story
    }

    #[test]
    fn another_term_may_cut_what_was_acknowledged() {
        let mut story = acknowledged_6();
        truncated(&mut story, 2, 5);
        story.is_clean();
        let mut story = acknowledged_6();
        truncated(&mut story, 1, 5);
        story.violates(NAME);
    }

    #[test]
    fn the_same_term_installs_nothing_below() {
        let install = |number: u64| {
            let mut story = acknowledged_6();
            let term = term(number);
            story.see(1, Seen::InForce { term });
            story.begins_anew(1, 5, 1, view(2, &[0, 1, 2]));
            story
        };
        install(2).is_clean();
        install(1).violates(NAME);
    }

    #[test]
    fn who_has_forgotten_nothing_comes_back_with_all() {
        let comes_back = |end: Option<u64>| {
            let mut story = acknowledged_6();
            restart(&mut story);
            story.see(1, Seen::Resumed { end });
            story
        };
        comes_back(Some(6)).is_clean();
        comes_back(None).is_clean();
        comes_back(Some(5)).violates(NAME);
        let mut story = acknowledged_6();
        truncated(&mut story, 2, 5);
        restart(&mut story);
        story.see(1, Seen::Resumed { end: Some(5) });
        story.is_clean();
    }
}
