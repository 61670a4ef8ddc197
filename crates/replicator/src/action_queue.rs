//! The actions of one call, in the order in which the engine carries them out.
//!
//! It owns the limits of log lines about peers, too, since a peer that repeats itself must not fill the log; and the last
//! announcements.

use trireme_certification::Seqno;
use trireme_group::{Complaints, Incarnation};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, GroupAction, HostAction, Level, Note};
use crate::announcements::Announcements;
use crate::control::Control;
use crate::event::Ticket;
use crate::gtid::Gtid;
use crate::peer_message::PeerMessage;
use crate::status::LocalState;

#[derive(Default)]
pub(crate) struct ActionQueue {
    actions: Vec<Action>,
    complaints: Complaints,
    announcements: Announcements,
}

impl ActionQueue {
    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn extend(&mut self, actions: impl IntoIterator<Item = Action>) {
        self.actions.extend(actions);
    }

    /// Moves all actions to the end of `out`.
    pub(crate) fn drain_into(&mut self, out: &mut Vec<Action>) {
        out.append(&mut self.actions);
    }

    pub(crate) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.push(Action::Host(HostAction::Answer { ticket, answer }));
    }

    /// Answers a read: what it waited for is at or below `gtid`, or never comes.
    pub(crate) fn answer_read(&mut self, ticket: Ticket, code: Code, gtid: Gtid) {
        self.answer(ticket, Answer::at(code, gtid, -1));
    }

    pub(crate) fn log(&mut self, level: Level, text: impl Into<String>) {
        let text = text.into();
        self.push(Action::Host(HostAction::Log { level, text }));
    }

    /// Logs a line about this peer, unless too many were logged of late.
    pub(crate) fn complain(
        &mut self,
        level: Level,
        peer: Incarnation,
        now_ms: u64,
        text: impl FnOnce() -> String,
    ) {
        if let Some(text) = self.complaints.line(peer, now_ms, text) {
            self.log(level, text);
        }
    }

    /// Tells the group the members with a vote, if they have changed.
    pub(crate) fn tell_joined(&mut self, control: &Control) {
        if let Some((position, members)) = self.announcements.joined(control) {
            self.push(Action::Group(GroupAction::SetJoined { position, members }));
        }
    }

    /// Makes the group hear the members with a vote again.
    pub(crate) fn forget_joined(&mut self) {
        self.announcements.forget_joined();
    }

    // --- notes about the database

    /// Notes that a total-order action begins: from here on the database may hold it (rule 13).
    pub(crate) fn action_begins(&mut self, gtid: Gtid) {
        self.push(Action::Note(Note::Action { gtid, ended: false }));
        self.push(Action::Host(HostAction::MarkUnsafe));
    }

    /// Notes that the action has ended: the database holds it (rule 13). grastate.dat names the history first: an action
    /// that is noted as ended excuses no file without a history.
    pub(crate) fn action_ended(&mut self, gtid: Gtid) {
        if planted(Mutant::EndNotedFirst) {
            self.action_passed(gtid);
        }
        self.push(Action::Host(HostAction::MarkSafe));
        self.action_passed(gtid);
    }

    /// Notes that the database has passed an action that an earlier process may have begun (rule 13).
    pub(crate) fn action_passed(&mut self, gtid: Gtid) {
        self.push(Action::Note(Note::Action { gtid, ended: true }));
    }

    /// Forgets the note of an action: the database has diverged, or is replaced.
    pub(crate) fn forget_action(&mut self) {
        self.action_passed(Gtid::UNDEFINED);
    }

    /// Notes that the database's history is the group's from here on.
    pub(crate) fn note_overrides(&mut self, control: Option<&Control>) {
        if let Some(control) = control {
            let overrides = control.forks.clone();
            self.push(Action::Note(Note::Overrides { overrides }));
        }
    }

    /// Logs the state, if it has changed. `seqno`: the last of the order; -1: unknown.
    pub(crate) fn tell_state(&mut self, state: LocalState, seqno: Seqno) {
        if let Some(before) = self.announcements.state(state) {
            let text = format!("Shifting {before} -> {state} (TO: {seqno})");
            self.log(Level::Info, text);
        }
    }

    /// Ends the process.
    pub(crate) fn fatal(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.push(Action::Host(HostAction::Fatal { text }));
    }

    pub(crate) fn send(&mut self, to: Incarnation, message: &PeerMessage) {
        let bytes = message.encode();
        self.push(Action::SendTo { to, bytes });
    }
}
