//! The promised term of this member, and whether its replica is amnesiac.
//!
//! In: terms to promise, and the word that a promise is on disk. Out: the messages that may be sent then. Promises only
//! rise. None is sent before it is on disk, nor is an acknowledgement in its term (rule 4); a heartbeat may name the term
//! earlier. An amnesiac replica is intact again when it has caught up with everything that it may have acknowledged.

use trireme_mutants::{Mutant, planted};

use crate::event::Recovered;
use crate::ids::{Incarnation, Position, Term};
use crate::limits::NUMBER_STEP_MAX;
use crate::message::Message;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Vote {
    promised: Term,
    persisted: Term,
    /// The promised term in the last heartbeat.
    told: Term,
    amnesiac: bool,
    /// Lost views: configurations that this replica acknowledged may be missing, too. Counts only while `amnesiac`.
    lost_views: bool,
    /// This member is intact again when it has acknowledged up to this position in the promised term (rule 4). None:
    /// that term's leader has not said how far its log reaches.
    intact_at: Option<Position>,
    /// Highest term number that any process says it has promised.
    number_seen: u64,
    /// Messages that wait until the promise is on disk.
    held: Vec<(Incarnation, Message)>,
}

impl Vote {
    pub(crate) fn new(recovered: &Recovered) -> Vote {
        Vote {
            promised: recovered.promised.max(recovered.lasting.promised),
            persisted: recovered.promised,
            told: Term::default(),
            amnesiac: recovered.amnesiac,
            lost_views: recovered.lost_views || recovered.log.is_none(),
            intact_at: None,
            number_seen: 0,
            held: Vec::new(),
        }
    }

    // ---- queries ----

    /// The promised term, which is in force here.
    pub(crate) fn promised(&self) -> Term {
        self.promised
    }

    /// The last promise that is on disk.
    pub(crate) fn persisted(&self) -> Term {
        self.persisted
    }

    pub(crate) fn is_persisted(&self) -> bool {
        self.persisted >= self.promised
    }

    /// True if entries that this replica once acknowledged may be missing here.
    pub(crate) fn is_amnesiac(&self) -> bool {
        self.amnesiac
    }

    /// True if configurations that it acknowledged may be missing, too.
    pub(crate) fn has_lost_views(&self) -> bool {
        self.amnesiac && self.lost_views
    }

    /// The least term number for a candidacy of this member: above all promises that it knows.
    pub(crate) fn next_number(&self) -> u64 {
        self.promised.number.max(self.number_seen) + 1
    }

    // ---- inputs from the coordinator ----

    /// A process says that it has promised this term number. A number far ahead counts as half of the way: the next
    /// number is above it, and members that have missed some elections must still believe it.
    pub(crate) fn saw(&mut self, number: u64) {
        let most = self.persisted.number.saturating_add(NUMBER_STEP_MAX / 2);
        self.number_seen = self.number_seen.max(number.min(most));
    }

    /// Promises this term: accepts no lower one from now on.
    pub(crate) fn promise(&mut self, term: Term) {
        assert!(term > self.promised, "promises only rise");
        self.promised = term;
        // The log of the next leader may hold a forced view that the last one's lacked.
        if !planted(Mutant::OldLogEndMakesIntact) {
            self.intact_at = None;
        }
        // The held messages belong to a lower term, and are void. So the list stays short, however many promises follow
        // each other.
        self.held.clear();
    }

    /// Holds a message that relies on the promise. Returns the message if it may be sent at once.
    pub(crate) fn hold(&mut self, to: Incarnation, message: Message) -> Option<Message> {
        // The callers have just promised, so in practice the message always waits.
        if self.is_persisted() || planted(Mutant::PromiseNotPersisted) {
            return Some(message);
        }
        self.held.push((to, message));
        None
    }

    /// True if the peers have yet to hear of the promised term.
    pub(crate) fn is_untold(&self) -> bool {
        self.told != self.promised
    }

    /// A heartbeat names the promised term.
    pub(crate) fn note_told(&mut self) {
        self.told = self.promised;
    }

    /// A promise is on disk: returns the messages that may be sent now.
    pub(crate) fn persist(&mut self, promised: Term) -> Vec<(Incarnation, Message)> {
        self.persisted = self.persisted.max(promised);
        match self.is_persisted() {
            true => std::mem::take(&mut self.held),
            false => Vec::new(),
        }
    }

    /// A log from another node replaces the own one, and may lack everything that this replica acknowledged with the
    /// old log. `forked`: the old log was on another branch, so the new one may begin below entries that both have.
    pub(crate) fn begin_log_anew(&mut self, intact_at: Position, forked: bool) {
        self.amnesiac |= forked;
        self.lost_views = true;
        self.intact_at = Some(intact_at);
    }

    /// The log of the promised term's leader ends at this position: everything that this replica has acknowledged and
    /// forgotten lies at or below it, and so does the term's forced view. The first such position counts.
    pub(crate) fn will_be_intact_at(&mut self, position: Position) {
        self.intact_at.get_or_insert(position);
    }

    /// This member has acknowledged everything up to this position, in the term in force.
    pub(crate) fn acknowledged(&mut self, position: Position) {
        self.amnesiac &= self.intact_at.is_none_or(|at| position < at);
    }

    /// This member's log is the group's now, so it is intact, whatever it once forgot.
    pub(crate) fn becomes_intact(&mut self) {
        self.amnesiac = false;
    }

    /// Takes over the facts that stay valid for a process that begins anew under the same incarnation.
    pub(crate) fn carry_over(&mut self, before: &Vote) {
        self.persisted = before.persisted;
        self.number_seen = before.number_seen;
    }

    /// A planted mistake: forgets the earlier promises.
    pub(crate) fn forget_promises(&mut self) {
        (self.promised, self.persisted) = Default::default();
    }

    #[cfg(test)]
    pub(crate) fn number_seen(&self) -> u64 {
        self.number_seen
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(number: u64) -> Term {
        Term {
            number,
            ..Term::default()
        }
    }

    #[test]
    fn nobody_hears_of_a_promise_before_it_is_on_disk() {
        let mut vote = Vote::new(&Recovered::default());
        let to = Incarnation::default();
        vote.promise(term(1));
        assert_eq!(vote.hold(to, Message::Leave), None);
        vote.promise(term(2));
        let weight = Message::Weight { weight: 1 };
        assert_eq!(vote.hold(to, weight.clone()), None);
        assert_eq!(vote.persist(term(1)), [], "it was overtaken");
        assert_eq!(vote.persist(term(2)), [(to, weight)]);
        assert_eq!(vote.hold(to, Message::Leave), Some(Message::Leave));
    }

    #[test]
    fn who_has_caught_up_is_intact_again() {
        let amnesiac = true;
        let mut vote = Vote::new(&Recovered {
            amnesiac,
            ..Recovered::default()
        });
        vote.acknowledged(100);
        assert!(
            vote.is_amnesiac(),
            "nobody has said how far it must catch up"
        );
        vote.will_be_intact_at(7);
        vote.will_be_intact_at(5);
        vote.acknowledged(6);
        assert!(vote.is_amnesiac());
        vote.promise(term(1));
        vote.acknowledged(7);
        assert!(vote.is_amnesiac(), "that was another leader's log");
        vote.will_be_intact_at(9);
        vote.acknowledged(9);
        assert!(!vote.is_amnesiac());
    }

    #[test]
    #[should_panic(expected = "promises only rise")]
    fn promises_only_rise() {
        let mut vote = Vote::new(&Recovered::default());
        vote.promise(term(2));
        vote.promise(term(2));
    }
}
