//! The invariants. Everything committed anywhere is compared with one truth, entry by entry; a broken rule panics with
//! its number in `docs/protocol.md`.

use std::collections::{BTreeMap, BTreeSet};

use trireme_group::{
    Body, Checkpoint, Configuration, Delivery, Entry, Fate, Incarnation, Position, SubmissionId,
    Term,
};

/// Payload of the submission by which a member says that it has JOINED.
pub const JOINED: &[u8] = b"joined";

/// What is true of the cluster.
#[derive(Debug, Default)]
pub struct Judge {
    /// Every committed entry, from position 1 on.
    truth: Vec<Entry>,
    /// Highest term in force where a position was committed first.
    committing: Term,
    configurations: Vec<(Position, Configuration)>,
    numbers: BTreeMap<Incarnation, u64>,
    delivered: BTreeMap<SubmissionId, Position>,
    joined: Vec<(Position, BTreeSet<Incarnation>)>,
    withdrawn: BTreeSet<SubmissionId>,
    /// The last number that each member was told has failed.
    failed: BTreeMap<Incarnation, u64>,
    /// That when it submitted this.
    failed_before: BTreeMap<SubmissionId, u64>,
    /// The last number of each member that a void has used up.
    voided: BTreeMap<Incarnation, u64>,
    acknowledged: BTreeMap<SubmissionId, Position>,
    last_acknowledged: Position,
}

impl Judge {
    /// A process commits `entry`, being in `term`, and has delivered this at its position.
    pub fn committed(&mut self, who: &str, term: Term, entry: &Entry, delivery: Option<&Delivery>) {
        if entry.position > self.end() {
            self.first_commit(who, term, entry);
        }
        self.histories_agree(who, entry);
        self.members_are_delivered(who, entry, delivery);
    }

    pub fn end(&self) -> Position {
        self.truth.len() as Position
    }

    fn first_commit(&mut self, who: &str, term: Term, entry: &Entry) {
        assert_eq!(
            entry.position,
            self.end() + 1,
            "harness: {who} commits in order"
        );
        self.terms_never_fall(who, term, entry);
        let in_force = self.configuration().map(|(_, c)| c.clone());
        match &entry.body {
            Body::TermStart => {}
            Body::Configuration(configuration) => {
                self.views_are_numbered(who, configuration);
                let joined = self
                    .joined
                    .last()
                    .map(|(_, joined)| joined.clone())
                    .unwrap_or_default();
                let seated = configuration
                    .members
                    .iter()
                    .filter(|m| m.voter || joined.contains(&m.incarnation));
                self.joined
                    .push((entry.position, seated.map(|m| m.incarnation).collect()));
                self.configurations
                    .push((entry.position, configuration.clone()));
            }
            Body::Submission { id, payload } => {
                self.numbers_follow(who, entry.position, *id);
                self.nothing_follows_unknown_void(who, entry.position, *id);
                if in_force.is_some_and(|c| c.member(id.incarnation).is_some()) {
                    self.nothing_comes_twice(who, entry.position, *id);
                    self.withdrawn_stays_out(who, entry.position, *id);
                    if payload == JOINED {
                        let mut joined = self
                            .joined
                            .last()
                            .map(|(_, joined)| joined.clone())
                            .unwrap_or_default();
                        joined.insert(id.incarnation);
                        self.joined.push((entry.position, joined));
                    }
                }
            }
            Body::Voided { id } => self.voids_rise(who, entry.position, *id),
        }
        self.truth.push(entry.clone());
    }

    /// Rule 1: equal positions hold equal entries, of the same term, in every history.
    fn histories_agree(&self, who: &str, entry: &Entry) {
        let truth = &self.truth[entry.position as usize - 1];
        assert_eq!(
            truth, entry,
            "rule 1: {who} commits another entry at {} than was committed before",
            entry.position
        );
    }

    /// Rules 1, 3: two components never both commit, and no old term commits after a newer one.
    fn terms_never_fall(&mut self, who: &str, term: Term, entry: &Entry) {
        assert!(
            term >= self.committing,
            "rule 3: {who} commits {} in {term} after another component did in {}",
            entry.position,
            self.committing
        );
        self.committing = term;
        if let Some(last) = self.truth.last() {
            assert!(
                entry.term >= last.term,
                "rule 1: the term falls at {} ({who})",
                entry.position
            );
        }
    }

    /// Rule 3: a number names one membership; weights alone do not change it.
    fn views_are_numbered(&self, who: &str, configuration: &Configuration) {
        let Some((_, last)) = self.configuration() else {
            return;
        };
        if configuration.number == last.number {
            assert!(
                configuration.same_members(last),
                "rule 3: two views {} ({who})",
                last.number
            );
        } else {
            assert_eq!(
                configuration.number,
                last.number + 1,
                "rule 3: views are numbered one by one ({who})"
            );
        }
    }

    /// Rule 9: an incarnation's numbers are ordered one after another.
    fn numbers_follow(&mut self, who: &str, position: Position, id: SubmissionId) {
        let last = self.numbers.insert(id.incarnation, id.number).unwrap_or(0);
        assert_eq!(
            id.number,
            last + 1,
            "rule 9: {id} at {position} follows number {last} ({who})"
        );
    }

    /// Rule 9: a void uses up all numbers up to its own.
    fn voids_rise(&mut self, who: &str, position: Position, id: SubmissionId) {
        let last = self.numbers.insert(id.incarnation, id.number).unwrap_or(0);
        assert!(
            id.number > last,
            "rule 9: the void of {id} at {position} follows number {last} ({who})"
        );
        self.voided.insert(id.incarnation, id.number);
    }

    /// Rule 9: nothing comes without what its member had sent before it, unless the member knew.
    fn nothing_follows_unknown_void(&self, who: &str, position: Position, id: SubmissionId) {
        let voided = self.voided.get(&id.incarnation).copied().unwrap_or(0);
        let known = self.failed_before.get(&id).copied().unwrap_or(0);
        assert!(
            voided <= known,
            "rule 9: {id} at {position} was sent behind number {voided}, which was voided ({who})"
        );
    }

    /// A member submits something.
    pub fn submitted(&mut self, id: SubmissionId) {
        let failed = self.failed.get(&id.incarnation).copied().unwrap_or(0);
        self.failed_before.insert(id, failed);
    }

    /// Rule 9: nothing is delivered twice.
    fn nothing_comes_twice(&mut self, who: &str, position: Position, id: SubmissionId) {
        if let Some(before) = self.delivered.insert(id, position) {
            panic!("rule 9: {id} is delivered at {before} and again at {position} ({who})");
        }
    }

    /// Rule 7: what was reported as a definite failure never commits.
    fn withdrawn_stays_out(&self, who: &str, position: Position, id: SubmissionId) {
        assert!(
            !self.withdrawn.contains(&id),
            "rule 7: {id} was withdrawn, and commits at {position} ({who})"
        );
    }

    /// Rule 9: exactly the submissions of members of the configuration in force are delivered, and every configuration.
    fn members_are_delivered(&self, who: &str, entry: &Entry, delivery: Option<&Delivery>) {
        let due = match &entry.body {
            Body::Submission { id, payload } if self.in_force(entry.position, id.incarnation) => {
                Some(Delivery::Submission {
                    id: *id,
                    payload: payload.clone(),
                })
            }
            Body::Configuration(configuration) => {
                Some(Delivery::Configuration(configuration.clone()))
            }
            _ => None,
        };
        assert_eq!(
            delivery,
            due.as_ref(),
            "rule 9: {who} delivers something else at {}",
            entry.position
        );
    }

    fn in_force(&self, position: Position, member: Incarnation) -> bool {
        let before = self
            .configurations
            .partition_point(|(at, _)| *at < position);
        before > 0 && self.configurations[before - 1].1.member(member).is_some()
    }

    /// The configuration in force at a committed position, and all later ones.
    pub fn configurations_from(&self, position: Position) -> impl Iterator<Item = &Configuration> {
        let later = self
            .configurations
            .partition_point(|(at, _)| *at <= position);
        self.configurations[later.saturating_sub(1)..]
            .iter()
            .map(|(_, c)| c)
    }

    /// Last committed configuration.
    fn configuration(&self) -> Option<&(Position, Configuration)> {
        self.configurations.last()
    }

    /// Rules 1, 3: a process that begins anew begins at a committed state, and above what it has delivered.
    pub fn reset(&self, who: &str, committed: Position, checkpoint: &Checkpoint) {
        let at = checkpoint.position;
        assert!(
            at <= self.end(),
            "rule 1: {who} begins at {at}, which is not committed"
        );
        assert!(
            at >= committed,
            "rule 1: {who} has delivered up to {committed} and begins anew at {at}"
        );
        assert_eq!(
            checkpoint.term,
            self.truth[at as usize - 1].term,
            "rule 1: term of {who}'s checkpoint {at}"
        );
        let before = self
            .configurations
            .partition_point(|(position, _)| *position <= at);
        let in_force = &self.configurations[before - 1].1;
        assert_eq!(
            &checkpoint.configuration, in_force,
            "rule 3: configuration of {who}'s checkpoint {at}"
        );
    }

    /// Members that had said "joined" by this position: what a joiner gets with the state.
    pub fn joined_at(&self, position: Position) -> BTreeSet<Incarnation> {
        let before = self.joined.partition_point(|(at, _)| *at <= position);
        if before == 0 {
            BTreeSet::new()
        } else {
            self.joined[before - 1].1.clone()
        }
    }

    /// A submission's client is told that it failed.
    pub fn failed(&mut self, who: &str, id: SubmissionId, fate: Fate) {
        let last = self.failed.entry(id.incarnation).or_default();
        *last = id.number.max(*last);
        if fate == Fate::Withdrawn {
            if let Some(position) = self.delivered.get(&id) {
                panic!(
                    "rule 7: {id} was delivered at {position}, and {who} reports it as withdrawn"
                );
            }
            self.withdrawn.insert(id);
        }
    }

    /// Nobody remembers a crashed process's withdrawals.
    pub fn crashed(&mut self, process: Incarnation) {
        self.withdrawn.retain(|id| id.incarnation != process);
    }

    /// A submission's client is told that it committed.
    pub fn acknowledged(&mut self, id: SubmissionId, position: Position) {
        self.acknowledged.insert(id, position);
        self.last_acknowledged = self.last_acknowledged.max(position);
    }

    /// The position that a read asked for now must see.
    pub fn last_acknowledged(&self) -> Position {
        self.last_acknowledged
    }

    /// Rule 17: a read sees everything acknowledged before it was asked for.
    pub fn reads_are_current(&self, who: &str, must_see: Position, position: Position) {
        assert!(
            position >= must_see,
            "rule 17: a read of {who} at {position} misses the commit at {must_see}"
        );
    }

    /// The promise of all: an acknowledged submission is in the history that every member has in the end.
    pub fn acknowledged_is_kept(&self, ends: &[(String, Position)]) {
        for (id, position) in &self.acknowledged {
            assert_eq!(
                self.delivered.get(id),
                Some(position),
                "an acknowledged commit is lost: {id}"
            );
        }
        for (who, end) in ends {
            assert!(
                *end >= self.last_acknowledged,
                "{who} ends at {end}, below acknowledged commits"
            );
            assert_eq!(*end, self.end(), "{who} has not the whole history");
        }
    }
}

/// Rule 4: what depends on a promise leaves only once the promise is on disk.
pub fn promises_are_persisted(who: &str, term: Term, persisted: Term) {
    assert!(
        term <= persisted,
        "rule 4: {who} acts on its promise of {term}, on disk is {persisted}"
    );
}

/// Rule 4: what is acknowledged is in the log, as durably as promised.
pub fn acknowledgements_are_durable(who: &str, position: Position, durable: Position) {
    assert!(
        position <= durable,
        "rule 4: {who} acknowledges {position}, durable is {durable}"
    );
}

/// Rule 3: one configuration at a time is proposed.
pub fn one_change_at_a_time<'a>(who: &str, uncommitted: impl Iterator<Item = &'a Entry>) {
    let count = uncommitted
        .filter(|entry| matches!(entry.body, Body::Configuration(_)))
        .count();
    assert!(
        count <= 1,
        "rule 3: {who} has {count} uncommitted configurations in its log"
    );
}

#[cfg(test)]
mod tests;
