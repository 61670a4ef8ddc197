//! This process's place in the component: outside, primary, or without a majority; its way in and out.
//!
//! Comes in: views that seat it or leave it out, majorities lost. Goes out: what it believes about itself. Holds: the way back
//! from non-primary is a view that is newer than the one it was left in; who has left for good stays outside.

use std::collections::BTreeSet;

use crate::configuration::Member;
use crate::ids::{Incarnation, TimeMs};
use crate::known::Known;
use crate::leaving::Leaving;
use crate::majority::Majority;
use crate::message::Standing;
use crate::peer::Peer;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Component {
    state: Standing,
    /// It began with a log, and was in no view yet since.
    resumed: bool,
    /// Another process is seated for the own data directory (rule 14).
    is_copy: bool,
    /// View number known when non-primary was declared; 0: never was in a view.
    left_number: u64,
    /// Who was shown as the non-primary component last.
    shown: Vec<Incarnation>,
    /// Members that the replicated state calls joined.
    joined: BTreeSet<Incarnation>,
    join_sent_at: TimeMs,
    leaving: Option<Leaving>,
    /// Since when a majority was heard, or missed.
    majority: Majority,
    /// Has left for good: it never asks to be admitted again under this incarnation.
    gone: bool,
}

impl Component {
    pub(crate) fn new(now: TimeMs) -> Component {
        Component {
            state: Standing::default(),
            resumed: false,
            is_copy: false,
            left_number: 0,
            shown: Vec::new(),
            joined: BTreeSet::new(),
            join_sent_at: 0,
            leaving: None,
            majority: Majority::new(now),
            gone: false,
        }
    }

    // ---- what everybody may ask ----

    pub(crate) fn state(&self) -> Standing {
        self.state
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.state == Standing::Primary
    }

    pub(crate) fn is_non_primary(&self) -> bool {
        self.state == Standing::NonPrimary
    }

    pub(crate) fn is_outside(&self) -> bool {
        self.state == Standing::Outside
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

    /// It is on its way out, or has left.
    pub(crate) fn is_going(&self) -> bool {
        self.is_leaving() || self.gone
    }

    pub(crate) fn left_number(&self) -> u64 {
        self.left_number
    }

    pub(crate) fn has_joined(&self, member: Incarnation) -> bool {
        self.joined.contains(&member)
    }

    pub(crate) fn majority(&self) -> &Majority {
        &self.majority
    }

    // ---- what the coordinator tells ----

    pub(crate) fn majority_mut(&mut self) -> &mut Majority {
        &mut self.majority
    }

    /// The process goes on with a log of an earlier one.
    pub(crate) fn resume(&mut self) {
        self.state = Standing::NonPrimary;
        self.resumed = true;
    }

    /// Any later view than this one that seats this process is its way back.
    pub(crate) fn left_in(&mut self, number: u64) {
        self.left_number = number;
    }

    /// A view that was never committed was not left.
    pub(crate) fn left_at_most_in(&mut self, number: u64) {
        self.left_number = self.left_number.min(number);
    }

    /// A view with this number seats this process: true if it is primary by that.
    pub(crate) fn admit(&mut self, number: u64) -> bool {
        let admits = number > self.left_number && !self.gone && !self.is_primary();
        if admits {
            self.state = Standing::Primary;
            self.resumed = false;
            self.is_copy = false;
        }
        admits
    }

    /// The majority is lost, or the others have gone on without this process, which knew of this view; false: it was not primary.
    pub(crate) fn stop_being_primary(&mut self, latest_number: u64) -> bool {
        let was_primary = self.is_primary();
        if was_primary {
            self.state = Standing::NonPrimary;
            self.left_number = latest_number;
            self.shown.clear();
        }
        was_primary
    }

    /// The non-primary component as it is now; true if it was shown otherwise before.
    fn show(&mut self, names: Vec<Incarnation>) -> bool {
        let is_new = names != self.shown;
        self.shown = names;
        is_new
    }

    /// Members of the last view that are reachable and have no majority either, if that was shown otherwise (rule 20). The others
    /// lose the same majority some heartbeats sooner or later: until then they count.
    pub(crate) fn reachable(&mut self, known: Known) -> Option<Vec<Member>> {
        if !self.is_non_primary() {
            return None;
        }
        let (me, now, config) = (known.me(), known.now(), known.context.config());
        let speaks = |peer: &Peer| now < peer.heard_at + config.suspect_timeout_ms;
        let just_lost = self.majority.was_just_lost(now, 3 * config.heartbeat_ms);
        let with_me = |m: &&Member| {
            let peer = known.peers.get(m.incarnation).filter(|p| p.up);
            let status = peer.and_then(|p| p.status.as_ref());
            m.incarnation == me
                || status.is_some_and(|s| s.standing == Standing::NonPrimary)
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

    /// Another, living, process sits in this data directory's seat.
    pub(crate) fn found_to_be_a_copy(&mut self) {
        self.is_copy = true;
    }

    /// The replicated state says who has joined.
    pub(crate) fn set_joined(&mut self, members: Vec<Incarnation>) {
        self.joined = members.into_iter().collect();
    }

    /// Who is removed, and admitted again, has to join again.
    pub(crate) fn keep_joined(&mut self, is_member: impl Fn(Incarnation) -> bool) {
        self.joined.retain(|member| is_member(*member));
    }

    /// Admission may be asked for, again after this time.
    pub(crate) fn may_ask_to_join(&self, now: TimeMs, retry_ms: TimeMs) -> bool {
        !self.is_primary() && !self.is_going() && now >= self.join_sent_at + retry_ms
    }

    pub(crate) fn asked_to_join(&mut self, now: TimeMs) {
        self.join_sent_at = now;
    }

    /// It is to leave; false: it does so already.
    pub(crate) fn leave(&mut self, now: TimeMs) -> bool {
        let begins = self.leaving.is_none();
        self.leaving.get_or_insert_with(|| Leaving::since(now));
        begins
    }

    /// How far it has got with leaving, to go on with ([`Component::go_on_leaving`]).
    pub(crate) fn take_leaving(&mut self) -> Option<Leaving> {
        self.leaving.take()
    }

    pub(crate) fn go_on_leaving(&mut self, leaving: Leaving) {
        self.leaving = Some(leaving);
    }

    /// It has left for good.
    pub(crate) fn has_left(&mut self) {
        self.leaving = None;
        self.state = Standing::Outside;
        self.gone = true;
    }

    /// Ages of stamps, for the model check.
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
