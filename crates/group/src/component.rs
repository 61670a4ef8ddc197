//! The component state of this process: outside (joining or left), primary, or non-primary; and its joining and
//! leaving.
//!
//! In: views that list or omit this process, losses of the majority. Out: the component state. Only a view newer than
//! the one in which the process became non-primary makes it primary again. A process that has left stays outside.

use std::collections::BTreeSet;

use trireme_mutants::{Mutant, planted};

use crate::configuration::Member;
use crate::context::Context;
use crate::ids::{Incarnation, TimeMs};
use crate::known::Known;
use crate::leaving::Leaving;
use crate::majority::Majority;
use crate::message::ComponentState;
use crate::peer::Peer;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Component {
    state: ComponentState,
    /// True if this process began with a log, and no view has admitted it since.
    resumed: bool,
    /// True if the configuration lists another process of this replica id (rule 14).
    is_copy: bool,
    /// Number of the newest view when this process became non-primary; 0: it never was in a view.
    left_number: u64,
    /// Members of the non-primary component that was reported last.
    shown: Vec<Incarnation>,
    /// Members that have joined, as the control state says.
    joined: BTreeSet<Incarnation>,
    join_sent_at: TimeMs,
    /// When this member last asked for its weight.
    weight_sent_at: TimeMs,
    leaving: Option<Leaving>,
    /// When this process last heard a majority, or since when it misses one.
    majority: Majority,
    /// True once this process has left for good: it never requests admission again under this incarnation.
    gone: bool,
}

impl Component {
    pub(crate) fn new(now: TimeMs) -> Component {
        Component {
            state: ComponentState::default(),
            resumed: false,
            is_copy: false,
            left_number: 0,
            shown: Vec::new(),
            joined: BTreeSet::new(),
            join_sent_at: 0,
            weight_sent_at: 0,
            leaving: None,
            majority: Majority::new(now),
            gone: false,
        }
    }

    // ---- queries ----

    pub(crate) fn state(&self) -> ComponentState {
        self.state
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.state == ComponentState::Primary
    }

    pub(crate) fn is_non_primary(&self) -> bool {
        self.state == ComponentState::NonPrimary
    }

    pub(crate) fn is_outside(&self) -> bool {
        self.state == ComponentState::Outside
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed
    }

    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// True if this process is leaving, or has left.
    pub(crate) fn is_going(&self) -> bool {
        self.is_leaving() || self.gone
    }

    pub(crate) fn left_number(&self) -> u64 {
        self.left_number
    }

    pub(crate) fn has_joined(&self, member: Incarnation) -> bool {
        self.joined.contains(&member)
    }

    /// True if a leader that had lost its majority hears one again. It then waits for the missing members as long as a
    /// new leader does. A new view without them would close their streaming transactions, and keep those of the others
    /// open.
    pub(crate) fn is_majority_back(&self, context: &Context) -> bool {
        let timeout_ms = context.config().suspect_timeout_ms;
        self.majority().is_silent(context.now(), timeout_ms)
    }

    /// True for a leader that hears no majority, and has heard none for so long that its followers know of the loss. False
    /// while a forced view is pending, which needs nobody but its members and would not be made without its leader.
    pub(crate) fn is_lonely(&self, known: Known) -> bool {
        let config = known.context.config();
        let told_ms = config.suspect_timeout_ms + config.leader_timeout_ms;
        self.is_non_primary()
            && self.majority().is_silent(known.now(), told_ms)
            && !known.hears_every_majority(config.leader_timeout_ms)
            && !known.log.is_override_pending()
            && !planted(Mutant::LonelyLeaderObeyed)
    }

    pub(crate) fn majority(&self) -> &Majority {
        &self.majority
    }

    // ---- inputs from the coordinator ----

    pub(crate) fn majority_mut(&mut self) -> &mut Majority {
        &mut self.majority
    }

    /// This process goes on with the log of an earlier one.
    pub(crate) fn resume(&mut self) {
        self.state = ComponentState::NonPrimary;
        self.resumed = true;
    }

    /// Any later view than this one that lists this process makes it primary again.
    pub(crate) fn left_in(&mut self, number: u64) {
        self.left_number = number;
    }

    /// The log ends with this view now. A later view was never committed, so the process did not leave it.
    pub(crate) fn left_at_most_in(&mut self, number: u64) {
        self.left_number = self.left_number.min(number);
    }

    /// A view with this number lists this process. Returns true if that makes it primary.
    pub(crate) fn admit(&mut self, number: u64) -> bool {
        let admits = number > self.left_number && !self.gone && !self.is_primary();
        if admits {
            self.state = ComponentState::Primary;
            self.resumed = false;
            self.is_copy = false;
        }
        admits
    }

    /// The majority is lost, or the others have gone on without this process. `latest_number`: the newest view that it
    /// knows. Returns false if it was not primary.
    pub(crate) fn stop_being_primary(&mut self, latest_number: u64) -> bool {
        let was_primary = self.is_primary();
        if was_primary {
            self.state = ComponentState::NonPrimary;
            self.left_number = latest_number;
            self.shown.clear();
        }
        was_primary
    }

    /// Notes the non-primary component as it is now. Returns true if the last report differs.
    fn show(&mut self, names: Vec<Incarnation>) -> bool {
        let is_new = names != self.shown;
        self.shown = names;
        is_new
    }

    /// Returns the members of the last view that are reachable and have no majority either (rule 20); None if the last
    /// report says the same. The others lose the majority some heartbeats sooner or later: for three heartbeats all
    /// reachable members count.
    pub(crate) fn reachable(&mut self, known: Known) -> Option<Vec<Member>> {
        if !self.is_non_primary() {
            return None;
        }
        let (me, config) = (known.me(), known.context.config());
        let speaks = |peer: &Peer| known.hears(config.suspect_timeout_ms, peer);
        let just_lost = (self.majority).was_just_lost(known.now(), 3 * config.heartbeat_ms);
        let with_me = |m: &&Member| {
            let peer = known.peers.get(m.incarnation).filter(|p| p.up);
            let status = peer.and_then(|p| p.status.as_ref());
            m.incarnation == me
                || status.is_some_and(|s| s.component_state == ComponentState::NonPrimary)
                || (just_lost && peer.is_some_and(speaks))
        };
        let members = known.log.committed().configuration.members.iter();
        let mut component: Vec<Member> = members.filter(with_me).cloned().collect();
        if !component.iter().any(|m| m.incarnation == me) {
            component.push(config.me.clone());
            component.sort_by_key(|m| m.incarnation);
        }
        let names = component.iter().map(|m| m.incarnation).collect();
        self.show(names).then_some(component)
    }

    /// The configuration lists another, living process of this replica id.
    pub(crate) fn found_to_be_a_copy(&mut self) {
        self.is_copy = true;
    }

    /// Takes the list of joined members from the control state.
    pub(crate) fn set_joined(&mut self, members: Vec<Incarnation>) {
        self.joined = members.into_iter().collect();
    }

    /// Forgets removed members: after another admission they must join again.
    pub(crate) fn keep_joined(&mut self, is_member: impl Fn(Incarnation) -> bool) {
        self.joined.retain(|member| is_member(*member));
    }

    /// True if this process may request admission now; it repeats the request after `retry_ms`.
    pub(crate) fn may_ask_to_join(&self, now: TimeMs, retry_ms: TimeMs) -> bool {
        !self.is_primary() && !self.is_going() && now >= self.join_sent_at + retry_ms
    }

    pub(crate) fn asked_to_join(&mut self, now: TimeMs) {
        self.join_sent_at = now;
    }

    /// True, once in `retry_ms`, if a request for another weight may be repeated.
    pub(crate) fn is_weight_due(&mut self, now: TimeMs, retry_ms: TimeMs) -> bool {
        let is_due = now >= self.weight_sent_at + retry_ms;
        if is_due {
            self.weight_sent_at = now;
        }
        is_due
    }

    /// Begins to leave. Returns false if this process is leaving already.
    pub(crate) fn leave(&mut self, now: TimeMs) -> bool {
        let begins = self.leaving.is_none();
        self.leaving.get_or_insert_with(|| Leaving::since(now));
        begins
    }

    /// Takes out the progress of leaving; [`Component::go_on_leaving`] puts it back.
    pub(crate) fn take_leaving(&mut self) -> Option<Leaving> {
        self.leaving.take()
    }

    pub(crate) fn go_on_leaving(&mut self, leaving: Leaving) {
        self.leaving = Some(leaving);
    }

    /// This process has left for good.
    pub(crate) fn has_left(&mut self) {
        self.leaving = None;
        self.state = ComponentState::Outside;
        self.gone = true;
    }

    /// The time stamps, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn stamps(&mut self) -> (&mut TimeMs, Option<&mut Leaving>) {
        (&mut self.join_sent_at, self.leaving.as_mut())
    }

    #[cfg(test)]
    pub(crate) fn shown(&self) -> usize {
        self.shown.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_a_newer_view() {
        let mut component = Component::new(0);
        assert!(component.admit(3));
        assert!(!component.admit(4), "it is primary");
        assert!(component.stop_being_primary(4));
        assert!(!component.stop_being_primary(5), "it is none");
        assert!(!component.admit(4) && component.is_non_primary());
        assert!(component.admit(5) && component.is_primary());
    }

    #[test]
    fn who_has_left_stays_outside() {
        let mut component = Component::new(0);
        component.admit(1);
        assert!(component.leave(5) && !component.leave(6));
        assert!(!component.may_ask_to_join(100, 10));
        component.has_left();
        assert!(!component.admit(2) && component.is_outside());
        assert!(!component.may_ask_to_join(100, 10));
    }

    #[test]
    fn a_component_is_shown_when_it_has_changed() {
        let mut component = Component::new(0);
        component.admit(1);
        component.stop_being_primary(1);
        let names = vec![Incarnation::default()];
        assert!(component.show(names.clone()) && !component.show(names.clone()));
        component.admit(2);
        component.stop_being_primary(2);
        assert!(component.show(names), "non-primary again");
    }
}
