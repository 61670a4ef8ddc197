//! desync() and resync(): a desynced member holds up nobody, and counts its desyncs in the order.

use trireme_group::SubmissionId;
use trireme_mutants::{Mutant, planted};

use super::Membership;
use crate::action::{Answer, Code, Level};
use crate::event::Ticket;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::submissions::Sent;

impl Membership<'_> {
    /// Carries out desync().
    pub(crate) fn desync(&mut self, ticket: Ticket) {
        // Also refused for a server that still takes itself for Synced: it would not take the desync back (see
        // `forget_desyncs`).
        let state = self.context.my_node_state();
        let possible = self.lifecycle.takes_part()
            && !self.executor.queue().shows_non_primary()
            && state.is_some_and(|s| s != NodeState::Joiner);
        if possible {
            let as_donor = self.executor.queue().is_known_donor();
            self.submit(Sent::Desync { ticket, as_donor }, &Message::Desync);
        } else {
            (self.out).answer(ticket, Answer::unordered(Code::TrxFail));
        }
    }

    fn submit(&mut self, sent: Sent, message: &Message) {
        self.out.push(self.submissions.submit(sent, message));
    }

    /// Carries out resync(). If it cannot be ordered now, it is ordered later ([`Self::settle_desyncs`]).
    pub(crate) fn resync(&mut self, ticket: Ticket) {
        self.submissions.take_back_desync();
        self.out.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Brings this node's desyncs in the order to the number that its callers were told. They differ when a desync that
    /// was given up is ordered after all, or a repeated resync is.
    pub(super) fn settle_desyncs(&mut self) {
        let counted = (self.context.my_state())
            .filter(|member| member.state != NodeState::Joiner)
            .map(|member| member.desyncs);
        match counted.and_then(|counted| self.submissions.missing_desync(counted)) {
            Some(Sent::Resync) if planted(Mutant::DesyncNeverLifted) => {}
            Some(Sent::Resync) => self.submit(Sent::Resync, &Message::Resync),
            Some(sent) => self.submit(sent, &Message::Desync),
            None => {}
        }
    }

    /// Handles that a member has changed its own state in the order. `own`: the submission, if it is this node's and
    /// somebody waits for it.
    pub(crate) fn member_changed(
        &mut self,
        id: SubmissionId,
        own: Option<Sent>,
        message: &Message,
        refused: bool,
    ) {
        if id.incarnation != self.context.me() {
            return;
        }
        if let Some(Sent::Desync { ticket, as_donor }) = own {
            // FLUSH TABLES WITH READ LOCK desyncs only a server that is Synced, and takes nothing back if it ends as a
            // donor's (server-contract.md#desync). So the desync is not granted to a node that was chosen as donor in
            // between. `settle_desyncs` takes back the desync that the order has counted.
            let crossed = !as_donor && self.donates_to().is_some();
            let granted = !refused && !crossed;
            if granted {
                self.submissions.grant_desync();
            }
            let code = if granted { Code::Ok } else { Code::TrxFail };
            self.out.answer(ticket, Answer::unordered(code));
        }
        if refused {
            return;
        }
        match message {
            Message::Synced => self.tell_synced(),
            Message::Desync | Message::Resync => self.lifecycle.forget_synced(),
            _ => {}
        }
    }

    /// Forgets the desyncs, which do not outlast the primary component, as with Galera (MTR: GAL-401): the server is
    /// not ready before it is Synced again. The desync of a paused node (FLUSH TABLES WITH READ LOCK) ends with the
    /// pause: the node could not become Synced. A desync that is in flight is not granted any more. FLUSH TABLES WITH
    /// READ LOCK requests it from a Synced server, and takes it back from a Synced one only (simulator, seed 907987).
    pub(crate) fn forget_desyncs(&mut self) {
        for ticket in self.submissions.abandon_desyncs() {
            (self.out).answer(ticket, Answer::unordered(Code::TrxFail));
        }
        if self.submissions.take_back_desyncs() {
            self.out.log(
                Level::Info,
                "the desync of this node ends with the primary component; if it is to be desynced when it is back, \
                 SET GLOBAL wsrep_desync=OFF and ON again",
            );
        }
    }
}
