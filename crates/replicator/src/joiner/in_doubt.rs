//! A joiner whose database may hold a total-order action above its position (rule 13): nothing is applied to it until the
//! order has decided. The rules are in [`crate::in_doubt`].

use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use super::Joiner;
use crate::action::Level;
use crate::in_doubt::Ruling;
use crate::message::Message;
use crate::state_transfer::Place;
use crate::submissions::Sent;

impl Joiner<'_> {
    /// Returns false while nothing may be applied to the database, because another database may be beyond doubt.
    pub(super) fn doubt_is_settled(&mut self) -> bool {
        match self.ruling() {
            None => return true,
            Some(Ruling::Trusted) => self.go_on_in_doubt(),
            // They may be dead, and their databases as much in doubt as this one.
            Some(Ruling::OthersHave) if self.transfer.awaits_donors() => {}
            Some(Ruling::OthersHave) => self.give_up_database(),
            Some(Ruling::Open) => {
                let my_state = self.context.my_state();
                let is_said = my_state.is_some_and(|state| state.doubt.is_some());
                if self.lifecycle.takes_part() && !is_said && !planted(Mutant::DoubtNotSaid) {
                    let seqno = self.database.local().seqno;
                    let (now_ms, message) = (self.context.now_ms(), Message::InDoubt(seqno));
                    (self.submissions).submit_once(now_ms, Sent::InDoubt, &message, self.out);
                }
            }
        }
        !self.database.is_in_doubt()
            && self.transfer.place() == Place::Transfer
            && !self.transfer.awaits_snapshot()
    }

    /// Returns the order's decision on this node's database; None: the database is not in doubt.
    fn ruling(&self) -> Option<Ruling> {
        let in_question = self.transfer.ist().is_some() && self.database.is_in_doubt();
        let control = self.context.control().filter(|_| in_question)?;
        Some(control.members.rules_on(self.context.me()))
    }

    /// Returns true if other members have a database, and this node's is in doubt.
    pub(super) fn is_about_to_give_up_database(&self) -> bool {
        self.ruling() == Some(Ruling::OthersHave)
    }

    /// Handles that the cluster goes on with the database of this member. Returns false if this node's database is in use,
    /// and would go on beside it.
    pub(crate) fn follows_choice(&mut self, chosen: Incarnation) -> bool {
        if self.transfer.awaits_snapshot() {
            if self.transfer.is_sent() {
                self.forked_in_transfer(); // the donor's database is from before the choice
            }
            return true;
        }
        // Before admission, the choice puts the database in doubt when its way into step begins.
        !self.transfer.feeds_database()
            || self.context.is_arbitrator()
            || chosen == self.context.me()
            || self.database.is_in_doubt()
            || planted(Mutant::ChoiceMissed)
    }

    fn go_on_in_doubt(&mut self) {
        let (local, action) = (self.database.local(), self.database.trust());
        let text = format!(
            "all died within a total-order action (DDL), and no database is beyond doubt: the cluster goes on with \
             the database of this node, which is at {local}. Actions up to {action} that may have been executed are \
             executed again; the other nodes take a full snapshot"
        );
        self.out.log(Level::Warn, text);
        self.note_forks(); // before any action is executed again
    }

    /// Gives the database up for an SST. Nothing was applied to it.
    fn give_up_database(&mut self) {
        self.database.forget_action();
        self.transfer.request();
        self.executor.forget_history();
        self.request_snapshot();
    }
}
