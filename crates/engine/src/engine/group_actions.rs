//! Carries out the group's actions, in their order. Out: writes to the log, events for the replicator, and requests to
//! [`Host`]. An entry is in the log, and a promise is kept, before a message that speaks of it goes out.

use trireme_group::{self as group, Uuid};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{self as replicator, Connect, Gtid};

use crate::engine::{Engine, Link};
use crate::host::{Channel, Host};
use crate::reforming::Reformed;
use crate::session::Forgotten;

impl Engine {
    pub(super) fn group_action(&mut self, now_ms: u64, action: group::Action, host: &mut dyn Host) {
        use group::Action;
        if self.link.is_none() || self.failed.is_some() {
            return;
        }
        let delivers = matches!(
            action,
            Action::Deliver { .. } | Action::DeliverFromLog { .. }
        );
        if delivers && !self.write_before_delivery(host) {
            return;
        }
        let Some(link) = &mut self.link else { return };
        match &action {
            Action::Deliver { position, delivery } => host.delivered(*position, delivery),
            Action::DeliverFromLog { first, last } => {
                host.delivered_from_log(*first, *last, &link.storage);
            }
            _ => {}
        }
        if let Some(action) = link.undelivered.take_in(action) {
            self.carry_out_group(now_ms, action, host);
        }
    }

    pub(super) fn carry_out_group(
        &mut self,
        now_ms: u64,
        action: group::Action,
        host: &mut dyn Host,
    ) {
        use group::Action;
        let Some(link) = self.link.as_mut().filter(|_| self.failed.is_none()) else {
            return;
        };
        match action {
            Action::Send { to, message } => send(&to, &message, host),
            Action::Append { entry } => self.append(&entry, host),
            Action::Stage {
                bulk,
                offset,
                bytes,
            } => self.stage(now_ms, bulk, offset, bytes, host),
            Action::Unstage { bulk } => link.storage.staging().drop_bulk(bulk),
            Action::Staged {
                bulk,
                id,
                head,
                digest,
            } => link.storage.staging().submit(bulk, id, head, digest),
            Action::KeepStaged { origins } => {
                let dropped = link.storage.staging().keep(&origins);
                self.not_staged(now_ms, dropped);
            }
            Action::Truncate { after } => self.truncate(after, host),
            Action::Reset { checkpoint } => self.begin_anew(now_ms, checkpoint, host),
            Action::Persist { promised } => self.persist(now_ms, promised, host),
            Action::Deliver { position, delivery } => {
                self.deliver(now_ms, position, delivery, host)
            }
            Action::DeliverFromLog { .. } => {} // waits: see `Undelivered::take_in`
            Action::Passed { position } => {
                self.node(now_ms, replicator::Event::Passed { position })
            }
            Action::Found => self.found(now_ms, host),
            Action::Reform {
                override_id,
                from_database,
                past,
                heard,
                text,
            } => {
                host.alarm(&text);
                host.reforms(&heard);
                self.reformed = Some(Reformed::by(override_id));
                if from_database {
                    self.found_on_database(now_ms, override_id, &past, host);
                }
            }
            Action::NonPrimary { component } => {
                self.node(now_ms, replicator::Event::NonPrimary { component })
            }
            Action::Failed { id, fate } => {
                self.node(now_ms, replicator::Event::Failed { id, fate })
            }
            Action::Spread { bulk } => self.node(now_ms, replicator::Event::Spread { bulk }),
            Action::ReadPoint { token, position } => {
                self.node(now_ms, replicator::Event::ReadPoint { token, position })
            }
            Action::ReadFailed { token } => {
                self.node(now_ms, replicator::Event::ReadFailed { token })
            }
            // The mesh stays up for a while: the others may still need this member's last message.
            Action::Left => {
                self.drop_deliveries(now_ms, host);
                self.node(now_ms, replicator::Event::Left)
            }
            Action::Refused { reason } => host.refused(reason),
            Action::Note { text } => host.note(&text),
            Action::Alarm { text } => host.alarm(&text),
        }
    }

    /// Appends an entry to the log.
    fn append(&mut self, entry: &group::Entry, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        host.appended(entry);
        // The override is noted before any entry above the fork point is delivered, and before its own configuration is
        // appended.
        let noted = match &entry.body {
            group::Body::Configuration(group::Configuration {
                override_id: Some(id),
                ..
            }) if self.replicator.database_follows() => {
                let known = link.group.overrides_in_log();
                link.storage.note_override(*id, &known)
            }
            _ => Ok(()),
        };
        let result = noted.and_then(|()| link.storage.append(entry));
        let at_once = matches!(entry.body, group::Body::Configuration(_));
        link.flushes.appended(entry.position, at_once);
        self.must_write(result);
    }

    /// Drops the log's entries above this position.
    fn truncate(&mut self, after: group::Position, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        host.truncated(after, link.group.term());
        let in_log = link.group.overrides_in_log();
        let truncated = link.storage.truncate(after);
        let result = truncated.and_then(|()| link.storage.drop_lost_overrides(&in_log));
        link.flushes.truncated(after);
        self.must_write(result);
    }

    /// Begins the log anew above a checkpoint. Before, the replicator hears of everything that waits in the old log.
    fn begin_anew(&mut self, now_ms: u64, checkpoint: group::Checkpoint, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        let term = link.group.term();
        self.drop_deliveries(now_ms, host);
        host.began_anew(&checkpoint, term);
        if self.replicator.needs_log() {
            self.node(now_ms, replicator::Event::LogEnds);
            self.carry_out(now_ms, host);
        }
        let Some(link) = &mut self.link else { return };
        let dropped = link.storage.staging().bulk_payloads();
        let forgot = Forgotten::by(&link.group);
        // The overrides below the checkpoint may be others' only: the database was judged without them.
        let begun = link.storage.begin(&checkpoint, forgot);
        let result = begun.and_then(|()| link.storage.drop_lost_overrides(&[]));
        link.flushes.forget(now_ms);
        self.not_staged(now_ms, dropped);
        self.must_write(result);
        self.tell_history(host);
        self.node(now_ms, replicator::Event::Reset(Box::new(checkpoint)));
    }

    /// Keeps a promised term, before the group may send the promise.
    fn persist(&mut self, now_ms: u64, promised: group::Term, host: &mut dyn Host) {
        self.group_dirty = true;
        let persisted = match planted(Mutant::PromiseNotPersisted) {
            true => Ok(()),
            false => host.promise(promised),
        };
        let persisted = persisted.or_else(|error| {
            let is_given = planted(Mutant::UnkeptPromiseGiven);
            is_given.then_some(()).ok_or(error)
        });
        match (persisted, &mut self.link) {
            (Ok(()), Some(link)) => {
                (link.group).handle(now_ms, group::Event::Persisted { promised })
            }
            (Ok(()), None) => {}
            (Err(error), _) => self.not_kept("the promised term cannot be written", &error),
        }
    }

    /// Drops the waiting deliveries, because the log begins anew or the group has ended. The replicator still hears all
    /// other actions that wait.
    fn drop_deliveries(&mut self, now_ms: u64, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        for action in link.undelivered.drop_deliveries() {
            self.carry_out_group(now_ms, action, host);
            self.carry_out(now_ms, host);
        }
    }

    /// Tells the replicator of an entry that the group has delivered.
    pub(super) fn deliver(
        &mut self,
        now_ms: u64,
        position: group::Position,
        delivery: group::Delivery,
        host: &mut dyn Host,
    ) {
        self.tell_history(host);
        let override_id = match &delivery {
            group::Delivery::Configuration(made) => made.override_id,
            group::Delivery::Submission { .. } => None,
        };
        let group = self.link.as_ref().map(|link| &link.group);
        let in_primary =
            group.is_some_and(|g| g.component_state() == group::ComponentState::Primary);
        let delivered = replicator::Event::Delivered {
            position,
            delivery,
            in_primary,
        };
        self.node(now_ms, delivered);
        host.took_in(&self.replicator);
        if let Some(id) = override_id {
            self.see_override(id, host);
        }
    }

    /// Founds a history with the support of the other nodes, as a bootstrap does.
    fn found(&mut self, now_ms: u64, host: &mut dyn Host) {
        let link = self.link.as_mut().filter(|_| !self.replicator.is_leaving());
        let Some((link, history)) = link.and_then(|link| link.to_found.take().map(|id| (link, id)))
        else {
            return; // the node is leaving; the next process founds
        };
        link.just_founded = true;
        let begun = link.storage.found(history);
        self.must_write(begun);
        if self.failed.is_some() {
            return;
        }
        host.founds(history);
        self.node(now_ms, replicator::Event::Found { history });
        let event = group::Event::Bootstrap {
            history,
            overrides: Vec::new(),
            override_id: None,
        };
        self.group(now_ms, event);
    }

    /// Begins the log anew above the database, as `--wsrep-new-cluster` does, but without a new process. The database's
    /// seqnos are not given to other entries (rule 5). `in_log`: the overrides in the log, without those that were never
    /// made.
    fn found_on_database(&mut self, now_ms: u64, id: Uuid, in_log: &[Uuid], host: &mut dyn Host) {
        self.drop_deliveries(now_ms, host);
        let Some(link) = self.link.as_mut() else {
            return;
        };
        let history = link.group.history();
        let (last_action, noted) = link.storage.noted();
        let mut connect = Connect {
            bootstrap: Some(history),
            last_action,
            overrides: noted,
            ..self.replicator.connect_again()
        };
        let common = connect.local.seqno;
        let knows_all = !Forgotten::by(&link.group).views;
        let past = connect.found_above(knows_all.then_some(in_log), id, common);
        // The notes come together with the log: see `Recovery::founder_counts_at`.
        let begun = (link.storage.found(history))
            .and_then(|()| link.storage.note_overrides(connect.overrides.clone()));
        link.flushes.forget(now_ms);
        link.just_founded = true;
        link.group.begin_anew();
        self.must_write(begun);
        if self.failed.is_some() {
            return;
        }
        self.node(now_ms, replicator::Event::Connect(Box::new(connect)));
        let local = self.replicator.local();
        host.founds_on(local);
        let lost_from = Gtid {
            seqno: local.seqno + 1,
            ..local
        };
        self.tell_lost(lost_from, host);
        let event = group::Event::Bootstrap {
            history,
            overrides: past,
            override_id: Some(id),
        };
        self.group(now_ms, event);
    }

    /// Sees a delivered override. If this process made it to let the cluster go on, the lost GTIDs are known now.
    fn see_override(&mut self, id: Uuid, host: &mut dyn Host) {
        if (self.reformed).is_some_and(|reformed| reformed.waits_for(id)) {
            // The seqno of the override's view: entries of the old log have lower seqnos.
            let seqno = self.replicator.last_seqno().unwrap_or(0);
            let uuid = (self.link.as_ref()).map_or(Uuid::NIL, |link| link.group.history());
            self.tell_lost(Gtid { uuid, seqno }, host);
        }
    }

    /// Notes the first GTID that is lost, and tells the operator.
    fn tell_lost(&mut self, gtid: Gtid, host: &mut dyn Host) {
        if let Some(reformed) = &mut self.reformed {
            host.alarm(&reformed.note_lost_from(gtid));
        }
    }

    /// Notes beside the log the state that a restart needs.
    pub(super) fn note_component_state(&mut self, host: &mut dyn Host) {
        let Some(link) = self.link.as_mut().filter(|_| self.failed.is_none()) else {
            return;
        };
        let group = &link.group;
        let mut result = link.storage.note_forgotten(Forgotten::by(group));
        self.volume_failed &= group.is_amnesiac() || result.is_err();
        let in_step = link.undelivered.is_empty();
        if in_step && link.storage.wants_snapshot() && result.is_ok() {
            if let Some(control) = self.replicator.control_snapshot() {
                let state = link.group.checkpoint();
                host.kept(state, &control);
                result = link.storage.put_snapshot(state, &control);
            }
        }
        // The founder's log has its first view and the control state, and no message has spoken of it.
        if std::mem::take(&mut link.just_founded) && result.is_ok() {
            result = link.storage.publish();
        }
        self.must_write(result);
    }

    /// Names the log in the data directory, before any message speaks of the log's entries. Then its mark may begin.
    pub(super) fn tell_log(&mut self, host: &mut dyn Host) {
        let untold = |link: &&mut Link| !link.log_told;
        let Some(link) = self.link.as_mut().filter(untold) else {
            return;
        };
        let Some(id) = link.storage.log_id() else {
            return;
        };
        link.log_told = true;
        match host.in_log(id) {
            Ok(()) => link.storage.note_named(),
            Err(error) => self.not_kept(
                "cannot write down which write-set log is this node's",
                &error,
            ),
        }
    }

    pub(super) fn tell_history(&mut self, host: &mut dyn Host) {
        let untold = |link: &&mut Link| !link.history_told && !link.group.history().is_nil();
        let Some(link) = self.link.as_mut().filter(untold) else {
            return;
        };
        link.history_told = true;
        host.in_history(link.group.history());
    }
}

/// Sends a group's message to these peers.
fn send(to: &[group::Incarnation], message: &group::Message, host: &mut dyn Host) {
    let channel = match message {
        group::Message::Part { .. } => Channel::Bulk,
        _ => Channel::Group,
    };
    if let Some((term, position)) = message.acknowledges() {
        host.acknowledged(term, position);
    }
    host.send(to, channel, group::encode(message));
}
