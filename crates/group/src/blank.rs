//! A node without a history: what it hears and says until a cluster is founded (`pc.bootstrap_expect`).

use crate::event::Action;
use crate::founding::{Expects, FoundingOutput, Support};
use crate::group::Group;
use crate::ids::{Ballot, Incarnation};
use crate::known::known;
use crate::message::Message;

impl Group {
    /// True if this node has no history, and may found one with others (`pc.bootstrap_expect`).
    pub fn is_blank(&self) -> bool {
        let has_place = !self.component.is_going();
        self.context.config().expect > 0
            && has_place
            && self.component.is_outside()
            && self.log.committed().history.is_nil()
    }

    pub(crate) fn listed(&mut self, members: Vec<Incarnation>, missing: Vec<String>) {
        if self.is_blank() {
            self.founding.list(members, missing);
            self.pursue_founding();
        }
    }

    pub(crate) fn expects(&mut self, from: Incarnation, nodes: u32, promised: Ballot) {
        self.vote.saw(promised.number);
        self.peers.expects(from, Expects { nodes, promised });
        self.pursue_founding();
    }

    /// Tells what this node expects, and whom it supports, if that is on disk.
    pub(crate) fn tell_expectation(&mut self, to: Vec<Incarnation>) {
        if self.is_blank() && self.vote.is_persisted() {
            let message = Message::Expects {
                nodes: self.context.config().expect,
                promised: self.vote.promised(),
            };
            self.send_all(to, message);
        }
    }

    pub(crate) fn pursue_founding(&mut self) {
        if !self.is_blank() {
            return;
        }
        match self.founding.pursue(known!(self), self.support()) {
            Some(FoundingOutput::Promise(ballot)) => self.promise_ballot(ballot),
            Some(FoundingOutput::Found { nodes }) => {
                let text = format!(
                    "founding a cluster with the support of all {nodes} nodes that pc.bootstrap_expect names"
                );
                self.out.note(text);
                self.context.config_mut().expect = 0;
                self.out.push(Action::Found);
            }
            None => {}
        }
    }

    /// With every heartbeat.
    pub(crate) fn tell_what_founding_waits_for(&mut self) {
        if self.is_blank() {
            let support = self.support();
            if let Some(text) = self.founding.remind(known!(self), support) {
                self.out.note(text);
            }
        }
    }

    /// What this node waits for that may found a cluster, and the addresses where nobody answers; None: it may not.
    pub fn founding_waits_for(&self) -> Option<(String, &[String])> {
        let text = || self.founding.tell(known!(self), self.support());
        (self.is_blank()).then(|| (text(), self.founding.missing()))
    }

    fn support(&self) -> Support {
        Support {
            promised: self.vote.promised(),
            is_persisted: self.vote.is_persisted(),
        }
    }
}
