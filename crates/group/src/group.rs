//! The state machine's state, its entry points, and what all of its parts share.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trireme_mutants::{Mutant, planted};

use crate::checkpoint::Checkpoint;
use crate::complaints::Complaints;
use crate::configuration::{Configuration, Member};
use crate::election::Candidacy;
use crate::entry::Entry;
use crate::event::{Action, Event, HardState, Recovered};
use crate::fetching::Fetching;
use crate::follower::{HOLE_PATIENCE_MS, SUMMARY_RETRY_MS};
use crate::founding::{Expects, Listed};
use crate::ids::{Ballot, Incarnation, Position, ReplicaId, TimeMs, Uuid};
use crate::membership::Leaving;
use crate::message::{Message, Standing, Status, WireEntry, Wish};
use crate::office::Office;
use crate::read::Reads;
use crate::round_trips::RoundTrips;
use crate::split::Fork;
use crate::spreading::Spreading;
use crate::submissions::Submissions;
use crate::tail::Tail;

/// What a group core is told once.
#[derive(Clone, Debug, Hash)]
pub struct Config {
    /// This member; `weight` and `voter` are ignored.
    pub me: Member,
    /// Heartbeat period.
    pub heartbeat_ms: u64,
    /// Silence of the sequencer after which its office may be taken (rule 2).
    pub office_timeout_ms: u64,
    /// Silence after which a member is removed, and without a majority non-primary declared
    /// (`evs.suspect_timeout`, rule 10).
    pub suspect_timeout_ms: u64,
    /// `pc.ignore_sb`: half of the votes may go on alone.
    pub ignore_split_brain: bool,
    /// `pc.ignore_quorum`: any component may go on.
    pub ignore_quorum: bool,
    /// True if an [`Action::Append`] carried out is as durable as promised (modes memory and os).
    pub append_is_durable: bool,
    /// Committed entries are dropped from memory beyond this size.
    pub tail_bytes: usize,
    /// Bytes sent ahead of a member's acknowledgements while it catches up.
    pub window_bytes: usize,
    /// A submission beyond this size is to be spread before it is submitted ([`Group::spread`]).
    pub large_bytes: usize,
    /// Such a one is fetched in parts of this size, at most 1 MiB.
    pub part_bytes: u32,
    /// From this size on it is given to the log in pieces, ahead of its entry ([`Action::Stage`]): in a
    /// file of its own.
    pub staged_bytes: u32,
    /// What others have not submitted yet takes so much memory at most, but for one payload.
    pub parcels_bytes: u64,
    /// `repl.sequencer`.
    pub wish: Wish,
    /// True while this member may be given the office: it is synced.
    pub able: bool,
    /// True if round trips and silences are measured, and the office moves by them.
    pub measures: bool,
    /// `pc.bootstrap_expect`, if this node has no history at all: so many nodes found a cluster together;
    /// 0: it does not take part.
    pub expect: u32,
}

impl Config {
    /// The defaults for a member.
    pub fn new(me: Member) -> Config {
        Config {
            me,
            heartbeat_ms: 100,
            office_timeout_ms: 400,
            suspect_timeout_ms: 5_000,
            ignore_split_brain: false,
            ignore_quorum: false,
            append_is_durable: true,
            tail_bytes: 16 << 20,
            window_bytes: 8 << 20,
            large_bytes: 1 << 20,
            part_bytes: 64 << 10,
            staged_bytes: 16 << 20,
            parcels_bytes: 2 << 30,
            wish: Wish::Auto,
            able: true,
            measures: true,
            expect: 0,
        }
    }
}

/// Entries dropped from memory at a time: the rest can wait for the next event.
const TRIMMED_AT_ONCE: Position = 4096;

/// The log cannot be read at the moment, by a lack that passes: the same is to be asked again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// The part of the log that the core does not hold in memory.
pub trait LogReader {
    /// The entry at `position`, None if the log does not reach back to it.
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow>;

    /// Entries from `from` to `last` at most, in order, until they exceed `max_bytes`; at least one if the log
    /// reaches back to `from`.
    fn read_run(
        &self,
        from: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, NotNow> {
        let (mut run, mut bytes) = (Vec::new(), 0);
        for position in from..=last {
            let entry = match self.read(position) {
                Ok(Some(entry)) => entry,
                Err(NotNow) if run.is_empty() => return Err(NotNow),
                _ => break,
            };
            bytes += entry.size_bytes();
            if bytes > max_bytes && !run.is_empty() {
                break;
            }
            run.push(entry);
        }
        Ok(run)
    }
}

/// Counts for status variables and the simulator's coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Times that this member took the office.
    pub offices_taken: u64,
    /// Times that it handed the office over and was relieved of it.
    pub offices_handed: u64,
    /// Times that it took the office from a sequencer that was alive and had not offered it.
    pub offices_needless: u64,
    /// Hand-overs that the successor did not take up in time.
    pub offices_kept: u64,
    /// Log suffixes dropped.
    pub truncations: u64,
    /// Log catch-ups asked for.
    pub summaries_sent: u64,
    /// Checkpoints installed.
    pub installs: u64,
    /// Withdrawn submissions replaced by voids.
    pub voided: u64,
    /// Large payloads fetched from their origins.
    pub parcels: u64,
    /// Large payloads fetched from a sequencer's log.
    pub logged: u64,
    /// Times that an operator was told of a split brain.
    pub splits: u64,
}

/// A peer process, connected now or once.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Peer {
    pub replica: ReplicaId,
    pub up: bool,
    /// Its listener refused a connection (rule 10).
    pub dead: bool,
    pub heard_at: TimeMs,
    pub status: Option<Status>,
    /// It has no history, and this is what it waits for.
    pub expects: Option<Expects>,
    pub round_trips: RoundTrips,
    /// It is in another cluster, and that was said.
    pub told_foreign: bool,
}

/// A member's latest acknowledgement.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct PeerAck {
    pub incarnation: Incarnation,
    pub ballot: Ballot,
    pub position: Position,
}

/// What this member does in the group. A step that ends a borrow of it matches on it again; the
/// other arm of such a second match is not reached.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Role {
    Follower,
    Candidate(Candidacy),
    Sequencer(Box<Office>),
}

/// The group core of one process.
#[derive(Clone, Debug, Hash)]
pub struct Group {
    pub(crate) config: Config,
    pub(crate) now: TimeMs,

    // What survives, or is said to.
    pub(crate) promised: Ballot,
    pub(crate) persisted: Ballot,
    pub(crate) amnesiac: bool,
    /// Having acknowledged up to here, this member is intact again (rule 4).
    pub(crate) intact_at: Option<Position>,
    /// It began with a log, and was in no view yet since.
    pub(crate) resumed: bool,

    // The log.
    pub(crate) tail: Tail,
    pub(crate) committed: Checkpoint,
    pub(crate) durable: Position,

    pub(crate) role: Role,
    pub(crate) standing: Standing,
    /// The sequencer's log and this one have met, in the promised ballot.
    pub(crate) matched: bool,
    /// Up to here the log is the sequencer's, in the promised ballot; what lies beyond may be a
    /// suffix of an older ballot that will be dropped (rule 1).
    pub(crate) agreed: Position,
    /// Another process is seated for the own data directory (rule 14).
    pub(crate) is_copy: bool,
    /// The sequencer of the promised ballot has other committed entries than this log.
    pub(crate) forked: bool,
    /// When that was last said.
    pub(crate) told_forked_at: Option<TimeMs>,
    /// The longest list of overrides seen that extends the own one (rule 11).
    pub(crate) known_overrides: Vec<Uuid>,
    /// The last one committed while this process looked on.
    pub(crate) fork: Option<Fork>,
    pub(crate) peers: BTreeMap<Incarnation, Peer>,
    pub(crate) listed: Listed,
    pub(crate) acks: BTreeMap<ReplicaId, PeerAck>,
    /// Order records whose payload, or predecessor's payload, has not come in yet.
    pub(crate) incoming: VecDeque<WireEntry>,
    pub(crate) submissions: Submissions,
    /// Own payloads that the others are to hold before they are submitted.
    pub(crate) spreading: Spreading,
    /// Such payloads of the others.
    pub(crate) fetching: Fetching,
    pub(crate) reads: Reads,
    /// Members that the replicated state calls joined.
    pub(crate) joined: BTreeSet<Incarnation>,
    /// Position of the configuration in force.
    pub(crate) configured_at: Position,
    pub(crate) leaving: Option<Leaving>,
    /// Has left for good: it never asks to be admitted again under this incarnation.
    pub(crate) gone: bool,

    /// Last word of the promised ballot's sequencer (or candidate).
    pub(crate) sequencer_heard_at: TimeMs,
    /// The longest silence that sequencers have broken of late.
    pub(crate) silence_ms: TimeMs,
    /// Last word of a sequencer that had a majority.
    pub(crate) primary_heard_at: TimeMs,
    pub(crate) heartbeat_at: TimeMs,
    pub(crate) join_sent_at: TimeMs,
    /// When it was last said who is missing.
    pub(crate) told_missing_at: TimeMs,
    /// When it was last said that a branch of the history was met which excludes this one.
    pub(crate) told_split_at: Option<TimeMs>,
    pub(crate) summary_sent_at: Option<TimeMs>,
    /// Since when the first of `incoming` misses its payload.
    pub(crate) hole_since: Option<TimeMs>,
    /// Where the own log ended when the sequencer's last heartbeat came in.
    pub(crate) end_at_status: Option<Position>,
    /// From here on the log has to be read before the office can be taken.
    pub(crate) read_left_from: Option<Position>,
    /// When this member was last asked to take the office.
    pub(crate) offered_at: Option<TimeMs>,
    pub(crate) election_at: TimeMs,
    pub(crate) elections_failed: u32,
    /// Who was left the office for its longer log by this member's last attempt, and has not been heard in it.
    pub(crate) gave_way_to: Option<Incarnation>,
    /// Highest ballot number that anybody was heard to have promised.
    pub(crate) number_seen: u64,
    pub(crate) component: Vec<Incarnation>,
    /// View number known when non-primary was declared; 0: never was in a view.
    pub(crate) left_number: u64,
    pub(crate) last_ack_sent: (Ballot, Position),
    /// Sends that wait until a promise is on disk.
    pub(crate) held: Vec<(Ballot, Incarnation, Message)>,
    pub(crate) counters: Counters,
    pub(crate) complaints: Complaints,
    pub(crate) out: Vec<Action>,
}

impl Group {
    /// A process that is in no view: it waits for peers, or for [`Event::Bootstrap`]. One with a log
    /// knows its last view, and re-forms it with a majority of it.
    pub fn new(config: Config, recovered: Recovered, now: TimeMs) -> Group {
        let mut group = Group::empty(config, &recovered, now);
        if group.config.expect > 0 && planted(Mutant::SupportForgotten) {
            (group.promised, group.persisted) = Default::default();
        }
        if let Some(log) = recovered.log {
            group.resume(log);
        }
        group
    }

    fn empty(config: Config, recovered: &Recovered, now: TimeMs) -> Group {
        Group {
            config,
            now,
            promised: recovered.promised,
            persisted: recovered.promised,
            amnesiac: recovered.amnesiac,
            intact_at: None,
            resumed: false,
            tail: Tail::default(),
            committed: Checkpoint::default(),
            durable: 0,
            role: Role::Follower,
            standing: Standing::Outside,
            matched: false,
            agreed: 0,
            is_copy: false,
            forked: false,
            told_forked_at: None,
            known_overrides: Vec::new(),
            fork: None,
            peers: BTreeMap::new(),
            listed: Listed::default(),
            acks: BTreeMap::new(),
            incoming: VecDeque::new(),
            submissions: Submissions::default(),
            spreading: Spreading::default(),
            fetching: Fetching::default(),
            reads: Reads::default(),
            joined: BTreeSet::new(),
            configured_at: 0,
            leaving: None,
            gone: false,
            sequencer_heard_at: now,
            silence_ms: 0,
            primary_heard_at: now,
            heartbeat_at: now,
            join_sent_at: 0,
            told_missing_at: now,
            told_split_at: None,
            summary_sent_at: None,
            hole_since: None,
            end_at_status: None,
            read_left_from: None,
            offered_at: None,
            election_at: 0,
            elections_failed: 0,
            gave_way_to: None,
            number_seen: 0,
            component: Vec::new(),
            left_number: 0,
            last_ack_sent: (Ballot::default(), 0),
            held: Vec::new(),
            counters: Counters::default(),
            complaints: Complaints::default(),
            out: Vec::new(),
        }
    }

    /// Takes an event. Call [`Group::flush`] after a batch of events.
    pub fn handle(&mut self, now: TimeMs, event: Event) {
        let late_ms = now.saturating_sub(self.heartbeat_at + self.config.heartbeat_ms);
        self.now = self.now.max(now);
        match event {
            Event::Bootstrap {
                history,
                overrides,
                override_id,
            } => self.bootstrap(history, overrides, override_id),
            Event::PeerUp {
                replica,
                incarnation,
            } => self.peer_up(replica, incarnation),
            Event::PeerDown { incarnation } => self.peer_down(incarnation),
            Event::PeerDead { incarnation } => {
                if let Some(peer) = self.peers.get_mut(&incarnation) {
                    peer.dead = !peer.up;
                }
            }
            Event::PeerDrained { incarnation } => self.peer_drained(incarnation),
            Event::Message { from, message } => self.message(from, message),
            Event::Appended { position } => {
                self.durable = self.durable.max(position.min(self.tail.end()))
            }
            Event::Persisted { promised } => self.persisted(promised),
            Event::Tick => self.tick(late_ms),
            Event::Leave => self.leave(),
            Event::ForcePrimary { override_id } => self.force_primary(override_id),
            Event::SetWeight { weight } => self.set_weight(weight),
            Event::Joined { position, members } => {
                // Who was removed since, and admitted again, has to join again.
                if position >= self.configured_at {
                    self.joined = members.into_iter().collect();
                }
            }
            Event::Read { token } => self.reads.ask(token),
            Event::Listed { members, missing } => self.listed(members, missing),
        }
    }

    /// Ends a batch: orders, feeds, acknowledges, commits; then gives out all actions.
    pub fn flush(&mut self, log: &dyn LogReader, out: &mut Vec<Action>) {
        self.read_left(log);
        self.take_payloads();
        self.fetch_logged();
        // Committing a configuration can unlock ordering, and ordering in a group of one commits.
        loop {
            let before = (self.tail.end(), self.committed.position);
            self.order();
            self.advance_commit();
            if (self.tail.end(), self.committed.position) == before {
                break;
            }
        }
        self.feed(log);
        self.serve_fetches(log);
        // Nothing refers to a payload any more by the time that it is submitted.
        self.pursue_spreading();
        self.offer_office();
        self.acknowledge();
        self.start_reads();
        self.trim();
        out.append(&mut self.out);
    }

    /// When [`Event::Tick`] is due at the latest.
    pub fn next_deadline(&self) -> TimeMs {
        let mut deadline = self.heartbeat_at + self.config.heartbeat_ms;
        let asked = self.summary_sent_at.map_or(0, |at| at + SUMMARY_RETRY_MS);
        if let Some(since) = self.hole_since.filter(|_| !self.awaits_large()) {
            deadline = deadline.min((since + HOLE_PATIENCE_MS).max(asked).max(self.now + 1));
        }
        if let Some(at) = self.stands_at().filter(|at| *at > self.now) {
            deadline = deadline.min(at);
        }
        match self.feeds_from_log_at() {
            Some(at) => deadline.min(at),
            None => deadline,
        }
    }

    fn message(&mut self, from: Incarnation, message: Message) {
        if !self.plausible(from, &message) {
            return self.complain(from, &message);
        }
        if self.is_foreign(from) {
            return self.foreign_message(from, message);
        }
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        peer.heard_at = self.now;
        if message.claims_office() && self.is_of_older_branch(from) {
            return self.tell_older_branch(from, &message);
        }
        if self.is_a_twins(from, &message) {
            return;
        }
        match message {
            Message::Status(status) => self.status(from, status),
            Message::Submit { number, payload } => self.take_submission(from, number, payload),
            Message::Append(append) => self.append_received(from, append),
            Message::Ack {
                ballot, position, ..
            } => self.ack(from, ballot, position),
            Message::Summary { ballot, summary } => self.summary(from, ballot, &summary),
            Message::Install {
                ballot,
                checkpoint,
                intact_at,
            } => self.install(from, ballot, checkpoint, intact_at),
            Message::PreVote { ballot } => self.pre_vote(from, ballot),
            Message::PreVoteReply { ballot, granted } => self.pre_vote_reply(from, ballot, granted),
            Message::Prepare { ballot, forced } => self.prepare(from, ballot, forced),
            Message::Promise(promise) => self.promise(from, promise),
            Message::Refuse { promised } => self.refused(from, promised),
            Message::TakeOffice { number, forced } => self.take_office(number, forced),
            Message::Join(join) => self.join_requested(from, join),
            Message::JoinRefused { reason } => self.join_refused(from, reason),
            Message::Leave => self.leave_requested(from),
            Message::Weight { weight } => self.weight_requested(from, weight),
            Message::Expects { nodes, promised } => self.expects(from, nodes, promised),
            Message::LogEnd { round } => self.log_end_asked(from, round),
            Message::LogEndReply { round, ballot, end } => {
                self.log_end_reply(from, round, ballot, end)
            }
            Message::Offer { oldest, parcel } => self.offered(from, oldest, parcel),
            Message::Fetch {
                source,
                offset,
                len,
            } => self.fetch_asked(from, source, offset, len),
            Message::Part {
                source,
                offset,
                bytes,
            } => self.part(from, source, offset, bytes),
            Message::Held { parcel } => self.held(from, parcel),
            Message::SubmitParcel {
                number,
                parcel,
                head,
            } => self.take_parcel(from, number, parcel, head),
        }
    }

    // ---- what the parts share ----

    pub(crate) fn me(&self) -> Incarnation {
        self.config.me.incarnation
    }

    pub(crate) fn my_replica(&self) -> ReplicaId {
        self.config.me.replica
    }

    /// The newest configuration in the log, committed or not.
    pub(crate) fn latest(&self) -> &Configuration {
        self.tail
            .configurations(self.committed.position)
            .last()
            .map_or(&self.committed.configuration, |(_, configuration)| {
                configuration
            })
    }

    /// The uncommitted configuration in the log, if there is one.
    pub(crate) fn uncommitted(&self) -> Option<(Position, &Configuration)> {
        self.tail.configurations(self.committed.position).last()
    }

    /// The committed configuration and every later one in the log: what is ordered now needs a
    /// majority of each (rule 3).
    pub(crate) fn in_every_configuration(&self, holds: impl Fn(&Configuration) -> bool) -> bool {
        if planted(Mutant::OutdatedViewElects) {
            return holds(&self.committed.configuration);
        }
        if planted(Mutant::TwoPendingViews) {
            return holds(self.latest());
        }
        let mut later = self.tail.configurations(self.committed.position);
        holds(&self.committed.configuration) && later.all(|(_, configuration)| holds(configuration))
    }

    /// True if the replica's word may be needed: as long as a configuration without it is not
    /// committed, that of the one before counts too (rule 3).
    pub(crate) fn has_seat(&self, replica: ReplicaId) -> bool {
        self.latest().replica(replica).is_some()
            || self.committed.configuration.replica(replica).is_some()
    }

    pub(crate) fn send(&mut self, to: Incarnation, message: Message) {
        if self.peers.get(&to).is_some_and(|peer| peer.up) {
            self.out.push(Action::Send {
                to: vec![to],
                message,
            });
        }
    }

    pub(crate) fn send_all(&mut self, to: Vec<Incarnation>, message: Message) {
        let to: Vec<_> = to
            .into_iter()
            .filter(|peer| self.peers.get(peer).is_some_and(|p| p.up))
            .collect();
        if !to.is_empty() {
            self.out.push(Action::Send { to, message });
        }
    }

    /// Sends once everything promised so far is on disk (rule 4).
    pub(crate) fn send_persisted(&mut self, to: Incarnation, message: Message) {
        // Its callers have just promised: in truth it always waits.
        if self.persisted >= self.promised || planted(Mutant::PromiseNotPersisted) {
            self.send(to, message);
        } else {
            self.held.push((self.promised, to, message));
        }
    }

    /// Accepts no lower ballot from here on.
    pub(crate) fn promise_ballot(&mut self, ballot: Ballot) {
        assert!(ballot > self.promised, "promises only rise");
        self.promised = ballot;
        self.matched = false;
        self.forked = false;
        self.agreed = 0;
        self.incoming.clear();
        self.summary_sent_at = None;
        self.relieved(ballot);
        self.role = Role::Follower;
        self.sequencer_heard_at = self.now;
        self.reads.restart();
        self.out.push(Action::Persist(HardState {
            promised: ballot,
            configuration: self.committed.configuration.clone(),
        }));
    }

    fn persisted(&mut self, promised: Ballot) {
        self.persisted = self.persisted.max(promised);
        for (ballot, to, message) in std::mem::take(&mut self.held) {
            // A promise overtaken by a higher one is void.
            if ballot == self.promised && self.persisted >= ballot {
                self.send(to, message);
            } else if ballot == self.promised {
                self.held.push((ballot, to, message));
            }
        }
        self.count_promises();
        let peers = self.peers.keys().copied().collect();
        self.tell_expectation(peers);
        self.pursue_founding();
    }

    /// Appends to the own log.
    pub(crate) fn append(&mut self, entry: Entry) {
        let position = entry.position;
        self.tail.push(entry.clone());
        self.out.push(Action::Append { entry });
        if self.config.append_is_durable {
            self.durable = position;
        }
    }

    /// Drops the suffix above `after`, which conflicts with the sequencer's log.
    pub(crate) fn truncate(&mut self, after: Position) -> Vec<Entry> {
        assert!(
            after >= self.committed.position,
            "a committed entry is never dropped (rule 1)"
        );
        let dropped = self.tail.truncate(after);
        self.durable = self.durable.min(after);
        if !dropped.is_empty() {
            self.counters.truncations += 1;
            // A view that was never committed was not left.
            self.left_number = self.left_number.min(self.latest().number);
            self.out.push(Action::Truncate { after });
        }
        dropped
    }

    /// Drops committed entries from memory; a sequencer keeps what connected members lack, within
    /// bounds.
    fn trim(&mut self) {
        self.tail.trim_left(self.committed.position);
        let held = self.tail.end() + 1 - self.tail.first();
        let bytes = self.tail.size_bytes();
        if held <= 4096 && bytes <= self.config.tail_bytes {
            return;
        }
        let lacking = match &self.role {
            Role::Sequencer(office) if bytes <= 4 * self.config.tail_bytes => office.least_acked(),
            _ => None,
        };
        let committed = self.committed.position;
        let upto = lacking.map_or(committed, |acked| acked.min(committed));
        self.tail
            .trim(upto.min(self.tail.first() + TRIMMED_AT_ONCE));
    }

    // ---- what the driver and status may ask ----

    /// What this process believes about itself.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// True if this member holds the sequencer's office.
    pub fn is_sequencer(&self) -> bool {
        matches!(self.role, Role::Sequencer(_))
    }

    /// The member that has the office, as far as this one knows.
    pub fn sequencer_member(&self) -> Option<&Member> {
        let holder = match self.is_sequencer() {
            true => self.me(),
            false => self.sequencer_in_office()?,
        };
        self.latest().member(holder)
    }

    /// Last committed configuration.
    pub fn configuration(&self) -> &Configuration {
        &self.committed.configuration
    }

    /// True until a process that began with a log is in a view again.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// True as long as entries that this replica once acknowledged may be missing here (rule 4).
    pub fn is_amnesiac(&self) -> bool {
        self.amnesiac
    }

    /// State at the commit point.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.committed
    }

    /// Commit point.
    pub fn commit(&self) -> Position {
        self.committed.position
    }

    /// Bytes of the payloads at the log's end that are in memory. Counts them.
    pub fn payload_bytes(&self) -> usize {
        self.tail.payload_bytes()
    }

    /// Log end.
    pub fn end(&self) -> Position {
        self.tail.end()
    }

    /// The ballot in force here.
    pub fn ballot(&self) -> Ballot {
        self.promised
    }

    /// Cluster uuid; nil before the first view.
    pub fn history(&self) -> crate::ids::Uuid {
        self.committed.history
    }

    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The options that may change at run time.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }
}
