//! The actions of one call, in the order in which the engine carries them out.
//!
//! It owns the limits of log lines about peers, too, since a peer that repeats itself must not fill the log; the last
//! announcements; and what grastate.dat and the note of the last total-order action say about the database.

use trireme_certification::Seqno;
use trireme_group::{Complaints, Incarnation};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, GroupAction, HostAction, Level, Note};
use crate::announcements::Announcements;
use crate::control::Control;
use crate::event::Ticket;
use crate::forks::Fork;
use crate::gtid::Gtid;
use crate::peer_message::PeerMessage;
use crate::status::LocalState;

#[derive(Default)]
pub(crate) struct ActionQueue {
    actions: Vec<Action>,
    complaints: Complaints,
    announcements: Announcements,
    /// Number of open [`HostAction::MarkUnsafe`]: while there are any, grastate.dat names no history.
    unsafe_marks: usize,
    /// The last total-order action that began in this process; None: none did, or it is forgotten.
    last_action: Option<Gtid>,
    /// Its end is still to be noted.
    end_is_due: bool,
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
        (self.last_action, self.end_is_due) = (Some(gtid), false);
        self.note_action(gtid, false);
        self.mark_unsafe();
    }

    /// Notes that the action has ended: the database holds it (rule 13).
    pub(crate) fn action_ended(&mut self, gtid: Gtid) {
        if planted(Mutant::EndNotedFirst) {
            self.note_action(gtid, true);
        }
        self.end_is_due |= self.last_action == Some(gtid);
        self.mark_safe();
    }

    /// Notes that the database has passed an action that an earlier process may have begun (rule 13). If this process
    /// has begun one, the note is about that.
    pub(crate) fn action_passed(&mut self, gtid: Gtid) {
        if self.last_action.is_none() {
            (self.last_action, self.end_is_due) = (Some(gtid), true);
            self.note_end();
        }
    }

    /// Forgets the note of an action: the database has diverged, or is replaced.
    pub(crate) fn forget_action(&mut self) {
        (self.last_action, self.end_is_due) = (None, false);
        self.note_action(Gtid::UNDEFINED, true);
    }

    /// Takes the history out of grastate.dat: the database cannot be relied on until [`Self::mark_safe`]. Counted.
    pub(crate) fn mark_unsafe(&mut self) {
        self.unsafe_marks += 1;
        self.push(Action::Host(HostAction::MarkUnsafe));
    }

    /// Ends one [`Self::mark_unsafe`].
    pub(crate) fn mark_safe(&mut self) {
        self.unsafe_marks = self.unsafe_marks.saturating_sub(1);
        self.push(Action::Host(HostAction::MarkSafe));
        self.note_end();
    }

    /// Ends every [`Self::mark_unsafe`], those of earlier connections too: an SST has replaced the database.
    pub(crate) fn mark_all_safe(&mut self) {
        for _ in 0..self.unsafe_marks {
            self.mark_safe();
        }
    }

    /// Notes the end of the last action, once grastate.dat names the history: an action that is noted as ended excuses
    /// no file without one.
    fn note_end(&mut self) {
        let is_named = self.unsafe_marks == 0 || planted(Mutant::EndNotedInVote);
        if let Some(gtid) = self.last_action.filter(|_| self.end_is_due && is_named) {
            self.end_is_due = false;
            self.note_action(gtid, true);
        }
    }

    fn note_action(&mut self, gtid: Gtid, ended: bool) {
        self.push(Action::Note(Note::Action { gtid, ended }));
    }

    /// Notes the points at which the database's history may have parted from others.
    pub(crate) fn note_forks(&mut self, forks: &[Fork]) {
        let overrides = forks.to_vec();
        self.push(Action::Note(Note::Overrides { overrides }));
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

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use super::*;

    fn at(seqno: Seqno) -> Gtid {
        Gtid {
            uuid: Uuid([7; 16]),
            seqno,
        }
    }

    fn notes(queue: &mut ActionQueue) -> Vec<(Seqno, bool)> {
        let mut actions = Vec::new();
        queue.drain_into(&mut actions);
        let notes = actions.into_iter().filter_map(|action| match action {
            Action::Note(Note::Action { gtid, ended }) => Some((gtid.seqno, ended)),
            _ => None,
        });
        notes.collect()
    }

    #[test]
    fn the_end_of_an_action_is_noted_when_nothing_else_keeps_the_history_out() {
        let mut queue = ActionQueue::default();
        queue.action_begins(at(5));
        queue.mark_unsafe();
        queue.action_ended(at(5));
        queue.action_begins(at(6));
        queue.action_ended(at(6));
        assert_eq!(notes(&mut queue), [(5, false), (6, false)]);
        queue.mark_safe();
        assert_eq!(notes(&mut queue), [(6, true)]);
    }

    #[test]
    fn the_note_never_goes_back_to_an_action_of_an_earlier_process() {
        let mut queue = ActionQueue::default();
        queue.action_passed(at(5));
        assert_eq!(notes(&mut queue), [(5, true)]);
        queue.action_begins(at(6));
        queue.action_ended(at(6));
        queue.action_passed(at(5));
        assert_eq!(notes(&mut queue), [(6, false), (6, true)]);
        queue.forget_action();
        assert_eq!(notes(&mut queue), [(-1, true)]);
    }
}
