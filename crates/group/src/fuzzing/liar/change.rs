//! Changes of some fields of a message or a log.

use super::Liar;
use crate::event::RecoveredLog;
use crate::ids::Position;
use crate::message::{Message, WireBody, WireEntry};

impl Liar<'_, '_> {
    /// Changes one thing in a log.
    pub fn damage(&mut self, log: &mut RecoveredLog) {
        let index = self.dice.below(log.entries.len());
        let last = log.entries.last().map(|entry| entry.term);
        match (self.dice.below(8), log.entries.get_mut(index)) {
            (0 | 1, Some(entry)) => {
                if let WireBody::Full(body) = self.wire_body() {
                    entry.body = body;
                }
            }
            (2, Some(entry)) => entry.term = self.term(),
            (3, Some(entry)) => entry.term = last.unwrap_or_default(),
            (4, Some(entry)) => entry.position = self.position(),
            (5, _) => drop(log.entries.drain(index..)),
            (6, _) => log.commit = self.position(),
            _ => log.checkpoint = self.checkpoint(),
        }
        let end = (log.checkpoint.position).saturating_add(log.entries.len() as Position);
        if self.dice.one_in(2) {
            log.commit = log.commit.min(end);
            log.left = log.left.min(end);
        }
    }

    /// Changes some fields of the message.
    pub fn change(&mut self, message: &mut Message) {
        match message {
            Message::Status(status) => {
                let other = self.status();
                match self.dice.below(4) {
                    0 => status.ack = other.ack,
                    1 => status.end = other.end,
                    2 => status.commit = other.commit,
                    _ => *status = other,
                }
            }
            Message::Append(append) => match self.dice.below(6) {
                0 => {
                    append.entries.pop();
                }
                1 => append.commit = self.position(),
                2 => append.ack = self.position(),
                3 | 4 => {
                    let index = self.dice.below(append.entries.len());
                    let body = self.wire_body();
                    if let Some(entry) = append.entries.get_mut(index) {
                        entry.body = body;
                    }
                }
                _ => {
                    if let Some(last) = append.entries.last() {
                        append.entries.push(WireEntry {
                            position: last.position + 1,
                            term: last.term.max(append.term),
                            body: self.wire_body(),
                        });
                    }
                }
            },
            Message::Ack {
                position, commit, ..
            } => (*position, *commit) = (self.position(), self.position()),
            Message::Summary { summary, .. } => *summary = self.summary(),
            Message::Install { checkpoint, .. } => *checkpoint = self.checkpoint(),
            Message::Promise(promise) => {
                let other = self.promise();
                match self.dice.below(4) {
                    0 => promise.summary = other.summary,
                    1 => promise.configurations = other.configurations,
                    2 => promise.withdrawn = other.withdrawn,
                    _ => promise.amnesiac = other.amnesiac,
                }
            }
            Message::PreVoteReply { granted, .. } => *granted = !*granted,
            Message::LogEndReply { end, .. } => *end = self.position(),
            Message::Submit { number, .. } => *number = self.dice.near(*number),
            Message::Part { offset, bytes, .. } => {
                *offset = self.dice.near(u64::from(*offset)) as u32;
                *bytes = bytes.slice(..self.dice.below(bytes.len() + 1).min(bytes.len()));
            }
            other => *other = self.make(),
        }
    }
}
