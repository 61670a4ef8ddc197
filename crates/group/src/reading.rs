//! What current reads ask for is carried out: messages to the others, answers to readers.

use crate::event::Action;
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Position};
use crate::known::known;
use crate::message::Message;
use crate::reads::ReadOutput;

impl Group {
    /// With every batch.
    pub(crate) fn pursue_reads(&mut self) {
        let (is_primary, own_end) = (self.component.is_primary(), self.known_end());
        let outputs = self.reads.pursue(known!(self), is_primary, own_end);
        self.carry_out_reads(outputs);
    }

    pub(crate) fn log_end_reply(
        &mut self,
        from: Incarnation,
        round: u64,
        ballot: Ballot,
        end: Position,
    ) {
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        if ballot == self.vote.promised() {
            let own_end = self.known_end();
            let outputs = (self.reads).end_told(known!(self), (replica, end), round, own_end);
            self.carry_out_reads(outputs);
        }
    }

    /// Nobody who could answer.
    pub(crate) fn fail_reads(&mut self) {
        let outputs = self.reads.fail();
        self.carry_out_reads(outputs);
    }

    pub(crate) fn log_end_asked(&mut self, from: Incarnation, round: u64) {
        // Who may have forgotten what it acknowledged in this ballot must not lower the read point.
        let end = self.known_end().filter(|_| !self.vote.is_amnesiac());
        if let Some(end) = end {
            let ballot = self.vote.promised();
            self.send(from, Message::LogEndReply { round, ballot, end });
        }
    }

    /// Where the part of the own log ends that is the leader's, if that is known.
    fn known_end(&self) -> Option<Position> {
        (self.matching.is_matched() || self.is_sequencer()).then(|| self.agreed_end())
    }

    fn carry_out_reads(&mut self, outputs: Vec<ReadOutput>) {
        for output in outputs {
            match output {
                ReadOutput::Ask { round, of } => self.send_all(of, Message::LogEnd { round }),
                ReadOutput::Point { token, position } => {
                    self.out.push(Action::ReadPoint { token, position })
                }
                ReadOutput::Failed { token } => self.out.push(Action::ReadFailed { token }),
            }
        }
    }
}
