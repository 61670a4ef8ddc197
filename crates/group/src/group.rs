//! The state of the group core: its parts, the functions that they share, and the queries of the driver. The module
//! `dispatch` takes its events.

use trireme_mutants::{Mutant, planted};

use crate::acks::Acks;
use crate::branches::{Branches, branches};
use crate::checkpoint::Checkpoint;
use crate::component::Component;
use crate::config::Config;
use crate::configuration::{Configuration, Member};
use crate::context::Context;
use crate::counters::Counters;
use crate::dissemination::Dissemination;
use crate::election_timer::ElectionTimer;
use crate::elections::{Elections, elections};
use crate::event::Recovered;
use crate::forced_views::ForcedViews;
use crate::founding::{Founding, Support, is_blank};
use crate::ids::{Incarnation, Position, ReplicaId, Term, TimeMs, Uuid};
use crate::known::{Known, known};
use crate::lasting::Lasting;
use crate::leader::{Leader, leader};
use crate::log::Log;
use crate::matching::Matching;
use crate::membership::{Membership, membership};
use crate::message::{ComponentState, Message};
use crate::missing::Missing;
use crate::outbox::Outbox;
use crate::peers::Peers;
use crate::reads::Reads;
use crate::replica::{Replica, replica};
use crate::role::Role;
use crate::vote::Vote;

/// The group core of one process.
#[derive(Clone, Debug, Hash)]
pub struct Group {
    pub(crate) context: Context,

    pub(crate) vote: Vote,
    pub(crate) log: Log,
    pub(crate) matching: Matching,
    pub(crate) role: Role,
    pub(crate) election_timer: ElectionTimer,
    pub(crate) component: Component,
    pub(crate) forced_views: ForcedViews,
    pub(crate) peers: Peers,
    pub(crate) founding: Founding,
    pub(crate) acks: Acks,
    pub(crate) dissemination: Dissemination,
    pub(crate) reads: Reads,
    pub(crate) out: Outbox,
}

impl Group {
    /// The core of a process that is in no view: it waits for peers, or for [`crate::Event::Bootstrap`]. A process with
    /// a log knows its last view, and forms a new one with a majority of that.
    pub fn new(config: Config, recovered: Recovered, now: TimeMs) -> Group {
        let mut group = Group::empty(config, &recovered, now);
        if group.context.config().expect > 0 && planted(Mutant::SupportForgotten) {
            group.vote.forget_promises();
        }
        if let Some(log) = recovered.log {
            group.replica().resume(log);
        }
        // The process has promised this term on an earlier connection, and could not write it down.
        if !group.vote.is_persisted() && !planted(Mutant::OldPromiseNotWritten) {
            group.elections().persist_promise();
        }
        group
    }

    pub(crate) fn empty(config: Config, recovered: &Recovered, now: TimeMs) -> Group {
        Group {
            context: Context::new(config, now),
            vote: Vote::new(recovered),
            log: Log::default(),
            matching: Matching::default(),
            role: Role::default(),
            election_timer: ElectionTimer::new(now),
            component: Component::new(now),
            forced_views: ForcedViews::default(),
            peers: Peers::default(),
            founding: Founding::new(now),
            acks: Acks::default(),
            dissemination: Dissemination::new(&recovered.lasting),
            reads: Reads::default(),
            out: Outbox::default(),
        }
    }

    // ---- lent to the work on several parts ----

    /// Borrows the state that every part may read.
    pub(crate) fn known(&self) -> Known<'_> {
        known!(self)
    }

    pub(crate) fn me(&self) -> Incarnation {
        self.context.me()
    }

    pub(crate) fn my_replica(&self) -> ReplicaId {
        self.context.my_replica()
    }

    pub(crate) fn send(&mut self, to: Incarnation, message: Message) {
        self.out.send(&self.peers, vec![to], message);
    }

    pub(crate) fn elections(&mut self) -> Elections<'_> {
        elections!(self)
    }

    pub(crate) fn leader(&mut self) -> Leader<'_> {
        leader!(self)
    }

    pub(crate) fn membership(&mut self) -> Membership<'_> {
        membership!(self)
    }

    pub(crate) fn replica(&mut self) -> Replica<'_> {
        replica!(self)
    }

    /// Borrows the parts that know of branches.
    pub(crate) fn branches(&self) -> Branches<'_> {
        branches!(self)
    }

    /// Begins anew, under the same incarnation and with the same connections, to found the history on this node's
    /// database. Its promises stay in force.
    pub fn begin_anew(&mut self) {
        let recovered = Recovered {
            promised: self.vote.promised(),
            amnesiac: true,
            lost_views: true,
            log: None,
            // The withdrawn entries lie on the branch that this history leaves. Submission numbers begin anew.
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

    // ---- queries of the driver and the status ----

    /// The component state of this process.
    pub fn component_state(&self) -> ComponentState {
        self.component.state()
    }

    /// True if this member's own vote is a majority of its last view: then it serves without the others.
    pub fn is_majority_alone(&self) -> bool {
        let view = &self.log.committed().configuration;
        view.is_majority(view.weight_of(|m| m.replica == self.my_replica()))
    }

    /// True if this member leads.
    pub fn is_leader(&self) -> bool {
        self.role.is_leader()
    }

    /// The leader, as far as this member knows.
    pub fn leader_member(&self) -> Option<&Member> {
        let holder = match self.is_leader() {
            true => self.me(),
            false => self.known().leader_of(self.vote.promised())?,
        };
        self.log.latest().member(holder)
    }

    /// Last committed configuration.
    pub fn configuration(&self) -> &Configuration {
        &self.log.committed().configuration
    }

    /// The replicas from which this process takes a log: the members of the committed and of the newest configuration,
    /// and the replica of the term. A member that lags behind may obey a leader that its own view does not list. May
    /// repeat.
    pub fn log_sources(&self) -> impl Iterator<Item = ReplicaId> + '_ {
        let committed = &self.log.committed().configuration.members;
        let latest = &self.log.latest().members;
        let members = committed.iter().chain(latest).map(|member| member.replica);
        members.chain([self.vote.promised().replica])
    }

    /// True for a process that began with a log and is in no view yet.
    pub fn is_resumed(&self) -> bool {
        self.component.is_resumed()
    }

    /// True as long as entries that this replica once acknowledged may be missing here (rule 4).
    pub fn is_amnesiac(&self) -> bool {
        self.vote.is_amnesiac()
    }

    /// True as long as configurations that this replica once acknowledged may be missing here, too.
    pub fn has_lost_views(&self) -> bool {
        self.vote.has_lost_views()
    }

    /// The group's replicated state at the commit point.
    pub fn checkpoint(&self) -> &Checkpoint {
        self.log.committed()
    }

    /// Commit point.
    pub fn commit(&self) -> Position {
        self.log.committed().position
    }

    /// Bytes of the payloads in the log tail. Takes time in proportion to its entries.
    pub fn payload_bytes(&self) -> usize {
        self.log.tail().payload_bytes()
    }

    /// Log end.
    pub fn end(&self) -> Position {
        self.log.tail().end()
    }

    /// The promised term.
    pub fn term(&self) -> Term {
        self.vote.promised()
    }

    /// Cluster uuid; nil before the first view.
    pub fn history(&self) -> Uuid {
        self.log.committed().history
    }

    /// True if the peer's last heartbeat names this history, with exactly the forced views that are committed here: its
    /// committed entries are those of this log. A peer that has committed fewer may be about to commit the rest, or may
    /// be on another branch (rule 11).
    pub fn shares_branch(&self, peer: Incarnation) -> bool {
        let own = self.log.committed();
        (self.peers.status_of(peer)).is_some_and(|status| {
            status.history == own.history && status.overrides == own.overrides
        })
    }

    /// The members for which this process waits; None: it does not wait for a majority.
    pub fn missing(&self) -> Option<Missing> {
        self.branches().who_is_missing(self.vote.is_amnesiac())
    }

    /// Returns the members of the view in force that have been silent for `margin_ms` or longer, each with its silence
    /// in ms.
    pub fn late_members(
        &self,
        now: TimeMs,
        margin_ms: TimeMs,
    ) -> impl Iterator<Item = (&Member, TimeMs)> {
        let members = self.log.committed().configuration.members.iter();
        let others = members.filter(|member| member.incarnation != self.me());
        others.filter_map(move |member| {
            let heard_at = self.peers.get(member.incarnation)?.heard_at;
            let silent_ms = now.saturating_sub(heard_at);
            (silent_ms >= margin_ms).then_some((member, silent_ms))
        })
    }

    /// Returns the position up to which the member holds the committed log, by its own acknowledgement in the term in
    /// force. 0: no acknowledgement was heard.
    pub fn held_by(&self, member: Incarnation) -> Position {
        let word = self.acks.of_member(member, self.vote.promised());
        word.min(self.log.committed().position)
    }

    /// The commit point by the leader's last heartbeat. It is beyond [`Self::commit`] on a member whose log lags
    /// behind. None: no leader was heard recently.
    pub fn known_commit(&self) -> Option<Position> {
        let commit = self.log.committed().position;
        if self.is_leader() {
            return Some(commit);
        }
        let peer = self
            .peers
            .get(self.known().leader_of(self.vote.promised())?)?;
        let is_heard =
            self.context.now() <= peer.heard_at + self.context.config().leader_timeout_ms;
        let status = peer.status.as_ref().filter(|_| is_heard)?;
        Some(status.commit.max(commit))
    }

    /// True if [`crate::Event::ForcePrimary`] would have no effect because the history has the greatest number of
    /// forced views.
    pub fn refuses_override(&self) -> bool {
        self.component.is_non_primary() && self.branches().is_full_of_overrides()
    }

    /// The forced views in this log, committed or not.
    pub fn overrides_in_log(&self) -> Vec<Uuid> {
        self.log.overrides()
    }

    /// True if this node has no history, and may found one with others (`pc.bootstrap_expect`).
    pub fn is_blank(&self) -> bool {
        is_blank(self.known(), self.support())
    }

    /// The processes with which this one is connected.
    pub fn connected(&self) -> impl Iterator<Item = Incarnation> {
        self.peers.connected().map(|(incarnation, _)| incarnation)
    }

    /// For a blank node, returns the reason for which it waits, and the addresses where no connected process answers.
    /// None: it is not blank.
    pub fn founding_waits_for(&self) -> Option<(String, &[String])> {
        let text = || self.founding.tell(self.known(), self.support());
        (self.is_blank()).then(|| (text(), self.founding.missing()))
    }

    pub(crate) fn support(&self) -> Support {
        Support::of(&self.vote, &self.component)
    }

    /// The facts of this connection that the next one of this process needs.
    pub fn lasting(&self) -> Lasting {
        Lasting {
            promised: self.vote.promised(),
            withdrawn: self.dissemination.certain_withdrawals(self.me()),
        }
    }

    /// Bytes of others' bulk payloads that wait to be submitted, or are on their way, the missing bytes included.
    pub fn bulk_payloads_len(&self) -> u64 {
        self.dissemination.bulk_payloads_len()
    }

    /// The counters since the start.
    pub fn counters(&self) -> Counters {
        self.out.counters()
    }

    /// The options that may change at run time.
    pub fn config_mut(&mut self) -> &mut Config {
        self.context.config_mut()
    }
}
