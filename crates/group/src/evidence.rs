//! How a cluster goes on when its intact voters are too few for an election (rule 4, "All members are here").
//!
//! In: the promises of one term. Out: the process whose log, or whose database, the cluster goes on with. No process
//! outside the promisers can know more. A database proves that its entries were committed (rule 5).

use std::collections::BTreeSet;

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::elections::{Elections, Won};
use crate::event::Action;
use crate::ids::{Incarnation, ReplicaId, Uuid};
use crate::message::{DatabaseProof, Promise};
use crate::promises::Promises;

/// The best evidence, with which the cluster goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Best {
    /// The log of this process.
    Log(Incarnation),
    /// The database of this process: no log is known to reach it.
    Database(Incarnation, u64),
}

impl Promises {
    /// Returns the last committed configuration, and every later one in any promiser's log. If enough logs have kept
    /// their configurations, every committed one is among these.
    fn may_be_in_force(&self) -> Vec<&Configuration> {
        let commit = self.commit();
        let promises = || self.all().map(|(_, _, promise)| promise);
        let committed = self.committed_configuration();
        let later = promises().flat_map(|p| p.configurations.iter().skip(1));
        let later = later
            .filter(|(position, _)| *position > commit && !planted(Mutant::PendingVotersNotHeard));
        let all = committed.into_iter().chain(later);
        all.map(|(_, configuration)| configuration).collect()
    }

    /// The promises of replicas with a seat. A process that has left cannot lead: neither its log nor its database
    /// counts, nor its commit point.
    fn seated(&self) -> Promises {
        let configurations = self.may_be_in_force();
        let is_seated = |replica| configurations.iter().any(|c| c.replica(replica).is_some());
        let mut seated = self.clone();
        seated.retain(|replica| is_seated(replica) || planted(Mutant::LeaversLogPreferred));
        seated
    }

    /// True if no other process can know more than these promisers. With `without_some`, a majority is enough, because
    /// it has waited long enough for the others. `elsewhere`: these replicas are known to be on another branch.
    pub(crate) fn are_all(&self, without_some: bool, elsewhere: &BTreeSet<ReplicaId>) -> bool {
        let made = self.without_unmade_views();
        let configurations = made.may_be_in_force();
        if configurations.is_empty() {
            return false;
        }
        let enough = |configuration: &&Configuration| {
            let is_here = |m: &Member| self.of(m.replica).is_some();
            let here = configuration.weight_of(is_here);
            let keeps_views = |m: &Member| self.of(m.replica).is_some_and(Promise::keeps_views);
            // Also members without a vote: the cluster may have gone on with the log of one (simulator, seed 7410441733 of
            // `blackouts`). Not those of another branch: nobody here can have gone on with their logs.
            let is_awaited = |m: &Member| m.weight > 0 || !elsewhere.contains(&m.replica);
            let mut awaited = configuration.members.iter().filter(|m| is_awaited(m));
            let all =
                match planted(Mutant::PendingVotersNotHeard) || planted(Mutant::LearnerNotHeard) {
                    true => here == configuration.total_weight(),
                    false => awaited.all(is_here),
                };
            let is_majority = configuration.is_majority(here) || planted(Mutant::MinorityReforms);
            let enough = here > 0 && all || without_some && is_majority;
            // Every committed configuration is in the log of one of these.
            enough && configuration.is_half(configuration.weight_of(keeps_views))
        };
        // A leader that some of these promises elect later would not know the forced view that this way on makes.
        let may_elect = || match planted(Mutant::PendingViewElectsNobody) {
            true => self.elect(&self.required_configurations()[..1]),
            false => self.may_elect() || made.may_elect(),
        };
        configurations.iter().all(enough) && !may_elect()
    }

    /// The forced views that the promiser had committed, and those in the log of its promise. None: they are not known.
    fn branch_of(&self, replica: ReplicaId) -> Option<Vec<Uuid>> {
        let mut overrides = self.overrides_of(replica)?.clone();
        let in_log = self.of(replica)?.configurations.iter().map(|(_, c)| c);
        for id in in_log.filter_map(|configuration| configuration.override_id) {
            if !overrides.contains(&id) {
                overrides.push(id);
            }
        }
        Some(overrides)
    }

    /// Returns the best evidence of these promises: all that there are, of replicas with a seat, without unmade views.
    /// A database counts if it is on this branch. None: the evidence cannot be compared.
    fn best_evidence(&self, branch: &[Uuid]) -> Option<Best> {
        let configurations = self.may_be_in_force();
        let seats = |replica| {
            configurations
                .iter()
                .filter_map(move |c| c.replica(replica))
        };
        let votes = |replica| seats(replica).any(|seat| seat.weight > 0);
        let counts = |replica| self.branch_of(replica).is_some_and(|b| b == branch);
        let mut furthest: Option<(u64, ReplicaId, Incarnation)> = None;
        for (replica, giver, promise) in self.all() {
            match promise.proof.database {
                DatabaseProof::Unclear
                    if votes(replica) && !planted(Mutant::UnclearDatabaseIgnored) =>
                {
                    return None;
                }
                DatabaseProof::UpTo { seqno } if counts(replica) => {
                    furthest = furthest.max(Some((seqno, replica, giver)));
                }
                _ => {}
            }
        }
        let known = |(_, _, p): (ReplicaId, Incarnation, &Promise)| match planted(
            Mutant::TailCountsAsKnown,
        ) {
            true => p.proof.known + (p.summary.last().1 - p.summary.commit),
            false => p.proof.known,
        };
        let known = self.all().map(known).max()?;
        match furthest {
            Some((reached, _, owner)) if reached > known && !planted(Mutant::DatabaseNotHeeded) => {
                return Some(Best::Database(owner, reached));
            }
            Some(_) => {}
            // There is no database to compare with.
            None if configurations.iter().all(|c| has_only_arbitrators(c)) => {}
            None => return None,
        }
        // Choose the best log among those that hold everything known to be committed.
        let logs = self.usable();
        let commit = logs.commit();
        let term = logs.all().find_map(|(_, _, p)| {
            let knows = p.summary.commit == commit;
            knows.then(|| p.summary.term_at(commit)).flatten()
        })?;
        let holds = (logs.all()).filter(|(_, _, p)| p.summary.has(commit, term));
        let required = logs.required_configurations();
        let newest = required.last().map(|(_, configuration)| configuration);
        let seated = |replica| newest.is_some_and(|newest| newest.replica(replica).is_some());
        let best = holds.max_by_key(|(replica, _, p)| (p.summary.last(), seated(*replica)));
        best.map(|(_, owner, _)| Best::Log(owner))
    }
}

/// True if no voter has a database. Then the data nodes have left with a committed view, so their databases are not
/// ahead of the voters' logs.
fn has_only_arbitrators(configuration: &Configuration) -> bool {
    let mut voters = configuration.members.iter().filter(|m| m.weight > 0);
    voters.all(|m| m.arbitrator) && !planted(Mutant::ArbitratorNeedsDatabase)
}

impl Elections<'_> {
    /// Called by the tick: restarts the wait for evidence unless this node is non-primary and hears a majority.
    pub(crate) fn watch_evidence(&mut self) {
        let timeout_ms = self.context.config().suspect_timeout_ms;
        let here = self.known().hears_every_majority(timeout_ms);
        if !self.component.is_non_primary() || !here && !planted(Mutant::MinorityReforms) {
            self.component.majority_mut().waits_from(self.context.now());
        }
    }

    /// True if this node has waited long enough, and has heard no primary member of its history. Members that have gone
    /// on, maybe by an override, would have been heard by now (rule 11).
    pub(crate) fn has_heard_around(&self) -> bool {
        let waited = self
            .component
            .majority()
            .has_waited(self.context.now(), self.context.config().suspect_timeout_ms);
        waited && !self.branches().hears_primary()
    }

    /// True if `pc.wait_evidence` has passed.
    pub(crate) fn wants_no_more_evidence(&self) -> bool {
        let wait_ms = self.context.config().wait_evidence_ms;
        wait_ms > 0
            && self
                .component
                .majority()
                .has_waited(self.context.now(), wait_ms)
            || planted(Mutant::MajorityCountsAsAll)
    }

    /// True if `pc.wait_evidence` has passed, and every voter that is here has promised.
    pub(crate) fn has_waited_for_evidence(&self) -> bool {
        let voters = || self.log.latest().members.iter().filter(|m| m.weight > 0);
        let here =
            |m: &Member| m.replica == self.my_replica() || self.known().voice(m.replica).is_some();
        // Wait for a voter that is here, however late it came.
        let mut late = voters().filter(|m| here(m) && !self.has_promised_me(m.replica));
        self.wants_no_more_evidence() && late.next().is_none()
    }

    /// The replicas whose processes are heard, and are on a branch without this log's forced views.
    pub(crate) fn elsewhere(&self) -> BTreeSet<ReplicaId> {
        let (known, timeout_ms) = (self.known(), self.context.config().suspect_timeout_ms);
        let heard = (self.peers.connected()).filter(|(_, peer)| known.hears(timeout_ms, peer));
        let elsewhere = heard.filter(|(name, _)| self.branches().has_gone_elsewhere(*name));
        elsewhere.map(|(_, peer)| peer.replica).collect()
    }

    fn has_promised_me(&self, replica: ReplicaId) -> bool {
        let promises = self.role.candidacy().and_then(|c| c.promises.as_ref());
        promises.is_some_and(|promises| promises.giver(replica).is_some())
    }

    /// The promises do not elect this candidate. If no other process can know more than the promisers, the owner of the
    /// best evidence goes on.
    #[must_use = "the winner must lead"]
    pub(crate) fn go_on_by_evidence(&mut self) -> Option<Won> {
        let candidacy = self.role.candidacy()?;
        let all = candidacy.promises.as_ref()?;
        if !self.has_heard_around()
            || !all.are_all(self.has_waited_for_evidence(), &self.elsewhere())
        {
            return None;
        }
        // If a promiser knows a forced view that this log lacks, or may know one, that promiser must go on.
        let made = all.without_unmade_views();
        let own = self.log.overrides();
        let is_known = |branch: Vec<Uuid>| branch.iter().all(|id| own.contains(id));
        let mut replicas = made.all().map(|(replica, ..)| replica);
        if !replicas.all(|replica| made.branch_of(replica).is_some_and(is_known)) {
            return None;
        }
        let promises = made.seated();
        // This candidate may have no seat: then it asks the owner of the best evidence to go on.
        let own_branch = made.branch_of(self.my_replica())?;
        let best = promises.best_evidence(&own_branch)?;
        let (Best::Log(owner) | Best::Database(owner, _)) = best;
        if owner != self.me() {
            let number = candidacy.term.number + 1;
            self.leave_leadership_to(owner, number, None);
            return None;
        }
        let text = self.tell_evidence(all, best);
        let heard = all.all().map(|(_, giver, _)| giver).collect();
        let logs = promises.usable();
        if !self.has_room_for_override() {
            return None;
        }
        let override_id = self.automatic_override();
        let from_database = matches!(best, Best::Database(..));
        let won = match from_database {
            true => {
                self.role.follow();
                None
            }
            false => {
                let is_override = !planted(Mutant::ReformsAsElected);
                let required = logs.required_configurations();
                // None: entries must be read first, and the candidacy goes on.
                Some(self.win(logs, required, is_override.then_some(override_id))?)
            }
        };
        self.out.push(Action::Reform {
            override_id,
            from_database,
            past: own_branch,
            heard,
            text,
        });
        won
    }

    fn tell_evidence(&self, promises: &Promises, best: Best) -> String {
        let name = |giver, replica| self.branches().name_of(giver, replica);
        let elsewhere = self.elsewhere();
        let forgetful = promises.all().filter(|(_, _, p)| p.amnesiac);
        let forgetful: Vec<_> = forgetful.map(|(r, giver, _)| name(giver, r)).collect();
        let missing: Vec<_> = (promises.may_be_in_force().into_iter())
            .flat_map(|configuration| &configuration.members)
            .filter(|m| promises.of(m.replica).is_none() && !elsewhere.contains(&m.replica))
            .map(|m| m.name.clone())
            .collect();
        let who = match missing.is_empty() {
            true => "all members are here".to_owned(),
            false => format!("pc.wait_evidence has passed without {}", missing.join(", ")),
        };
        let what = match best {
            Best::Log(_) => format!(
                "with the write-set log of this node, the best of all; no database is ahead of its commit point. \
                 Acknowledged commits above position {} of that log are lost",
                self.log.tail().end()
            ),
            Best::Database(_, seqno) => format!(
                "with the database of this node, which is ahead of all logs, at seqno {seqno}. Acknowledged commits \
                 above that seqno are lost; the other nodes catch up to it, by a snapshot if necessary"
            ),
        };
        format!(
            "too many members may have forgotten entries that they acknowledged ({}) for an election: {who}, and \
             the cluster goes on {what}",
            forgetful.join(", ")
        )
    }
}

impl Promise {
    /// True if this replica has every configuration that it acknowledged.
    pub(crate) fn keeps_views(&self) -> bool {
        !self.lost_views || planted(Mutant::LostViewsVouch)
    }
}
