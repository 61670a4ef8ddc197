//! The state that every part of a node may read: clock, options, names, and the control state. The coordinator writes
//! it; parts get it as `&Context`.

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
    /// This node's incarnation in this connection; its submissions carry it.
    me: Incarnation,
    /// Its incarnation in the connection before.
    me_before: Incarnation,
    /// This node as a member.
    my_member: Member,
    /// The processes with which this one is connected.
    connected: Vec<Incarnation>,
    /// None: unknown, since there is no connection or the node is not in step with the group.
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
            connected: Vec::new(),
            control: None,
        }
    }

    /// Moves the clock forward, never back.
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

    /// Begins a new connection.
    pub(crate) fn connect(&mut self, me: Incarnation, my_member: Member) {
        self.me_before = std::mem::replace(&mut self.me, me);
        self.my_member = my_member;
    }

    pub(crate) fn me(&self) -> Incarnation {
        self.me
    }

    /// Returns this node's incarnation in the connection before; nil: there was none.
    pub(crate) fn me_before(&self) -> Incarnation {
        self.me_before
    }

    pub(crate) fn my_member(&self) -> &Member {
        &self.my_member
    }

    pub(crate) fn set_connected(&mut self, connected: Vec<Incarnation>) {
        self.connected = connected;
    }

    /// Returns the first other member that has a database, and with which this node is not connected.
    pub(crate) fn unconnected_database(&self) -> Option<Incarnation> {
        let members = &self.control()?.members;
        let is_missing = |id: &Incarnation| *id != self.me && !self.connected.contains(id);
        members.with_database().find(is_missing)
    }

    pub(crate) fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// Returns the control state, for the delivery of entries only.
    pub(crate) fn control_mut(&mut self) -> Option<&mut Control> {
        self.control.as_mut()
    }

    /// Sets the control state, and returns the one before.
    pub(crate) fn set_control(&mut self, control: Option<Control>) -> Option<Control> {
        std::mem::replace(&mut self.control, control)
    }

    /// Returns the configuration in force; empty: unknown.
    pub(crate) fn configuration(&self) -> Configuration {
        (self.control.as_ref()).map_or_else(Configuration::default, |c| {
            c.members.configuration().clone()
        })
    }

    /// Returns the cluster UUID, if the control state is known.
    pub(crate) fn history(&self) -> Option<Uuid> {
        self.control.as_ref().map(|c| c.history)
    }

    /// Returns the last seqno that this node has certified.
    pub(crate) fn seqno(&self) -> Option<Seqno> {
        self.control.as_ref().map(Control::seqno)
    }

    /// Returns this node's member state; None if it is no member.
    pub(crate) fn my_state(&self) -> Option<&MemberState> {
        self.control.as_ref()?.members.get(self.me)
    }

    /// Returns this node's place in the replicated state machine; None if it is no member.
    pub(crate) fn my_node_state(&self) -> Option<NodeState> {
        self.my_state().map(|state| state.state)
    }

    /// Returns the member that the order has chosen as this joiner's donor, while it donates.
    pub(crate) fn donor_of(&self, joiner: Incarnation) -> Option<Incarnation> {
        self.control()?.members.donor_of(joiner)
    }

    /// Returns this node's donor, while it donates.
    pub(crate) fn my_donor(&self) -> Option<Incarnation> {
        self.donor_of(self.me)
    }

    /// Returns true if this process is a member of the view.
    pub(crate) fn is_member(&self, peer: Incarnation) -> bool {
        (self.control())
            .is_some_and(|control| control.members.configuration().member(peer).is_some())
    }

    /// Returns true if this node holds the log but no database: every delivery counts as applied.
    pub(crate) fn is_arbitrator(&self) -> bool {
        self.my_member.arbitrator
    }

    /// Returns true if this node takes no part in error votes, and no member waits for its applied watermark.
    pub(crate) fn abstains(&self) -> bool {
        self.is_arbitrator() && !planted(Mutant::ArbitratorVotes)
    }

    /// Returns "index (name)", as the log lines show a member.
    pub(crate) fn name_of(&self, incarnation: Incarnation) -> String {
        let Some(control) = &self.control else {
            return incarnation.to_string(); // not reached: log lines name members of delivered views
        };
        let configuration = control.members.configuration();
        match (
            configuration.index_of(incarnation),
            configuration.member(incarnation),
        ) {
            (Some(index), Some(member)) => format!("{index}.{} ({})", member.segment, member.name),
            _ => incarnation.to_string(),
        }
    }
}
