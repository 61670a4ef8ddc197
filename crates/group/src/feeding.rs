//! The sequencer feeds every member from where its log ends.

use std::collections::BTreeMap;

use crate::entry::{Body, Entry};
use crate::group::{Group, Role};
use crate::ids::{Ballot, Incarnation, Position, ReplicaId, TimeMs};
use crate::log_reader::{LogReader, NotNow};
use crate::message::{Append, Message, Summary, WireEntry};

/// When it is tried again where it cannot be read at the moment.
const LOG_RETRY_MS: TimeMs = 100;
/// What an entry takes in a message beyond what it holds, roughly.
const WIRE_OVERHEAD_BYTES: usize = 64;

/// How far a member has been fed.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Progress {
    pub replica: ReplicaId,
    /// Next position to send.
    pub next: Position,
    /// Acknowledged.
    pub acked: Position,
    /// How far the sequencer has told it to hold the log itself.
    told: Position,
    /// Bytes sent above `acked`, roughly.
    ahead_bytes: usize,
    /// Those of them that were sent up to `mark`: they count until all of it is acknowledged.
    marked_bytes: usize,
    mark: Position,
}

impl Progress {
    fn from(replica: ReplicaId, next: Position, told: Position) -> Progress {
        Progress {
            replica,
            next,
            acked: 0,
            told,
            ahead_bytes: 0,
            marked_bytes: 0,
            mark: 0,
        }
    }

    pub fn acknowledged(&mut self, position: Position) {
        self.acked = self.acked.max(position);
        if self.acked >= self.mark {
            self.ahead_bytes -= self.marked_bytes;
            self.mark = self.acked.max(self.next.saturating_sub(1));
            if self.acked == self.mark {
                self.ahead_bytes = 0;
            }
            self.marked_bytes = self.ahead_bytes;
        }
    }
}

impl Group {
    /// A member says what its log holds: it is fed from where both agree.
    pub(crate) fn summary(&mut self, from: Incarnation, ballot: Ballot, summary: &Summary) {
        if ballot != self.vote.promised() {
            if ballot > self.vote.promised() {
                self.refused(from, ballot);
            }
            return;
        }
        self.start_feeding(from, summary);
    }

    pub(crate) fn start_feeding(&mut self, member: Incarnation, summary: &Summary) {
        let Some(peer) = self.peers.get(member) else {
            return; // whoever sent a summary has been looked up
        };
        let forked = !self.branches().is_of_own_branch(member, summary);
        // Nothing that both logs have for certain: the member gets a checkpoint.
        let next = if summary.end == 0 || forked {
            0
        } else {
            self.log.tail().matching(summary) + 1
        };
        let replica = peer.replica;
        if self.known().has_twin(replica, member) {
            return;
        }
        // A seat may need the word of its restarted process before that one is admitted (rule 14).
        let seated = self.log.has_seat(replica);
        let told = self.own_ack();
        if let Role::Sequencer(office) = &mut self.role {
            if seated {
                let acked = self.acks.of_process(replica, member, self.vote.promised());
                let progress = Progress {
                    acked,
                    ..Progress::from(replica, next, told)
                };
                office.progress.insert(member, progress);
                if next > self.log.tail().end() {
                    self.confirm(member);
                }
            } else {
                office.waiting.insert(member, summary.clone());
            }
        }
    }

    /// Tells a member that lacks nothing, a restarted process for example, that its log is this one.
    fn confirm(&mut self, member: Incarnation) {
        let append = Append {
            ballot: self.vote.promised(),
            prev_position: self.log.tail().end(),
            prev_ballot: self.log.tail().end_ballot(),
            entries: Vec::new(),
            ack: self.own_ack(),
            commit: self.log.committed().position,
        };
        self.send(member, Message::Append(append));
    }

    /// Sends every member what it lacks, within its window.
    pub(crate) fn feed(&mut self, log: &dyn LogReader) {
        let Role::Sequencer(office) = &mut self.role else {
            return;
        };
        let fresh = std::mem::replace(&mut office.fresh, Position::MAX);
        // A second round for those that were given a checkpoint in the first.
        for _ in 0..2 {
            for (next, members) in self.members_to_feed() {
                self.feed_from(next, members, fresh, log);
            }
        }
    }

    /// Members within their window that lack something, by where they stand.
    fn members_to_feed(&self) -> BTreeMap<Position, Vec<Incarnation>> {
        let mut due: BTreeMap<Position, Vec<Incarnation>> = BTreeMap::new();
        if let Role::Sequencer(office) = &self.role {
            for (member, progress) in &office.progress {
                if progress.next <= self.log.tail().end()
                    && progress.ahead_bytes < self.context.config().window_bytes
                {
                    due.entry(progress.next).or_default().push(*member);
                }
            }
        }
        due
    }

    /// When the next slice is due for somebody who lacks what is no longer in memory.
    pub(crate) fn feeds_from_log_at(&self) -> Option<TimeMs> {
        let Role::Sequencer(office) = &self.role else {
            return None;
        };
        let first = self.log.tail().first();
        let due = self.members_to_feed();
        let is_due = due.range(1..first).next().is_some();
        is_due.then_some(office.log_read_at.max(self.context.now()) + 1)
    }

    fn feed_from(
        &mut self,
        mut next: Position,
        members: Vec<Incarnation>,
        fresh: Position,
        log: &dyn LogReader,
    ) {
        let mut sent_bytes = 0;
        while next <= self.log.tail().end() && sent_bytes < self.context.config().window_bytes {
            if next > 0 && next < self.log.tail().first() && !self.may_read_log() {
                break;
            }
            let prev = next.checked_sub(1);
            let prev_ballot = match prev.map(|prev| self.ballot_of(prev, log)) {
                Some(Ok(Some(ballot))) => ballot,
                Some(Err(NotNow)) => {
                    self.read_log_later();
                    break;
                }
                Some(Ok(None)) | None => {
                    self.install_at(members);
                    return;
                }
            };
            let Ok((entries, bytes)) = self.collect(next, next >= fresh, log) else {
                self.read_log_later();
                break;
            };
            let Some(last) = entries.last().map(|entry| entry.position) else {
                // Not without a gap: the log holds the one before.
                self.install_at(members);
                return;
            };
            let message = Message::Append(Append {
                ballot: self.vote.promised(),
                prev_position: next - 1,
                prev_ballot,
                entries,
                ack: self.own_ack(),
                commit: self.log.committed().position,
            });
            self.send_all(members.clone(), message);
            next = last + 1;
            sent_bytes += bytes;
        }
        let told = self.own_ack();
        if let Role::Sequencer(office) = &mut self.role {
            for member in &members {
                if let Some(progress) = office.progress.get_mut(member) {
                    (progress.next, progress.told) = (next, told);
                    progress.ahead_bytes += sent_bytes;
                }
            }
        }
    }

    /// Tells members which of their entries the sequencer holds by now: where it flushes its log, that is not what their
    /// order records said, and often it is the vote that they wait for.
    pub(crate) fn tell_own_ack(&mut self) {
        let (position, ballot, commit) = (
            self.own_ack(),
            self.vote.promised(),
            self.log.committed().position,
        );
        let Role::Sequencer(office) = &mut self.role else {
            return;
        };
        let mut to = Vec::new();
        for (member, progress) in &mut office.progress {
            let sent = progress.next.saturating_sub(1);
            if position.min(sent) > progress.told {
                progress.told = position;
                to.push(*member);
            }
        }
        let message = Message::Ack {
            ballot,
            position,
            commit,
        };
        self.send_all(to, message);
    }

    /// True once in each ms: the log is read a slice at a time.
    fn may_read_log(&mut self) -> bool {
        match &mut self.role {
            Role::Sequencer(office) if office.log_read_at < self.context.now() => {
                office.log_read_at = self.context.now();
                true
            }
            _ => false,
        }
    }

    /// Whoever is to be fed from the log waits: what cannot be read now is not lost.
    fn read_log_later(&mut self) {
        if let Role::Sequencer(office) = &mut self.role {
            office.log_read_at = self.context.now() + LOG_RETRY_MS;
        }
    }

    /// A run of entries from `next` on, out of memory or out of the log, and how much is sent with it.
    fn collect(
        &self,
        next: Position,
        fresh: bool,
        log: &dyn LogReader,
    ) -> Result<(Vec<WireEntry>, usize), NotNow> {
        let thresholds = &self.context.config().thresholds;
        let most = next + thresholds.append_entries.max(1) - 1;
        if next < self.log.tail().first() {
            let last = most.min(self.log.tail().first() - 1);
            if log
                .len_bytes(next)
                .is_some_and(|bytes| self.is_large(bytes))
            {
                let head = log.head(next)?;
                if let Some(large) = head.filter(|head| self.is_large(head.len as usize)) {
                    let wire = WireEntry::by_reference(&large.entry, large.len, large.digest);
                    return Ok((vec![wire], WIRE_OVERHEAD_BYTES));
                }
            }
            let entries = log.read_run(next, last, thresholds.log_slice_bytes)?;
            let (wires, bytes): (_, Vec<usize>) =
                entries.iter().map(|entry| self.wire(entry, false)).unzip();
            return Ok((wires, bytes.into_iter().sum()));
        }
        let mut entries = Vec::new();
        let mut bytes = 0;
        for entry in self.log.tail().above(next - 1) {
            let (wire, size_bytes) = self.wire(entry, fresh);
            let is_full = bytes + size_bytes > thresholds.append_bytes;
            if entry.position > most || is_full && !entries.is_empty() {
                break;
            }
            bytes += size_bytes;
            entries.push(wire);
        }
        Ok((entries, bytes))
    }

    /// An entry as it is sent, and its size: by reference if its origin disseminates it right now, or it is large.
    fn wire(&self, entry: &Entry, fresh: bool) -> (WireEntry, usize) {
        match &entry.body {
            Body::Submission { id, payload }
                if fresh && id.incarnation != self.me() || self.is_large(payload.len()) =>
            {
                let digest = self.submissions.digest(*id, payload);
                let wire = WireEntry::by_reference(entry, payload.len() as u32, digest);
                (wire, WIRE_OVERHEAD_BYTES)
            }
            _ => (
                WireEntry::full(entry),
                entry.size_bytes() + WIRE_OVERHEAD_BYTES,
            ),
        }
    }

    fn ballot_of(&self, position: Position, log: &dyn LogReader) -> Result<Option<Ballot>, NotNow> {
        if position == self.log.committed().position {
            return Ok(Some(self.log.committed().ballot));
        }
        match self.log.tail().ballot_at(position) {
            Some(ballot) => Ok(Some(ballot)),
            None => Ok(log.head(position)?.map(|head| head.entry.ballot)),
        }
    }

    /// Members whose logs end below everything that can be read here begin anew at the commit point.
    fn install_at(&mut self, members: Vec<Incarnation>) {
        if self.log.committed().position == 0 {
            return; // nothing is committed: every log begins at the start
        }
        let checkpoint = self.log.committed().clone();
        let intact_at = self.log.tail().end();
        let Role::Sequencer(office) = &mut self.role else {
            return;
        };
        for member in &members {
            if let Some(progress) = office.progress.get_mut(member) {
                *progress = Progress::from(progress.replica, checkpoint.position + 1, 0);
            }
        }
        let ballot = self.vote.promised();
        self.send_all(
            members,
            Message::Install {
                ballot,
                checkpoint,
                intact_at,
            },
        );
    }
}
