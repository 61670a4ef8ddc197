//! The actions of one call, in the order in which the engine carries them out.
//!
//! It owns the limits of log lines about peers, too: a peer that repeats itself must not fill the log.

use trireme_group::{Complaints, Incarnation};

use crate::action::{Action, Answer, HostAction, Level};
use crate::direct::Direct;
use crate::event::Ticket;

#[derive(Default)]
pub(crate) struct ActionQueue {
    actions: Vec<Action>,
    complaints: Complaints,
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

    pub(crate) fn log(&mut self, level: Level, text: String) {
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

    /// Ends the process.
    pub(crate) fn fatal(&mut self, text: String) {
        self.push(Action::Host(HostAction::Fatal { text }));
    }

    pub(crate) fn send(&mut self, to: Incarnation, message: &Direct) {
        let bytes = message.encode();
        self.push(Action::SendTo { to, bytes });
    }
}
