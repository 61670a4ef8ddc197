//! One primary component at a time (rules 3, 10, 20).
//!
//! Members learn of a view one after another. So at one moment two may call themselves primary in different views;
//! then entries of the older view's leader commit nowhere, and `prefix` would show it if they did. Along one history:
//! - a view number names one membership, and views are numbered one by one;
//! - a new member has no vote in its first view (rule 3: no commit may need a joiner);
//! - a view with the members of the one before is made only if a member declared itself non-primary: a leader change
//!   makes no view (rule 2), because a view rolls back streaming transactions;
//! - a member that calls itself primary has delivered that very view;
//! - a member that has declared itself non-primary is primary again only in a later view;
//! - in the end all living nodes are primary, in the same view.
//!
//! An operator's override makes its own history, and so does a bootstrap (rule 11).

use trireme_group::{ComponentState, Configuration, Delivery, Incarnation, Member, Position};

use super::logs::{LineId, Logs, name};
use super::{HashMap, HashSet, Invariant, Shared};
use crate::seen::{NodeId, Seen, Sight};

/// The state of a process, as it sees itself.
#[derive(Clone, Default)]
struct Belief {
    alive: bool,
    primary: bool,
    /// The last view that it delivered, with its line.
    view: Option<(LineId, u64)>,
    /// The last view when it declared itself non-primary, with its line.
    lost: Option<(LineId, u64)>,
}

/// The invariant of this module.
pub struct OnePrimary {
    logs: Shared<Logs>,
    memberships: HashMap<(LineId, u64), Vec<Incarnation>>,
    /// The last configuration of each line, with its position.
    latest: HashMap<LineId, (Position, Configuration)>,
    /// The lines in whose last view no member has been non-primary so far.
    calm: HashSet<LineId>,
    beliefs: Vec<Belief>,
}

impl OnePrimary {
    /// An invariant that reads these logs.
    pub fn new(logs: &Shared<Logs>) -> OnePrimary {
        OnePrimary {
            logs: logs.clone(),
            memberships: HashMap::default(),
            latest: HashMap::default(),
            calm: HashSet::default(),
            beliefs: Vec::new(),
        }
    }

    fn of(&mut self, node: NodeId) -> &mut Belief {
        if self.beliefs.len() <= node {
            self.beliefs.resize(node + 1, Belief::default());
        }
        &mut self.beliefs[node]
    }

    fn configured(&mut self, node: NodeId, configuration: &Configuration) -> Result<(), String> {
        let (number, process) = (configuration.number, name(node));
        let Some(line) = self.logs.borrow().line_of(node) else {
            return Ok(());
        };
        let before = self.of(node).view.replace((line, number));
        if let Some((_, before)) = before.filter(|(_, n)| number != *n && number != n + 1) {
            return Err(format!(
                "rule 3: {process} delivers view {number} after view {before}"
            ));
        }
        let members = configuration.members.iter().map(|m| m.incarnation);
        let known = self.memberships.get(&(line, number));
        if known.is_some_and(|known| !members.clone().eq(known.iter().copied())) {
            return Err(format!(
                "rule 3: {process} delivers another membership as view {number} than was delivered before"
            ));
        }
        if known.is_none() {
            self.memberships.insert((line, number), members.collect());
        }
        Ok(())
    }

    /// Checks a configuration that is seen for the first time on its line.
    fn follows(
        &mut self,
        node: NodeId,
        position: Position,
        configuration: &Configuration,
    ) -> Result<(), String> {
        let Some(line) = self.logs.borrow().line_of(node) else {
            return Ok(());
        };
        if (self.latest.get(&line)).is_some_and(|(at, _)| *at >= position) {
            return Ok(());
        }
        let before = (self.latest).insert(line, (position, configuration.clone()));
        let Some((_, before)) = before.filter(|_| configuration.override_id.is_none()) else {
            return Ok(());
        };
        // A restarted intact process takes the place of the one before it (rule 14).
        let is_new = |m: &Member| {
            let seat = before.member(m.incarnation).or(before.replica(m.replica));
            seat.is_none_or(|seat| seat.incarnation != m.incarnation && !seat.voter)
        };
        let mut voters = configuration.members.iter().filter(|m| m.voter);
        if let Some(voter) = voters.find(|m| is_new(m)) {
            return Err(format!(
                "rule 3: member {} votes in view {}, in which it is new",
                voter.incarnation, configuration.number
            ));
        }
        if configuration.number == before.number {
            return Ok(());
        }
        if configuration.same_members(&before) && self.calm.contains(&line) {
            return Err(format!(
                "rule 2: view {} has the members of the one before, and nobody had declared non-primary",
                configuration.number
            ));
        }
        let is_lost = |belief: &Belief| belief.alive && !belief.primary && belief.lost.is_some();
        match self.beliefs.iter().any(is_lost) {
            true => self.calm.remove(&line),
            false => self.calm.insert(line),
        };
        Ok(())
    }

    fn stands(
        &mut self,
        node: NodeId,
        component_state: ComponentState,
        view: u64,
    ) -> Result<(), String> {
        if component_state == ComponentState::NonPrimary {
            self.calm.clear();
        }
        let belief = self.of(node);
        let was_primary = belief.primary;
        belief.primary = component_state == ComponentState::Primary;
        if !belief.primary {
            if was_primary {
                belief.lost = belief.view;
            }
            return Ok(());
        }
        let Some((line, _)) = belief.view.filter(|(_, known)| *known == view) else {
            return Err(format!(
                "rule 3: {} calls itself primary in view {view}, and has delivered another one last",
                name(node)
            ));
        };
        let lost = belief.lost.filter(|_| !was_primary);
        match lost {
            Some((there, lost)) if there == line && view <= lost => Err(format!(
                "rule 10: {} declared non-primary in view {lost} and is primary again in {view}",
                name(node)
            )),
            _ => Ok(()),
        }
    }
}

impl Invariant for OnePrimary {
    fn name(&self) -> &'static str {
        "one-primary"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let node = sight.node;
        match &sight.what {
            Seen::Started { .. } => {
                *self.of(node) = Belief {
                    alive: true,
                    ..Belief::default()
                }
            }
            Seen::Stopped { .. } | Seen::Disconnected => *self.of(node) = Belief::default(),
            // A node that founds on its database goes on above every view in its earlier log, pending ones too.
            Seen::BeganAnew { .. } | Seen::Founded { .. } => self.of(node).view = None,
            Seen::Delivered {
                position,
                delivery: Delivery::Configuration(configuration),
            } => {
                self.configured(node, configuration)?;
                return self.follows(node, *position, configuration);
            }
            Seen::ComponentState {
                component_state,
                view,
                ..
            } => return self.stands(node, *component_state, *view),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let mut alive = (self.beliefs.iter().enumerate()).filter(|(_, belief)| belief.alive);
        let Some((first, one)) = alive.next() else {
            return Ok(());
        };
        let text = |node, belief: &Belief| match belief.view.filter(|_| belief.primary) {
            Some((_, view)) => format!("{} is primary in view {view}", name(node)),
            None => format!("{} is not primary", name(node)),
        };
        if !one.primary {
            return Err(format!("in the end {}", text(first, one)));
        }
        match alive.find(|(_, other)| !other.primary || other.view != one.view) {
            Some((node, other)) => {
                let (one, other) = (text(first, one), text(node, other));
                Err(format!("in the end {one}, and {other}"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::{Body, ComponentState};

    use crate::invariants::story::*;
    use crate::seen::Seen;

    const NAME: &str = "one-primary";

    #[test]
    fn clean_views_pass() {
        let mut story = Story::logs();
        story.stands(2, ComponentState::NonPrimary, 2);
        story.commit_body(&[0, 1], 6, Body::Configuration(view(3, &[0, 1])));
        story.stands(0, ComponentState::Primary, 3);
        story.stands(1, ComponentState::Primary, 3);
        story.append(2, entry(6, term(1), Body::Configuration(view(3, &[0, 1]))));
        story.deliver(2, 6, &Body::Configuration(view(3, &[0, 1])));
        story.commit_body(&[0, 1, 2], 7, Body::Configuration(view(4, &[0, 1, 2])));
        for node in 0..3 {
            story.stands(node, ComponentState::Primary, 4);
        }
        story.is_clean();
        assert_eq!(story.at_end(NAME), Ok(()));
    }

    #[test]
    fn numbers_are_not_left_out() {
        let mut story = Story::logs();
        story.commit_body(&[0], 6, Body::Configuration(view(4, &[0, 1])));
        story.violates(NAME);
    }

    #[test]
    fn one_number_for_two_memberships() {
        let mut story = Story::logs();
        story.commit_body(&[0], 6, Body::Configuration(view(2, &[0, 1])));
        story.violates(NAME);
    }

    #[test]
    fn primary_in_a_view_that_was_not_delivered() {
        let mut story = Story::logs();
        story.stands(0, ComponentState::Primary, 3).violates(NAME);
    }

    #[test]
    fn primary_again_without_a_new_view() {
        let mut story = Story::logs();
        story.stands(2, ComponentState::NonPrimary, 2);
        story.stands(2, ComponentState::Primary, 2).violates(NAME);
    }

    #[test]
    fn who_is_new_has_no_vote() {
        let mut story = Story::logs();
        let mut voting = view(3, &[0, 1, 2, 3]);
        voting.members[3].voter = true;
        let mut learning = story.clone();
        story.commit_body(&[0], 6, Body::Configuration(voting.clone()));
        story.violates(NAME);
        learning.commit_body(&[0], 6, Body::Configuration(view(3, &[0, 1, 2, 3])));
        learning.commit_body(&[0], 7, Body::Configuration(voting));
        learning.is_clean();
    }

    #[test]
    fn a_view_for_nobody() {
        let mut story = Story::logs();
        let mut wished = story.clone();
        story.commit_body(&[0], 6, Body::Configuration(view(3, &[0, 1, 2])));
        story.violates(NAME);
        wished.stands(2, ComponentState::NonPrimary, 2);
        wished.commit_body(&[0], 6, Body::Configuration(view(3, &[0, 1, 2])));
        wished.is_clean();
    }

    #[test]
    fn two_components_in_the_end() {
        let mut story = Story::logs();
        story.commit_body(&[0, 1], 6, Body::Configuration(view(3, &[0, 1])));
        assert!(story.at_end(NAME).is_err(), "n3 is still in view 2");
        story.see(2, Seen::Stopped { clean: false });
        assert_eq!(story.at_end(NAME), Ok(()), "the dead count for nothing");
        story.stands(1, ComponentState::NonPrimary, 3);
        assert!(story.at_end(NAME).is_err());
    }
}
