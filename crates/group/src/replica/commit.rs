//! The commit point: acknowledgements, deliveries, and the start after a restart (rules 4, 6, 14).
//!
//! In: acknowledgements, the leader's commit point, a recovered log. Out: deliveries, and what follows from a committed
//! configuration.

use trireme_mutants::{Mutant, planted};

use super::Replica;
use crate::configuration::Configuration;
use crate::entry::Entry;
use crate::event::{Action, RecoveredLog};
use crate::ids::{Incarnation, Position, Term};
use crate::log::{Committed, Delivers};
use crate::log_reader::LogReader;

impl Replica<'_> {
    // ---- acknowledgements and the commit point ----

    /// Takes an acknowledgement, and the member's commit point. What the member holds in the term in force agrees with the
    /// leader's log, so its word counts even if it has no vote: it may be the only one that has heard the last
    /// acknowledgement of a member that is gone (simulator, seed 3600107389 of forks).
    pub(crate) fn ack(
        &mut self,
        from: Incarnation,
        term: Term,
        position: Position,
        commit: Position,
    ) {
        self.record_ack(from, term, position);
        if term == self.vote.promised() {
            if let Some(leader) = self.role.leader_mut() {
                leader.replication.acknowledged(from, position);
            }
            self.learn_commit(commit.min(position));
        }
    }

    /// Records an acknowledgement. It counts only in its own term (rule 1), and only from the latest incarnation of its
    /// replica (rule 14).
    pub(super) fn record_ack(&mut self, from: Incarnation, term: Term, position: Position) {
        let Some(peer) = self.peers.get(from).filter(|peer| peer.up) else {
            return;
        };
        let replica = peer.replica;
        if !self.known().has_duplicate(replica, from) {
            self.acks.record(replica, from, term, position);
        }
    }

    /// Commits as far as the acknowledgements allow.
    pub(crate) fn advance_commit(&mut self) {
        if !self.matching.is_matched() && !self.role.is_leader() {
            return;
        }
        while let Some(position) = self.log.committable(self.vote.promised(), |c| {
            let own = (self.my_replica(), self.own_ack());
            self.acks.quorum(c, self.vote.promised(), own)
        }) {
            self.commit_to(position);
        }
        if let Some(leader) = self.role.leader() {
            // This leader's log is the group's now, so this replica is intact, whatever it once forgot.
            if self.log.committed().position >= leader.start() {
                self.vote.becomes_intact();
            }
        }
    }

    /// Takes the commit point of a process whose log agrees with the leader's up to there. It holds for this log as far
    /// as that agrees, too.
    pub(crate) fn learn_commit(&mut self, commit: Position) {
        let commit = match planted(Mutant::UncommittedDelivered) {
            true => self.own_ack(),
            false => commit.min(self.own_ack()),
        };
        if commit > self.log.committed().position {
            self.commit_to(commit);
        }
    }

    fn commit_to(&mut self, position: Position) {
        let mut delivers = true;
        while self.log.committed().position < position {
            let committed = self.log.commit_next();
            delivers = committed.delivers != Delivers::Nothing;
            self.deliver(committed);
        }
        if !delivers {
            self.out.push(Action::Passed { position });
        }
    }

    fn deliver(&mut self, committed: Committed) {
        let position = committed.position;
        if let Some(id) = committed.submission {
            let outputs = self
                .dissemination
                .committed(self.context.me(), id, position);
            self.membership().disseminate(outputs);
        }
        match committed.delivers {
            Delivers::Nothing => {}
            Delivers::FromLog => self.out.deliver_from_log(position),
            Delivers::This(delivery) => self.out.push(Action::Deliver { position, delivery }),
        }
        if let Some((before, now)) = committed.changed {
            self.configured(&before, &now);
        }
    }

    /// Tells all parts that a configuration is committed.
    fn configured(&mut self, before: &Configuration, now: &Configuration) {
        let me = self.context.me();
        let at = self.log.committed().position;
        (self.forced_views).committed((at, self.context.now()), before, now);
        (self.component).keep_joined(|member| now.member(member).is_some());
        let latest = self.log.latest().clone();
        let members = now.members.iter().chain(&latest.members);
        let members = members.map(|m| m.incarnation).collect();
        let outputs = self.dissemination.configured(members);
        self.membership().disseminate(outputs);
        if now.override_id.is_some() {
            self.leave_branch();
        }
        if now.member(me).is_some() {
            if before.member(me).is_none() {
                // After a long absence the submission numbers begin anew ([`crate::Numbers`]).
                let number = self.log.committed().last_number(self.my_replica(), me);
                self.membership().fail_covered(number.unwrap_or(0));
            }
            self.membership().admitted(now);
        }
        if let Some(leader) = self.role.leader_mut() {
            leader.replication.configured(now);
            // The heartbeat says that this leader is primary by now. Otherwise a member that has committed this view
            // would become non-primary again.
            self.membership().announce();
        }
        let is_member = |m| now.member(m).is_some() || latest.member(m).is_some();
        self.peers.keep(is_member);
        let has_seat = |replica| self.log.has_seat(replica);
        self.acks.keep(has_seat, |peer| self.peers.is_up(peer));
        if now.member(me).is_none() && (before.member(me).is_some() || self.loses_seat(before, now))
        {
            self.membership().excluded();
        }
    }

    /// The log is on another branch from now on.
    pub(super) fn leave_branch(&mut self) {
        let outputs = self.dissemination.leave_branch();
        self.membership().disseminate(outputs);
    }

    /// True if a configuration removes the replica of this restarted process, which the configuration before still
    /// listed.
    fn loses_seat(&self, before: &Configuration, now: &Configuration) -> bool {
        let has =
            |configuration: &Configuration| configuration.replica(self.my_replica()).is_some();
        self.component.is_resumed() && has(before) && !has(now)
    }

    // ---- the log in memory ----

    /// Drops committed entries from memory. A leader keeps the entries that connected members lack, within bounds.
    pub(crate) fn trim(&mut self) {
        let leader = self.role.leader();
        let lacking = leader.and_then(|leader| leader.replication.least_acked());
        let tail_bytes = self.context.config().tail_bytes;
        self.log.trim(tail_bytes, lacking);
    }

    /// Reads payloads back from the log for a candidate. A new leader appends the voided submissions, and all entries
    /// above them, again; the payloads that are no longer in memory must be read first.
    pub(crate) fn read_left(&mut self, log: &dyn LogReader) {
        let Some(from) = self.log.take_wanted() else {
            return;
        };
        if !self.role.is_candidate() {
            return;
        }
        let (left, mut next, mut found) = (self.log.tail().left(), from, Vec::new());
        while next <= left {
            let Ok(run) =
                log.read_run(next, left, self.context.config().thresholds.read_left_bytes)
            else {
                return self.log.want_from(from); // the next batch tries again
            };
            let Some(last) = run.last() else {
                return; // the log lacks them: the candidacy fails
            };
            next = last.position + 1;
            found.extend(run);
        }
        if self.log.restore(found) {
            let won = self.elections().count_promises();
            self.membership().lead(won);
        }
    }

    // ---- after a restart ----

    /// Goes on with the log of an earlier process, and delivers the entries that are known to be committed again.
    pub(crate) fn resume(&mut self, log: RecoveredLog) {
        let ids = log.entries.iter().filter_map(Entry::submission);
        for id in ids {
            let outputs = self.dissemination.ordered(id);
            debug_assert!(outputs.is_empty(), "nothing is fetched yet");
        }
        let commit = self.log.resume(log);
        self.component.resume();
        // A log with entries of a term has promised that term, although the promise may not have reached the disk.
        let end_term = self.log.tail().end_term();
        if end_term > self.vote.promised() {
            self.elections().promise_term(end_term);
        }
        self.commit_to(commit);
        // No view lists this incarnation yet. The first that does makes it primary, whatever number a pending
        // configuration in this log has.
        let number = self.log.committed().configuration.number;
        self.component.left_in(number);
    }
}
