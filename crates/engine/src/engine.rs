//! The engine's state, how events come in, and the order in which everything goes out.

use bytes::Bytes;
use trireme_group::{
    self as group, Ballot, Group, Incarnation, Lasting, OVERRIDES_MAX, Position, Recovered,
    Reminder, Uuid,
};
use trireme_log::{Durability, LogConfig};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{self as replicator, Connect, Gtid, Replicator, Seqno, UNDEFINED_SEQNO};

use crate::beginning::Beginning;
use crate::hang::Hang;
use crate::laggard::Told;
use crate::mark::KeepMark;
use crate::outside::{Channel, Outside};
use crate::recovery::Recovery;
use crate::reforming::Reformed;
use crate::start_error::StartError;
use crate::storage::{OpenDisk, Storage};
use crate::thresholds::Thresholds;
use crate::undelivered::Undelivered;

/// The inputs of a connection.
pub struct Start {
    /// The group's settings; `append_is_durable` is set from the log's durability.
    pub config: group::Config,
    /// The ballot that this replica has promised.
    pub promised: Ballot,
    /// The log that this replica acknowledged with last ([`Outside::in_log`]); nil: none, or not known.
    pub last_log: Uuid,
    /// Whether a log that an earlier process left is gone on with.
    pub recover: bool,
    /// The time since the machine was started (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: [u8; 16],
    /// The log; its identity is filled in when the history is known.
    pub log: LogConfig,
    /// Where the log lies.
    pub disk: OpenDisk,
    /// The mark, outside the log's volume, of the log's end; None: there is none.
    pub mark: Option<Box<dyn KeepMark>>,
    /// Flushes that acknowledgements wait for (`repl.durability=disk`), or that nothing waits for, are handed
    /// to [`Outside::flush`], so that everything else goes on meanwhile.
    pub flushes_apart: bool,
    /// Position of the database.
    pub local: Gtid,
    /// The database was asked, and has never been at any position.
    pub untouched: bool,
    /// Found a history, or continue the database's own, alone; holds the uuid for a new one, or for
    /// the override that this is. [`trireme_group::unvouched_override`] marks one of which nobody vouches for the
    /// database ([`unvouched_position`]).
    pub bootstrap: Option<Uuid>,
    /// A cluster may be founded with others, if this node has no history at all (`pc.bootstrap_expect`).
    pub expect: Option<Expected>,
    /// True if the server's storage engines are up.
    pub server_running: bool,
    /// What follows the database is applied although the server has died of it again and again, if it is this seqno
    /// (`repl.apply_again`); 0: none.
    pub apply_again: Seqno,
    /// The replicator's settings.
    pub options: replicator::Options,
    /// Sizes at which the engine goes about things otherwise.
    pub thresholds: Thresholds,
}

/// A cluster that is to be founded without choosing a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// By so many nodes.
    pub nodes: u32,
    /// Names the new history, if this node is the founder.
    pub history: Uuid,
}

/// The state that lives as long as a connection.
pub struct Link {
    /// Order and membership.
    pub group: Group,
    /// The log.
    pub storage: Storage,
    /// True if an acknowledgement waits for the disk (`repl.durability=disk`).
    pub(crate) flush_appends: bool,
    pub(crate) flushes_apart: bool,
    /// Something was appended that is flushed in every mode before anything is said of it (rule 4).
    pub(crate) flush_now: bool,
    /// Something was appended and not yet handed to the operating system.
    pub(crate) unwritten: bool,
    /// The last entry appended that no flush covers yet.
    pub(crate) unflushed: Option<Position>,
    /// The last entry that the flush under way covers.
    pub(crate) flushing: Option<Position>,
    /// A flush is under way that nothing waits for.
    pub(crate) writing_back: bool,
    /// How long the disk keeps the flush under way.
    pub(crate) hang: Hang,
    pub(crate) history_told: bool,
    pub(crate) log_told: bool,
    /// The history that this node founds, if the others support it.
    pub(crate) to_found: Option<Uuid>,
    /// It has founded or continued the history, and the state beside the log is not flushed yet.
    pub(crate) just_founded: bool,
    /// Of a log that grows because a member's lags behind.
    pub(crate) laggard_told: Told,
    pub(crate) undelivered: Undelivered,
}

impl Link {
    /// A connection that has written nothing yet.
    fn new(group: Group, storage: Storage, undelivered: Undelivered, flush_appends: bool) -> Link {
        Link {
            group,
            storage,
            flush_appends,
            flushes_apart: false,
            flush_now: false,
            unwritten: false,
            unflushed: None,
            flushing: None,
            writing_back: false,
            hang: Hang::default(),
            history_told: false,
            log_told: false,
            to_found: None,
            just_founded: false,
            laggard_told: Told::default(),
            undelivered,
        }
    }
}

/// Why a node cannot go on in its cluster.
pub(crate) struct Failure {
    pub(crate) text: String,
    /// Only room, descriptors or memory were lacking: the volume has given up nothing.
    pub(crate) is_lack: bool,
}

/// Group, replicator and log of one node.
pub struct Engine {
    /// The node; outlives connections.
    pub replicator: Replicator,
    pub(crate) link: Option<Link>,
    /// The group has taken in something since its last flush.
    pub(crate) group_dirty: bool,
    /// Handed by the last connection's group to the next one's.
    lasting: Lasting,
    /// A write has failed: the connection ends with this pump.
    pub(crate) failed: Option<Failure>,
    /// The log's volume may have given up what was acknowledged (rule 4). Outlives connections.
    pub(crate) volume_failed: bool,
    /// The log of a connection that such a failure has ended: takes notes still.
    pub(crate) failed_log: Option<Storage>,
    /// The log of a connection that was given up while something in it waited to be applied.
    closed_log: Option<Storage>,
    /// The cluster has gone on by this process's word, without something that was acknowledged.
    pub(crate) reformed: Option<Reformed>,
    /// To be told at the next opportunity: what is not as it should be.
    pub(crate) notes: Vec<String>,
    /// Of a log that could not be read for a moment.
    pub(crate) shortage_reminder: Reminder,
    pub(crate) group_actions: Vec<group::Action>,
    node_actions: Vec<replicator::Action>,
}

impl Engine {
    /// A node that is not connected.
    pub fn new(replicator: Replicator) -> Engine {
        Engine {
            replicator,
            link: None,
            group_dirty: false,
            lasting: Lasting::default(),
            failed: None,
            volume_failed: false,
            failed_log: None,
            closed_log: None,
            reformed: None,
            notes: Vec::new(),
            shortage_reminder: Reminder::default(),
            group_actions: Vec::new(),
            node_actions: Vec::new(),
        }
    }

    /// Begins a connection. What comes of it is carried out by [`Engine::pump`].
    ///
    /// Err: nothing was overwritten.
    pub fn connect(&mut self, now_ms: u64, start: Start) -> Result<(), StartError> {
        (self.failed, self.failed_log, self.closed_log) = (None, None, None);
        self.volume_failed &= !planted(Mutant::FailureForgotten);
        let flush_appends = start.log.durability == Durability::Disk;
        let mut local = start.local;
        let me = start.config.me.clone();
        let mut storage = Storage::new(start.log, start.disk, start.boot_id, start.mark);
        storage.thresholds = start.thresholds;
        storage.set_log_ids(start.last_log, me.incarnation.0);
        let (last_action, overrides) = storage.recall(local.uuid)?;
        // A founder has no past if its database has none, or none that is known.
        let looks_back = start.recover && (start.bootstrap.is_none() || local.is_known());
        if looks_back && !start.server_running {
            storage.begin_trial(local, start.apply_again)?;
        }
        let mut recovery = None;
        if looks_back {
            let held_bytes = start.options.queue_bytes;
            let recovered = storage.recover(local.uuid, held_bytes, self.volume_failed)?;
            recovery = recovered.map(Box::new);
        }
        // A founder of the history that died before its database had kept the first view has all that is needed.
        let founded = |recovery: &Recovery| {
            recovery.history == local.uuid && recovery.was_founded_by(me.replica)
        };
        if start.untouched && !local.is_known() && recovery.as_deref().is_some_and(founded) {
            local.seqno = 0;
        }
        let mut recovered = Recovered {
            promised: start.promised,
            amnesiac: true,
            lost_views: true,
            log: None,
            lasting: self.handed_on(),
        };
        let mut connect = Connect {
            incarnation: me.incarnation,
            local,
            last_action,
            bootstrap: None,
            server_running: start.server_running,
            control: None,
            overrides,
            me,
        };
        let replica = connect.me.replica;
        let has_past = start.bootstrap.is_some()
            || start.server_running
            || recovery.is_some()
            || storage.has_past(local)?;
        let expect = start.expect.filter(|_| !has_past);
        let database = (local, storage.has_diverged());
        let beginning = Beginning::of(start.bootstrap, database, last_action, replica, recovery);
        if beginning.overrides_before(&connect.overrides) >= OVERRIDES_MAX {
            return Err(StartError::NoMoreOverrides);
        }
        let first = beginning.prepare(&mut storage, &mut recovered, &mut connect)?;
        self.notes.extend(storage.take_notes());
        let config = group::Config {
            append_is_durable: !flush_appends,
            expect: expect.map_or(0, |expected| expected.nodes),
            ..start.config
        };
        let group = Group::new(config, recovered, now_ms);
        let undelivered = Undelivered::new(start.options.queue_bytes, &start.thresholds);
        self.link = Some(Link {
            flushes_apart: start.flushes_apart,
            to_found: expect.map(|expected| expected.history),
            just_founded: matches!(first, Some(group::Event::Bootstrap { .. })),
            ..Link::new(group, storage, undelivered, flush_appends)
        });
        self.group_dirty = true;
        self.node(now_ms, replicator::Event::SetOptions(start.options));
        self.node(now_ms, replicator::Event::Connect(Box::new(connect)));
        if let Some(event) = first {
            self.group(now_ms, event);
        }
        Ok(())
    }

    /// The state that the last connection's group hands to the next one's.
    fn handed_on(&self) -> Lasting {
        match planted(Mutant::WithdrawalsForgotten) {
            true => Lasting::default(),
            false => self.lasting.clone(),
        }
    }

    /// Ends the group, which hands on what lasts, and gives its log.
    pub(crate) fn take_link(&mut self) -> Option<Storage> {
        let Link { group, storage, .. } = self.link.take()?;
        self.lasting = group.lasting();
        Some(storage)
    }

    /// The connection is gone; the replicator stays.
    pub fn drop_link(&mut self) {
        let needs_log = self.replicator.needs_log();
        self.closed_log = self.failed_log.take().filter(|_| needs_log);
        if let Some(mut storage) = self.take_link() {
            match self.failed.take() {
                Some(Failure { is_lack, .. }) => self.volume_fails(&mut storage, is_lack),
                None => {
                    if let Err(error) = storage.close() {
                        self.volume_fails(&mut storage, !error.is_of_volume());
                        self.notes
                            .push(format!("the write-set log was not closed well: {error}"));
                    }
                    self.closed_log = needs_log.then_some(storage);
                }
            }
        }
        self.group_dirty = false;
    }

    /// The connection, if there is one.
    pub fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// The connection's group.
    pub fn group_mut(&mut self) -> Option<&mut Group> {
        self.link.as_mut().map(|link| &mut link.group)
    }

    /// An event for the replicator.
    pub fn node(&mut self, now_ms: u64, event: replicator::Event) {
        let history = match &self.link {
            Some(link) => &link.storage as &dyn replicator::History,
            None => ended(&self.failed_log, &self.closed_log),
        };
        (self.replicator).handle(now_ms, event, history, &mut self.node_actions);
    }

    /// Counters and states of the node. Cheap.
    pub fn status(&self) -> replicator::Status {
        self.replicator.status(match &self.link {
            Some(link) => &link.storage,
            None => &replicator::NoHistory,
        })
    }

    /// True if the disk of the log keeps a flush for longer than one that works.
    pub fn flush_hangs(&self, now_ms: u64) -> bool {
        (self.link.as_ref()).is_some_and(|link| link.hang.is_long(now_ms))
    }

    /// An event for the group, if there is one.
    pub fn group(&mut self, now_ms: u64, event: group::Event) {
        if let Some(link) = self.link.as_mut().filter(|_| self.failed.is_none()) {
            link.group.config_mut().proof = self.replicator.proof();
            link.group.handle(now_ms, event);
            self.group_dirty = true;
        }
    }

    /// A frame from a peer. Err: malformed, the peer is not to be listened to any more.
    pub fn frame(&mut self, now_ms: u64, from: Incarnation, frame: &Bytes) -> Result<(), String> {
        match frame.first().and_then(|byte| Channel::of(*byte)) {
            Some(Channel::Group | Channel::Bulk) => {
                let message = group::decode(frame.slice(1..))
                    .map_err(|error| format!("sent a malformed group message: {error}"))?;
                self.group(now_ms, group::Event::Message { from, message });
            }
            Some(Channel::Replicator) => {
                let bytes = frame.slice(1..);
                self.node(now_ms, replicator::Event::Direct { from, bytes });
            }
            None => return Err("sent a frame of unknown kind".to_owned()),
        }
        Ok(())
    }

    /// Tells both that time has passed, if they asked for it.
    pub fn tick(&mut self, now_ms: u64) {
        if let Some(link) = (self.link.as_mut()).filter(|l| now_ms >= l.group.next_deadline()) {
            let hangs = link.hang.is_long(now_ms) && !planted(Mutant::HangUnseen);
            let config = link.group.config_mut();
            (config.able, config.stuck) = (self.replicator.is_synced(), hangs);
            let storage = &link.storage;
            let dir = || (storage.disk)().path("").display().to_string();
            self.notes.extend(link.hang.is_due(now_ms, dir));
            self.group(now_ms, group::Event::Tick);
        }
        if (self.replicator.next_deadline_ms()).is_some_and(|at| now_ms >= at) {
            self.node(now_ms, replicator::Event::Tick);
        }
    }

    /// When [`Engine::tick`] is due at the latest.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let group = self.link.as_ref().map(|link| link.group.next_deadline());
        let node = self.replicator.next_deadline_ms();
        let waiting = self.link.as_ref().and_then(|l| l.undelivered.due_ms());
        group.into_iter().chain(node).chain(waiting).min()
    }

    /// Carries out actions until nothing is left to do, and writes the log. What was given to
    /// [`Outside::send`] may leave the node when this returns, and not before.
    pub fn pump(&mut self, now_ms: u64, outside: &mut dyn Outside) {
        if let Some(link) = &mut self.link {
            self.notes.extend(link.storage.take_notes());
        }
        for note in std::mem::take(&mut self.notes) {
            outside.warn(&note);
        }
        self.tell_history(outside);
        let slice = self
            .link
            .as_ref()
            .map(|link| link.undelivered.slice_bytes());
        let mut room_bytes = slice.unwrap_or(0);
        while self.failed.is_none() {
            self.carry_out(now_ms, outside);
            if let Some(link) = self.link.as_mut().filter(|_| self.group_dirty) {
                self.group_dirty = false;
                link.group.flush(&link.storage, &mut self.group_actions);
                if self.replicator.note_commit(link.group.known_commit()) {
                    self.node(now_ms, replicator::Event::Tick);
                }
            }
            if self.group_actions.is_empty() {
                let learns = self.write_log(now_ms, outside);
                if learns || self.deliver_waiting(now_ms, outside, &mut room_bytes) {
                    continue;
                }
                break;
            }
            let mut actions = std::mem::take(&mut self.group_actions);
            for action in actions.drain(..) {
                self.group_action(now_ms, action, outside);
                self.carry_out(now_ms, outside);
            }
            self.group_actions = actions;
        }
        self.note_standing(outside);
        self.tell_log(outside);
        self.see_reads(now_ms, outside);
        self.end_if_failed(now_ms, outside);
    }

    /// The replicator wants its actions carried out before its next event.
    pub fn carry_out(&mut self, now_ms: u64, outside: &mut dyn Outside) {
        while !self.node_actions.is_empty() {
            let mut actions = std::mem::take(&mut self.node_actions);
            for action in actions.drain(..) {
                self.node_action(now_ms, action, outside);
            }
            if self.node_actions.is_empty() {
                self.node_actions = actions; // keeps its room
            }
        }
    }
}

/// Position that the database holds, as far as grastate.dat and the server know (server-contract.md#init). What
/// the server has recovered from the database itself counts more than the file's number. A file without a
/// history says that the position is not to be believed; if that is only for a total-order action that was
/// `interrupted` ([`Storage::interrupted_action`]), the position holds, and rule 13 with it.
pub fn starting_position(state: Gtid, server: Gtid, interrupted: Gtid) -> Gtid {
    if state.uuid.is_nil() {
        let is_explained = interrupted.is_known() && server.uuid == interrupted.uuid;
        return match is_explained && server.is_known() {
            true => server,
            false => Gtid::UNDEFINED,
        };
    }
    if server.uuid == state.uuid && server.seqno != UNDEFINED_SEQNO {
        return server;
    }
    state
}

/// The same of a database whose grastate.dat was removed, when its node is bootstrapped: no snapshot can take its place. What the
/// server has recovered counts then, if `log`, the history of the write-set log beside it, says that this is no copy of
/// another cluster's database.
pub fn unvouched_position(server: Gtid, log: Option<Uuid>) -> Gtid {
    match server.is_known() && log == Some(server.uuid) {
        true => server,
        false => Gtid::UNDEFINED,
    }
}

/// What the replicator may read back when its connection is over: what it still has to apply.
fn ended<'a>(
    failed: &'a Option<Storage>,
    closed: &'a Option<Storage>,
) -> &'a dyn replicator::History {
    match failed.as_ref().or(closed.as_ref()) {
        Some(storage) => storage,
        None => &replicator::NoHistory,
    }
}
