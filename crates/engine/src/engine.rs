//! The engine's state and the ways in for events: [`Engine::connect`], frames of peers, ticks, and calls for the
//! replicator. [`Engine::pump`] carries out the actions and writes the log. Messages may leave the node only after it.

mod group_actions;
mod replicator_actions;
mod writing;

use bytes::Bytes;
use trireme_group::{
    self as group, Group, Incarnation, Lasting, OVERRIDES_MAX, Recovered, Reminder, Uuid,
};
use trireme_log::Durability;
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{self as replicator, Connect, Gtid, Replicator};

use crate::beginning::Beginning;
use crate::control_states::ControlStates;
use crate::flushes::Flushes;
use crate::host::{Channel, Host};
use crate::laggard::{Told, Words};
use crate::recovered_log::{Doubts, Recovery};
use crate::reforming::Reformed;
use crate::serving::Serving;
use crate::start::{Start, StartError};
use crate::storage::{Storage, drop_lost};
use crate::undelivered::{Next, Undelivered, payload_bytes};

/// The state of one connection.
pub struct Link {
    /// Order and membership.
    pub group: Group,
    /// The log.
    pub storage: Storage,
    flushes: Flushes,
    history_told: bool,
    log_told: bool,
    /// The UUID of the history that this node founds, if the other nodes support it.
    to_found: Option<Uuid>,
    /// The node has founded or continued the history, and its log is not published yet.
    just_founded: bool,
    /// Reports of a log that grows because a member's log lags behind.
    laggard_told: Told,
    /// The positions up to which the members' logs hold everything.
    words: Words,
    undelivered: Undelivered,
    serving: Serving,
    control_states: ControlStates,
}

impl Link {
    /// Returns a connection that has written nothing yet.
    fn new(group: Group, storage: Storage, undelivered: Undelivered, flushes: Flushes) -> Link {
        let control_queue_bytes = storage.thresholds().control_queue_bytes;
        Link {
            group,
            storage,
            flushes,
            history_told: false,
            log_told: false,
            to_found: None,
            just_founded: false,
            laggard_told: Told::default(),
            words: Words::default(),
            undelivered,
            serving: Serving::default(),
            control_states: ControlStates::new(control_queue_bytes),
        }
    }
}

/// The reason why a node cannot go on in its cluster.
struct Failure {
    text: String,
    /// Only room, descriptors or memory were lacking: the volume has lost nothing.
    is_lack: bool,
}

/// Group, replicator and log of one node.
pub struct Engine {
    /// The replicator; outlives connections.
    pub replicator: Replicator,
    link: Option<Link>,
    /// The group has taken in an event since its last flush.
    group_dirty: bool,
    /// The state that the last connection's group hands to the next one's.
    lasting: Lasting,
    /// A write has failed: the connection ends with this pump.
    failed: Option<Failure>,
    /// The log's volume may have lost acknowledged entries (rule 4). Outlives connections.
    volume_failed: bool,
    /// The log of the connection that ended last: entries in it may still be applied, and it takes notes.
    ended_log: Option<Storage>,
    /// Set if this process has let the cluster go on without entries that were acknowledged.
    reformed: Option<Reformed>,
    /// Warnings for the operator, for the next opportunity.
    notes: Vec<String>,
    /// Paces the reports of a log that is unreadable for a moment.
    shortage_reminder: Reminder,
    group_actions: Vec<group::Action>,
    node_actions: Vec<replicator::Action>,
}

impl Engine {
    /// Returns a node that is not connected.
    pub fn new(replicator: Replicator) -> Engine {
        Engine {
            replicator,
            link: None,
            group_dirty: false,
            lasting: Lasting::default(),
            failed: None,
            volume_failed: false,
            ended_log: None,
            reformed: None,
            notes: Vec::new(),
            shortage_reminder: Reminder::default(),
            group_actions: Vec::new(),
            node_actions: Vec::new(),
        }
    }

    /// Begins a connection. [`Engine::pump`] carries out its actions.
    ///
    /// Err: nothing was overwritten.
    pub fn connect(&mut self, now_ms: u64, start: Start) -> Result<(), StartError> {
        (self.failed, self.ended_log) = (None, None);
        self.volume_failed &= !planted(Mutant::FailureForgotten);
        let flush_appends = start.log.durability == Durability::Disk;
        let mut local = start.local;
        let me = start.config.me.clone();
        let mut storage = Storage::new(start.log, start.disk, start.boot_id, start.mark);
        storage.set_thresholds(start.thresholds);
        storage.set_log_id(me.incarnation.0);
        let (last_action, mut overrides) = storage.recall(local.uuid, start.last_log)?;
        // A founder whose database has no known position has no past.
        let looks_back = start.recover && (start.bootstrap.is_none() || local.is_known());
        if looks_back && !start.server_running {
            storage.begin_trial(local, start.apply_again)?;
        }
        let mut recovery = None;
        if looks_back {
            let held_bytes = start.options.queue_bytes;
            let doubts = Doubts {
                volume_failed: self.volume_failed,
                last_log: start.last_log,
            };
            let recovered = storage.recover(local.uuid, held_bytes, doubts)?;
            recovery = recovered.map(Box::new);
        }
        // The process before may have died between the loss of an override and the loss of its note.
        let in_log = (recovery.as_deref()).map_or_else(Vec::new, Recovery::overrides);
        drop_lost(&mut overrides, &in_log);
        storage.drop_lost_overrides(&in_log)?;
        let unsaved = (recovery.as_deref())
            .and_then(|log| log.unsaved_overrides(me.replica, local, &overrides));
        if let (Some(unsaved), Some(log)) = (unsaved, &mut recovery) {
            storage.note_unsaved(unsaved.clone(), &mut log.forgotten)?;
            overrides = unsaved;
        }
        let has_past = start.bootstrap.is_some()
            || start.server_running
            || recovery.is_some()
            || storage.has_past(local)?;
        // A snapshot must replace such a database. The operator's order to bootstrap declares it to be right.
        if storage.has_diverged() && start.bootstrap.is_none() {
            local = Gtid::UNDEFINED;
        }
        let database = (local, start.untouched);
        let counted = (recovery.as_deref()).and_then(|log| {
            log.founder_counts_at(me.replica, database, last_action.gtid, &overrides)
        });
        local.seqno = counted.unwrap_or(local.seqno);
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
        let expect = start.expect.filter(|_| !has_past);
        let database = (local, storage.has_diverged());
        let beginning = Beginning::of(start.bootstrap, database, last_action, replica, recovery);
        if beginning.overrides_before(connect.past_overrides().len()) >= OVERRIDES_MAX {
            return Err(StartError::NoMoreOverrides);
        }
        let prepared = beginning.prepare(&mut storage, &mut recovered, &mut connect);
        if let Err(StartError::Log(error)) = &prepared {
            self.volume_fails(&mut storage, !error.is_of_volume());
        }
        let first = prepared?;
        storage.drain_notes(&mut self.notes);
        let config = group::Config {
            append_is_durable: !flush_appends,
            expect: expect.map_or(0, |expected| expected.nodes),
            ..start.config
        };
        let group = Group::new(config, recovered, now_ms);
        let undelivered = Undelivered::new(start.options.queue_bytes, &start.thresholds);
        let flushes = Flushes::new(flush_appends, start.flushes_apart);
        self.link = Some(Link {
            to_found: expect.map(|expected| expected.history),
            just_founded: matches!(first, Some(group::Event::Bootstrap { .. })),
            ..Link::new(group, storage, undelivered, flushes)
        });
        self.begin(now_ms, start.options, connect, first);
        Ok(())
    }

    /// Begins the connection's work. `first`: the group's first event.
    fn begin(
        &mut self,
        now_ms: u64,
        options: replicator::Options,
        connect: Connect,
        first: Option<group::Event>,
    ) {
        self.group_dirty = true;
        self.node(now_ms, replicator::Event::SetOptions(options));
        self.tell_connected(now_ms);
        self.node(now_ms, replicator::Event::Connect(Box::new(connect)));
        if let Some(event) = first {
            self.group(now_ms, event);
        }
    }

    /// Returns the state that the last connection's group hands to the next one's.
    fn handed_on(&self) -> Lasting {
        match planted(Mutant::WithdrawalsForgotten) {
            true => Lasting::default(),
            false => self.lasting.clone(),
        }
    }

    /// Ends the group, keeps its lasting state, and returns its log.
    fn take_link(&mut self) -> Option<Storage> {
        let Link { group, storage, .. } = self.link.take()?;
        self.lasting = group.lasting();
        Some(storage)
    }

    /// Ends the connection; the replicator stays.
    pub fn drop_link(&mut self) {
        if let Some(mut storage) = self.take_link() {
            match self.failed.take() {
                Some(Failure { is_lack, .. }) => self.volume_fails(&mut storage, is_lack),
                None => {
                    if let Err(error) = storage.close() {
                        self.volume_fails(&mut storage, !error.is_of_volume());
                        self.notes
                            .push(format!("closing the write-set log failed: {error}"));
                    }
                }
            }
            self.ended_log = Some(storage);
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

    /// Hands an event to the replicator.
    pub fn node(&mut self, now_ms: u64, event: replicator::Event) {
        let log = self.link.as_ref().map(|link| &link.storage);
        let history: &dyn replicator::History = match log.or(self.ended_log.as_ref()) {
            Some(log) => log,
            None => &replicator::NoHistory,
        };
        (self.replicator).handle(now_ms, event, history, &mut self.node_actions);
    }

    /// Returns the first GTID that may have been acknowledged and is lost, if this process has let the cluster go on
    /// without it.
    pub fn lost_from(&self) -> Option<Gtid> {
        self.reformed.and_then(|reformed| reformed.lost_from())
    }

    /// Returns counters and states of the node. Cheap.
    pub fn status(&self) -> replicator::Status {
        self.replicator.status(match &self.link {
            Some(link) => &link.storage,
            None => &replicator::NoHistory,
        })
    }

    /// Returns true if the log's disk takes longer for a flush than a working disk does.
    pub fn flush_hangs(&self, now_ms: u64) -> bool {
        (self.link.as_ref()).is_some_and(|link| link.flushes.hangs(now_ms))
    }

    /// Hands an event to the group, if there is one.
    pub fn group(&mut self, now_ms: u64, event: group::Event) {
        use group::Event;
        if let Some(link) = self.link.as_mut().filter(|_| self.failed.is_none()) {
            let is_of_links = matches!(event, Event::PeerUp { .. } | Event::PeerDown { .. });
            link.group.config_mut().proof = self.replicator.proof(&link.storage);
            link.group.handle(now_ms, event);
            self.group_dirty = true;
            if is_of_links {
                self.tell_connected(now_ms);
            }
        }
    }

    /// Tells the replicator the processes with which this one is connected.
    fn tell_connected(&mut self, now_ms: u64) {
        let group = self.link.as_ref().map(|link| &link.group);
        let connected = group.map_or_else(Vec::new, |group| group.connected().collect());
        self.node(now_ms, replicator::Event::Connected(connected));
    }

    /// Takes in a frame from a peer. Err: the frame is malformed, and the caller must disconnect the peer.
    pub fn frame(&mut self, now_ms: u64, from: Incarnation, frame: &Bytes) -> Result<(), String> {
        match frame.first().and_then(|byte| Channel::of(*byte)) {
            Some(Channel::Group | Channel::Bulk) => {
                let message = group::decode(frame.slice(1..))
                    .map_err(|error| format!("sent a malformed group message: {error}"))?;
                self.group(now_ms, group::Event::Message { from, message });
            }
            Some(Channel::Replicator) => {
                let group = self.link.as_ref().map(|link| &link.group);
                let event = replicator::Event::PeerMessage {
                    from,
                    bytes: frame.slice(1..),
                    of_own_branch: group.is_some_and(|group| group.shares_branch(from)),
                };
                self.node(now_ms, event);
            }
            None => return Err("sent a frame of unknown kind".to_owned()),
        }
        Ok(())
    }

    /// Tells group and replicator that time has passed, if their deadline has come.
    pub fn tick(&mut self, now_ms: u64) {
        if let Some(link) = (self.link.as_mut()).filter(|l| now_ms >= l.group.next_deadline()) {
            let hangs = link.flushes.hangs(now_ms) && !planted(Mutant::HangUnseen);
            let config = link.group.config_mut();
            (config.able, config.stuck) = (self.replicator.is_synced(), hangs);
            config.held = self.replicator.is_held_still();
            let storage = &link.storage;
            let note = link.flushes.hang_note(now_ms, || storage.dir());
            self.notes.extend(note);
            self.group(now_ms, group::Event::Tick);
        }
        if (self.replicator.next_deadline_ms()).is_some_and(|at| now_ms >= at) {
            self.node(now_ms, replicator::Event::Tick);
        }
    }

    /// Returns the latest time for the next [`Engine::tick`].
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let group = self.link.as_ref().map(|link| link.group.next_deadline());
        let node = self.replicator.next_deadline_ms();
        let waiting = self.link.as_ref().and_then(|l| l.undelivered.due_ms());
        let sending = self.link.as_ref().and_then(|l| l.control_states.due_ms());
        let deadlines = [group, node, waiting, sending];
        deadlines.into_iter().flatten().min()
    }

    /// Carries out actions until nothing is left to do, and writes the log. Messages that were given to
    /// [`Host::send`] may leave the node when this returns, and not before.
    pub fn pump(&mut self, now_ms: u64, host: &mut dyn Host) {
        if let Some(link) = &mut self.link {
            link.storage.drain_notes(&mut self.notes);
        }
        for note in self.notes.drain(..) {
            host.warn(&note);
        }
        self.tell_history(host);
        self.answer_pulls(now_ms, host);
        self.send_control_states(now_ms, host);
        let slice = self
            .link
            .as_ref()
            .map(|link| link.undelivered.slice_bytes());
        let mut room_bytes = slice.unwrap_or(0);
        while self.failed.is_none() {
            self.carry_out(now_ms, host);
            if let Some(link) = self.link.as_mut().filter(|_| self.group_dirty) {
                self.group_dirty = false;
                link.group.flush(&link.storage, &mut self.group_actions);
                if self.replicator.note_commit(link.group.known_commit()) {
                    self.node(now_ms, replicator::Event::Tick);
                }
            }
            if self.group_actions.is_empty() {
                let learns = self.write_log(now_ms, host);
                if learns || self.deliver_waiting(now_ms, host, &mut room_bytes) {
                    continue;
                }
                break;
            }
            let mut actions = std::mem::take(&mut self.group_actions);
            for action in actions.drain(..) {
                self.group_action(now_ms, action, host);
                self.carry_out(now_ms, host);
            }
            self.group_actions = actions;
        }
        self.note_component_state(host);
        self.tell_log(host);
        self.see_reads(now_ms, host);
        self.end_if_failed(now_ms, host);
    }

    /// Tells the replicator the waiting actions, until `room_bytes` are used up. Returns false if it has heard nothing.
    fn deliver_waiting(
        &mut self,
        now_ms: u64,
        host: &mut dyn Host,
        room_bytes: &mut usize,
    ) -> bool {
        let mut any = false;
        while *room_bytes > 0 && self.failed.is_none() {
            let Some(link) = &mut self.link else { break };
            let log: &dyn replicator::History = &link.storage;
            let read_back = |first, last, max_bytes| log.read_back(first, last, max_bytes);
            let bytes = match link.undelivered.next(now_ms, read_back) {
                Next::Nothing => break,
                Next::NotYet => return any,
                Next::Lost(text) => {
                    let is_lack = true; // the next process judges the log when it reads it
                    self.failed.get_or_insert(Failure { text, is_lack });
                    return any;
                }
                Next::Action(action) => {
                    self.carry_out_group(now_ms, action, host);
                    self.carry_out(now_ms, host);
                    0
                }
                Next::Entries(found) => {
                    let mut bytes = 0;
                    for (position, delivery) in found {
                        bytes += payload_bytes(&delivery);
                        self.deliver(now_ms, position, delivery, host);
                        self.carry_out(now_ms, host);
                    }
                    bytes
                }
            };
            *room_bytes = room_bytes.saturating_sub(bytes.max(1));
            any = true;
        }
        if let Some(link) = &mut self.link {
            link.undelivered.end_slice(now_ms);
        }
        any
    }

    /// Carries out the replicator's actions before its next event.
    pub fn carry_out(&mut self, now_ms: u64, host: &mut dyn Host) {
        while !self.node_actions.is_empty() {
            let mut actions = std::mem::take(&mut self.node_actions);
            for action in actions.drain(..) {
                self.node_action(now_ms, action, host);
            }
            if self.node_actions.is_empty() {
                self.node_actions = actions; // keeps its room
            }
        }
    }
}
