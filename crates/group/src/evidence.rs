//! The best that is left, where a majority may have forgotten what it acknowledged (rule 4, "All voters are here").
//!
//! Comes in: the promises of one ballot. Goes out: whose log or whose database the cluster goes on with. Holds: nobody who is not
//! among the promisers can know more, and nothing that a database holds is contradicted.

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::event::{Action, Recovered};
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Position, ReplicaId, Uuid};
use crate::lasting::Lasting;
use crate::message::{DatabaseProof, Promise, Standing, Summary};
use crate::promises::Promises;

/// What a cluster goes on with whose majority may have forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Best {
    /// The log of this process.
    Log(Incarnation),
    /// The database of this process: no log is known to reach it.
    Database(Incarnation, u64),
}

impl Promises {
    /// The last committed configuration, and every later one that any promiser's log holds: whichever of them was committed is
    /// among these, as long as enough logs have kept theirs.
    fn may_be_in_force(&self) -> Vec<&Configuration> {
        let commit = self.commit();
        let promises = || self.all().map(|(_, _, promise)| promise);
        let mut knowing = promises().filter(|p| p.summary.commit == commit);
        let committed = knowing.find_map(|p| p.configurations.first());
        let later = promises().flat_map(|p| p.configurations.iter().skip(1));
        let later = later
            .filter(|(position, _)| *position > commit && !planted(Mutant::PendingVotersNotHeard));
        let all = committed.into_iter().chain(later);
        all.map(|(_, configuration)| configuration).collect()
    }

    fn of(&self, member: &Member) -> Option<&Promise> {
        let mut all = self.all();
        let found = all.find(|(replica, ..)| *replica == member.replica);
        found.map(|(_, _, promise)| promise)
    }

    /// True if nobody else can know more than these, or if `without_some`, a majority has been here alone for long enough.
    pub(crate) fn are_all(&self, without_some: bool) -> bool {
        let configurations = self.may_be_in_force();
        let Some(committed) = configurations.first() else {
            return false;
        };
        let enough = |configuration: &&Configuration| {
            let here = configuration.weight_of(|m| self.of(m).is_some());
            let vouches = |p: &Promise| !p.lost_views || planted(Mutant::LostViewsVouch);
            let keeps_views = |m: &Member| self.of(m).is_some_and(vouches);
            let all = here > 0 && here == configuration.total_weight();
            let is_majority = configuration.is_majority(here) || planted(Mutant::MinorityReforms);
            let enough = all || without_some && is_majority;
            // A configuration that was committed is in the log of one of these.
            enough && configuration.is_half(configuration.weight_of(keeps_views))
        };
        // As long as half of the votes are intact, a majority of them may go on by itself, without the override that this
        // becomes.
        let intact = committed.weight_of(|m| self.of(m).is_some_and(|p| !p.amnesiac));
        configurations.iter().all(enough) && !committed.is_half(intact)
    }

    /// What to go on with. `counts`: the database of this promiser is on the branch of the candidate. None: too few are here, or
    /// what they have cannot be compared.
    fn best_evidence(
        &self,
        without_some: bool,
        counts: impl Fn(Incarnation, &Promise) -> bool,
    ) -> Option<Best> {
        if !self.are_all(without_some) {
            return None;
        }
        let configurations = self.may_be_in_force();
        let votes = |replica| {
            let mut seats = configurations.iter().filter_map(|c| c.replica(replica));
            seats.any(|seat| seat.weight > 0)
        };
        let mut furthest: Option<(u64, ReplicaId, Incarnation)> = None;
        for (replica, giver, promise) in self.all() {
            match promise.proof.database {
                DatabaseProof::Unclear
                    if votes(replica) && !planted(Mutant::UnclearDatabaseIgnored) =>
                {
                    return None;
                }
                DatabaseProof::UpTo { seqno } if counts(giver, promise) => {
                    furthest = furthest.max(Some((seqno, replica, giver)));
                }
                _ => {}
            }
        }
        let (reached, _, owner) = furthest?;
        let known = |(_, _, p): (ReplicaId, Incarnation, &Promise)| match planted(
            Mutant::TailCountsAsKnown,
        ) {
            true => p.proof.known + (p.summary.last().1 - p.summary.commit),
            false => p.proof.known,
        };
        let known = self.all().map(known).max()?;
        if reached > known && !planted(Mutant::DatabaseNotHeeded) {
            return Some(Best::Database(owner, reached));
        }
        // Of the logs that hold all that is known to be committed, the best.
        let logs = self.usable();
        let commit = logs.commit();
        let ballot = logs.all().find_map(|(_, _, p)| {
            let knows = p.summary.commit == commit;
            knows.then(|| p.summary.ballot_at(commit)).flatten()
        })?;
        let holds = logs.all().filter(|(_, _, p)| p.summary.has(commit, ballot));
        let required = logs.required_configurations();
        let newest = required.last().map(|(_, configuration)| configuration);
        let seated = |replica| newest.is_some_and(|newest| newest.replica(replica).is_some());
        let best = holds.max_by_key(|(replica, _, p)| (p.summary.last(), seated(*replica)));
        best.map(|(_, owner, _)| Best::Log(owner))
    }
}

impl Group {
    /// Called by the tick: how long a majority has waited for the others.
    pub(crate) fn watch_evidence(&mut self) {
        let timeout_ms = self.context.config().suspect_timeout_ms;
        let here = self
            .log
            .in_every_configuration(|c| self.known().hears_majority(timeout_ms, c));
        if !self.component.is_non_primary() || !here && !planted(Mutant::MinorityReforms) {
            self.component.majority_mut().waits_from(self.context.now());
        }
    }

    /// Others who have gone on, by an operator's word maybe, would have been heard by now (rule 11), and none was.
    pub(crate) fn has_heard_around(&self) -> bool {
        let history = self.log.committed().history;
        let mut statuses = self.peers.statuses();
        let waited = self
            .component
            .majority()
            .has_waited(self.context.now(), self.context.config().suspect_timeout_ms);
        waited && !statuses.any(|s| s.standing == Standing::Primary && s.history == history)
    }

    /// `pc.wait_evidence` has passed.
    pub(crate) fn wants_no_more_evidence(&self) -> bool {
        let wait_ms = self.context.config().wait_evidence_ms;
        wait_ms > 0
            && self
                .component
                .majority()
                .has_waited(self.context.now(), wait_ms)
            || planted(Mutant::MajorityCountsAsAll)
    }

    /// The same, and everybody who is here has promised.
    pub(crate) fn has_waited_for_evidence(&self) -> bool {
        let voters = || self.log.latest().members.iter().filter(|m| m.weight > 0);
        let here =
            |m: &Member| m.replica == self.my_replica() || self.known().voice(m.replica).is_some();
        // Who is here is asked, however late.
        let mut late = voters().filter(|m| here(m) && !self.has_promised_me(m.replica));
        self.wants_no_more_evidence() && late.next().is_none()
    }

    fn has_promised_me(&self, replica: ReplicaId) -> bool {
        let promises = self.role.candidacy().and_then(|c| c.promises.as_ref());
        promises.is_some_and(|promises| promises.giver(replica).is_some())
    }

    /// The promises do not elect this candidate. If nobody can know more than those who have given them, the one with the best
    /// evidence goes on.
    pub(crate) fn go_on_by_evidence(&mut self) {
        let Some(candidacy) = self.role.candidacy() else {
            return;
        };
        let Some(promises) = &candidacy.promises else {
            return;
        };
        if !self.has_heard_around() {
            return;
        }
        // An override that this log lacks is for its owner to go on with.
        if !promises
            .all()
            .all(|(_, giver, p)| self.knows_branch_of(giver, p))
        {
            return;
        }
        let counts = |giver, promise: &Promise| self.shares_branch_with(giver, promise);
        let Some(best) = promises.best_evidence(self.has_waited_for_evidence(), counts) else {
            return;
        };
        let (Best::Log(owner) | Best::Database(owner, _)) = best;
        if owner != self.me() {
            let number = candidacy.ballot.number + 1;
            return self.leave_leadership_to(owner, number, None);
        }
        let text = self.tell_evidence(promises, best);
        let heard = promises.all().map(|(_, giver, _)| giver).collect();
        let logs = promises.usable();
        if !self.has_room_for_override() {
            return;
        }
        let override_id = self.automatic_override();
        let from_database = matches!(best, Best::Database(..));
        self.out.push(Action::Reform {
            override_id,
            from_database,
            heard,
            text,
        });
        match from_database {
            true => self.role.follow(),
            false => {
                let is_override = !planted(Mutant::ReformsAsElected);
                let required = logs.required_configurations();
                self.win(logs, required, is_override.then_some(override_id));
            }
        }
    }

    /// This log holds every override that the promiser knows of.
    fn knows_branch_of(&self, giver: Incarnation, promise: &Promise) -> bool {
        let own = self.log.overrides();
        self.branch_of(giver, promise)
            .iter()
            .all(|id| own.contains(id))
    }

    fn shares_branch_with(&self, giver: Incarnation, promise: &Promise) -> bool {
        self.branch_of(giver, promise) == self.log.overrides()
    }

    /// The overrides in the promiser's log.
    fn branch_of(&self, giver: Incarnation, promise: &Promise) -> Vec<Uuid> {
        if giver == self.me() {
            return self.log.overrides();
        }
        let mut overrides = self
            .known()
            .overrides_of(giver)
            .cloned()
            .unwrap_or_default();
        let in_log = promise.configurations.iter().map(|(_, c)| c);
        for id in in_log.filter_map(|configuration| configuration.override_id) {
            if !overrides.contains(&id) {
                overrides.push(id);
            }
        }
        overrides
    }

    fn tell_evidence(&self, promises: &Promises, best: Best) -> String {
        let name = |giver, replica| self.branches().name_of(giver, replica);
        let forgetful = promises.all().filter(|(_, _, p)| p.amnesiac);
        let forgetful: Vec<_> = forgetful.map(|(r, giver, _)| name(giver, r)).collect();
        let missing: Vec<_> = (promises.may_be_in_force().into_iter())
            .flat_map(|configuration| &configuration.members)
            .filter(|m| m.weight > 0 && promises.of(m).is_none())
            .map(|m| m.name.clone())
            .collect();
        let who = match missing.is_empty() {
            true => "all voters are here".to_owned(),
            false => format!("pc.wait_evidence has passed without {}", missing.join(", ")),
        };
        let what = match best {
            Best::Log(_) => format!(
                "with the write-set log of this node, the best of all, and no database is ahead of what is known to be \
                 committed there. Acknowledged commits above position {} of that log are lost",
                self.log.tail().end()
            ),
            Best::Database(_, seqno) => format!(
                "with the database of this node, which is ahead of all logs, at seqno {seqno}. Acknowledged commits above that \
                 are lost; the others are brought there, by a snapshot if they have to be"
            ),
        };
        format!(
            "half of the votes or more may have forgotten what they acknowledged ({}): {who}, and the cluster goes on {what}",
            forgetful.join(", ")
        )
    }

    /// A process that begins anew, under the same name and with the same connections: it is to found a history on its database.
    /// What it has promised holds.
    pub fn begin_anew(&mut self) {
        let recovered = Recovered {
            promised: self.vote.promised(),
            amnesiac: true,
            lost_views: true,
            log: None,
            // The withdrawn entries lie on the branch that this history leaves; numbers begin anew.
            lasting: Lasting::default(),
        };
        let mut anew = Group::empty(
            self.context.config().clone(),
            &recovered,
            self.context.now(),
        );
        anew.vote.carry_over(&self.vote);
        anew.context = self.context.clone();
        anew.component.left_in(self.log.latest().number);
        std::mem::swap(&mut anew.peers, &mut self.peers);
        std::mem::swap(&mut anew.out, &mut self.out);
        *self = anew;
    }
}

impl Summary {
    /// Ballot of the entry at this position, if it is remembered.
    fn ballot_at(&self, position: Position) -> Option<Ballot> {
        let mut runs = self.runs.iter();
        let run = runs.find(|(_, first, last)| (*first..=*last).contains(&position));
        run.map(|(ballot, ..)| *ballot)
    }
}
