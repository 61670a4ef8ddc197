//! The state that every part of a node may read: clock, options, its own name, and the control state. The coordinator writes it;
//! parts get it as `&Context`.

use trireme_certification::Seqno;
use trireme_group::{Configuration, Incarnation, Member, Uuid};
use trireme_mutants::{Mutant, planted};

use crate::control::Control;
use crate::member_state::{MemberState, NodeState};
use crate::options::Options;

#[derive(Debug)]
pub(crate) struct Context {
    now_ms: u64,
    options: Options,
    /// This node's name in this connection; submissions carry it.
    me: Incarnation,
    /// Its name in the connection before.
    me_before: Incarnation,
    /// This node as the others see it.
    my_member: Member,
    /// None: not known, no connection or not in step with the group.
    control: Option<Control>,
}

impl Context {
    pub(crate) fn new(options: Options) -> Context {
        Context {
            now_ms: 0,
            options,
            me: Incarnation::default(),
            me_before: Incarnation::default(),
            my_member: Member::default(),
            control: None,
        }
    }

    /// The clock never goes back.
    pub(crate) fn advance(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// A new connection begins.
    pub(crate) fn connect(&mut self, me: Incarnation, my_member: Member) {
        self.me_before = std::mem::replace(&mut self.me, me);
        self.my_member = my_member;
    }

    pub(crate) fn me(&self) -> Incarnation {
        self.me
    }

    /// This node's name in the connection before; nil: there was none.
    pub(crate) fn me_before(&self) -> Incarnation {
        self.me_before
    }

    pub(crate) fn my_member(&self) -> &Member {
        &self.my_member
    }

    pub(crate) fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// For the delivery of entries only.
    pub(crate) fn control_mut(&mut self) -> Option<&mut Control> {
        self.control.as_mut()
    }

    /// Gives the control state that was there before.
    pub(crate) fn set_control(&mut self, control: Option<Control>) -> Option<Control> {
        std::mem::replace(&mut self.control, control)
    }

    /// The configuration in force; empty: not known.
    pub(crate) fn configuration(&self) -> Configuration {
        (self.control.as_ref()).map_or_else(Configuration::default, |c| c.configuration.clone())
    }

    /// The cluster's uuid, if the control state is known.
    pub(crate) fn history(&self) -> Option<Uuid> {
        self.control.as_ref().map(|c| c.history)
    }

    /// Last seqno ordered, as far as this node has certified.
    pub(crate) fn seqno(&self) -> Option<Seqno> {
        self.control.as_ref().map(Control::seqno)
    }

    /// This node's member state; None if it is no member.
    pub(crate) fn my_state(&self) -> Option<&MemberState> {
        self.control.as_ref()?.members.get(&self.me)
    }

    /// This node's place in the replicated state machine; None if it is no member.
    pub(crate) fn my_node_state(&self) -> Option<NodeState> {
        self.my_state().map(|state| state.state)
    }

    /// This node holds the log and no database: what is delivered counts as applied.
    pub(crate) fn is_arbitrator(&self) -> bool {
        self.my_member.arbitrator
    }

    /// Nobody waits for what this node has applied, or asks how that ended.
    pub(crate) fn abstains(&self) -> bool {
        self.is_arbitrator() && !planted(Mutant::ArbitratorVotes)
    }

    /// "index (name)" as the log lines have it.
    pub(crate) fn name_of(&self, incarnation: Incarnation) -> String {
        let Some(control) = &self.control else {
            return incarnation.to_string(); // only what was delivered is spoken of
        };
        let configuration = &control.configuration;
        match (
            configuration.index_of(incarnation),
            configuration.member(incarnation),
        ) {
            (Some(index), Some(member)) => format!("{index}.{} ({})", member.segment, member.name),
            _ => incarnation.to_string(),
        }
    }
}
