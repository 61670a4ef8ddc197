//! The outputs of the group core: actions in order until the end of the batch, counters, and log lines about peers.

use crate::complaints::Complaints;
use crate::counters::Counters;
use crate::event::Action;
use crate::ids::{Incarnation, Position, TimeMs};
use crate::message::Message;
use crate::peers::Peers;

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Outbox {
    actions: Vec<Action>,
    counters: Counters,
    complaints: Complaints,
}

impl Outbox {
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Sends the message to those of these peers that are connected.
    pub(crate) fn send(&mut self, peers: &Peers, mut to: Vec<Incarnation>, message: Message) {
        to.retain(|peer| peers.is_up(*peer));
        if !to.is_empty() {
            self.push(Action::Send { to, message });
        }
    }

    /// Information for the operator.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.actions.push(Action::Note { text });
    }

    /// Delivers the entry at this position, whose payload is only in the log on disk. A run of such entries is one
    /// action.
    pub(crate) fn deliver_from_log(&mut self, position: Position) {
        match self.actions.last_mut() {
            Some(Action::DeliverFromLog { last, .. }) if *last + 1 == position => *last = position,
            _ => self.actions.push(Action::DeliverFromLog {
                first: position,
                last: position,
            }),
        }
    }

    /// Counts an event.
    pub(crate) fn count(&mut self, count: impl FnOnce(&mut Counters)) {
        count(&mut self.counters);
    }

    /// A peer has sent a message that no correct member sends.
    pub(crate) fn complain(&mut self, of: Incarnation, now: TimeMs, text: impl FnOnce() -> String) {
        if let Some(text) = self.complaints.line(of, now, text) {
            self.note(text);
        }
    }

    /// Raises an alarm of this process `me`, whose reason may stay: at most one in 10 s.
    pub(crate) fn alarm(&mut self, me: Incarnation, now: TimeMs, text: impl FnOnce() -> String) {
        if let Some(text) = self.complaints.line(me, now, text) {
            self.push(Action::Alarm { text });
        }
    }

    /// Sends none of the messages of this batch.
    pub(crate) fn drop_messages(&mut self) {
        let is_message = |action: &Action| matches!(action, Action::Send { .. });
        self.actions.retain(|action| !is_message(action));
    }

    /// Moves all actions to `out`.
    pub(crate) fn drain_into(&mut self, out: &mut Vec<Action>) {
        out.append(&mut self.actions);
    }

    /// Returns the counters and sets them to 0, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_in_the_log_only_is_one_delivery() {
        let mut outbox = Outbox::default();
        for position in [4, 5, 7] {
            outbox.deliver_from_log(position);
        }
        let mut out = Vec::new();
        outbox.drain_into(&mut out);
        let runs = out.iter().map(|action| match action {
            Action::DeliverFromLog { first, last } => (*first, *last),
            other => panic!("{other:?}"),
        });
        assert_eq!(runs.collect::<Vec<_>>(), [(4, 5), (7, 7)]);
    }
}
