//! The replication of the leader's log: the leader sends each member the entries that it lacks, from the last position
//! on which both logs agree.
//!
//! In: members' summaries and acknowledgements. Out: appends, installs, the leader's acknowledgement. A bounded window
//! of bytes is sent ahead of a member's acknowledgement, and the log on disk is read one slice at a time.

use std::collections::BTreeMap;

use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::ids::{Incarnation, Position, ReplicaId, Term, TimeMs};
use crate::known::Known;
use crate::log_reader::{LogReader, NotNow};
use crate::message::{Append, Message, Summary, WireEntry};
use crate::submissions::Submissions;

/// The log on disk is read again after this time if it cannot be read at the moment.
const LOG_RETRY_MS: TimeMs = 100;
/// Approximate size of an entry in a message without its content, in bytes.
const WIRE_OVERHEAD_BYTES: usize = 64;

/// The replication progress of a member.
#[derive(Clone, Debug, Hash)]
struct Progress {
    replica: ReplicaId,
    /// Next position to send.
    next: Position,
    /// The position that it has acknowledged.
    acked: Position,
    /// The leader's own acknowledgement, as last told to the member.
    told: Position,
    /// Approximate number of bytes sent above `acked`.
    ahead_bytes: usize,
    /// The bytes of these that were sent up to `mark`. They count until the member has acknowledged up to `mark`.
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

    fn acknowledged(&mut self, position: Position) {
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

    /// True if the member lacks entries, and has room for them.
    fn is_due(&self, known: Known) -> bool {
        self.next <= known.log.tail().end()
            && self.ahead_bytes < known.context.config().window_bytes
    }
}

/// The replication progress of all members.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Replication {
    members: BTreeMap<Incarnation, Progress>,
    /// Summaries of processes that are no members yet.
    waiting: BTreeMap<Incarnation, Summary>,
    /// First position whose payloads the origins are sending right now.
    fresh: Position,
    /// When the log on disk was last read. A time in the future: no read before it.
    log_read_at: TimeMs,
}

/// The leader's facts that its messages carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leading<'a> {
    pub known: Known<'a>,
    pub term: Term,
    /// The position that the leader itself acknowledges.
    pub own_ack: Position,
    pub submissions: &'a Submissions,
}

/// A message with its recipients.
pub(crate) type ToMembers = (Vec<Incarnation>, Message);

impl Replication {
    pub(crate) fn new() -> Replication {
        Replication {
            members: BTreeMap::new(),
            waiting: BTreeMap::new(),
            fresh: Position::MAX,
            log_read_at: 0,
        }
    }

    /// The least position that a member in replication has acknowledged; None if there is no such member.
    pub(crate) fn least_acked(&self) -> Option<Position> {
        self.members.values().map(|progress| progress.acked).min()
    }

    /// True if the member has been sent the whole log.
    pub(crate) fn has_sent_all(&self, member: Incarnation, end: Position) -> bool {
        let progress = self.members.get(&member);
        progress.is_some_and(|progress| progress.next > end)
    }

    pub(crate) fn acked(&self, member: Incarnation) -> Position {
        self.members
            .get(&member)
            .map_or(0, |progress| progress.acked)
    }

    /// A member has acknowledged everything up to this position.
    pub(crate) fn acknowledged(&mut self, from: Incarnation, position: Position) {
        if let Some(progress) = self.members.get_mut(&from) {
            progress.acknowledged(position);
        }
    }

    /// Drops processes whose replicas the configuration no longer lists: nothing more is sent to them.
    pub(crate) fn configured(&mut self, configuration: &Configuration) {
        self.members
            .retain(|_, progress| configuration.replica(progress.replica).is_some());
    }

    pub(crate) fn forget(&mut self, incarnation: Incarnation) {
        self.members.remove(&incarnation);
        self.waiting.remove(&incarnation);
    }

    /// Submissions from this position on were ordered just now.
    pub(crate) fn ordered_from(&mut self, first: Position) {
        self.fresh = self.fresh.min(first);
    }

    /// Keeps the summary of a process that no configuration lists, until one does.
    pub(crate) fn keep(&mut self, from: Incarnation, summary: &Summary) {
        self.waiting.insert(from, summary.clone());
    }

    /// Takes the kept summary of a process, if any.
    pub(crate) fn take_kept(&mut self, from: Incarnation) -> Option<Summary> {
        self.waiting.remove(&from)
    }

    /// Starts to send entries from `next` on to the process of a replica; `next` 0: it gets a checkpoint. `acked`: the
    /// position that it has acknowledged in this term. If it lacks nothing, returns an empty append for it.
    pub(crate) fn start(
        &mut self,
        leading: Leading,
        (member, replica): (Incarnation, ReplicaId),
        next: Position,
        acked: Position,
    ) -> Option<ToMembers> {
        let progress = Progress {
            acked,
            ..Progress::from(replica, next, leading.own_ack)
        };
        self.members.insert(member, progress);
        let tail = leading.known.log.tail();
        (next > tail.end()).then(|| {
            let append = Append {
                term: leading.term,
                prev_position: tail.end(),
                prev_term: tail.end_term(),
                entries: Vec::new(),
                ack: leading.own_ack,
                commit: leading.known.log.committed().position,
            };
            (vec![member], Message::Append(append))
        })
    }

    /// Sends every member the entries that it lacks, within its window.
    pub(crate) fn pursue(&mut self, leading: Leading, log: &dyn LogReader) -> Vec<ToMembers> {
        let fresh = std::mem::replace(&mut self.fresh, Position::MAX);
        let mut out = Vec::new();
        // The second round is for members that got a checkpoint in the first.
        for _ in 0..2 {
            for (next, members) in self.lacking(leading.known) {
                self.send_from(leading, (next, members), fresh, log, &mut out);
            }
        }
        out
    }

    /// Members that lack entries and have room in their window, by the next position to send.
    fn lacking(&self, known: Known) -> BTreeMap<Position, Vec<Incarnation>> {
        let mut due: BTreeMap<Position, Vec<Incarnation>> = BTreeMap::new();
        for (member, progress) in &self.members {
            if progress.is_due(known) {
                due.entry(progress.next).or_default().push(*member);
            }
        }
        due
    }

    /// The time for the next slice of the log on disk, if a member lacks entries that are no longer in memory.
    pub(crate) fn reads_log_at(&self, known: Known) -> Option<TimeMs> {
        let first = known.log.tail().first();
        let mut progresses = self.members.values();
        let is_due = progresses.any(|p| (1..first).contains(&p.next) && p.is_due(known));
        is_due.then_some(self.log_read_at.max(known.now()) + 1)
    }

    fn send_from(
        &mut self,
        leading: Leading,
        (mut next, members): (Position, Vec<Incarnation>),
        fresh: Position,
        log: &dyn LogReader,
        out: &mut Vec<ToMembers>,
    ) {
        let known = leading.known;
        let (tail, now) = (known.log.tail(), known.now());
        let mut sent_bytes = 0;
        while next <= tail.end() && sent_bytes < known.context.config().window_bytes {
            if next > 0 && next < tail.first() && !self.may_read_log(now) {
                break;
            }
            let prev = next.checked_sub(1);
            let prev_term = match prev.map(|prev| term_of(known, prev, log)) {
                Some(Ok(Some(term))) => term,
                Some(Err(NotNow)) => {
                    self.read_log_later(now);
                    break;
                }
                Some(Ok(None)) | None => {
                    out.extend(self.install_at(leading, members));
                    return;
                }
            };
            let Ok((entries, bytes)) = leading.collect(next, next >= fresh, log) else {
                self.read_log_later(now);
                break;
            };
            let Some(last) = entries.last().map(|entry| entry.position) else {
                // Only a gap in the log leads here, because the log holds the entry before.
                out.extend(self.install_at(leading, members));
                return;
            };
            let message = Message::Append(Append {
                term: leading.term,
                prev_position: next - 1,
                prev_term,
                entries,
                ack: leading.own_ack,
                commit: known.log.committed().position,
            });
            out.push((members.clone(), message));
            next = last + 1;
            sent_bytes += bytes;
        }
        for member in &members {
            if let Some(progress) = self.members.get_mut(member) {
                (progress.next, progress.told) = (next, leading.own_ack);
                progress.ahead_bytes += sent_bytes;
            }
        }
    }

    /// Tells members the leader's own acknowledgement, as far as their entries reach. A leader that flushes its log
    /// holds less when it sends the order records. Often this acknowledgement is the vote for which the members wait.
    pub(crate) fn tell_own_ack(&mut self, leading: Leading) -> ToMembers {
        let position = leading.own_ack;
        let mut to = Vec::new();
        for (member, progress) in &mut self.members {
            let sent = progress.next.saturating_sub(1);
            if position.min(sent) > progress.told {
                progress.told = position;
                to.push(*member);
            }
        }
        let message = Message::Ack {
            term: leading.term,
            position,
            commit: leading.known.log.committed().position,
        };
        (to, message)
    }

    /// True once in each ms: the log on disk is read one slice at a time.
    fn may_read_log(&mut self, now: TimeMs) -> bool {
        let may = self.log_read_at < now;
        if may {
            self.log_read_at = now;
        }
        may
    }

    /// The log on disk cannot be read now: the members that need it wait.
    fn read_log_later(&mut self, now: TimeMs) {
        self.log_read_at = now + LOG_RETRY_MS;
    }

    /// Sends these members a checkpoint at the commit point, because their logs end below all entries that can be read
    /// here.
    fn install_at(&mut self, leading: Leading, members: Vec<Incarnation>) -> Option<ToMembers> {
        let committed = leading.known.log.committed();
        if committed.position == 0 {
            return None; // nothing is committed: every log begins at the start
        }
        for member in &members {
            if let Some(progress) = self.members.get_mut(member) {
                *progress = Progress::from(progress.replica, committed.position + 1, 0);
            }
        }
        let install = Message::Install {
            term: leading.term,
            checkpoint: committed.clone(),
            intact_at: leading.known.log.tail().end(),
        };
        Some((members, install))
    }
}

impl Leading<'_> {
    /// Collects a run of entries from `next` on, out of memory or out of the log on disk, and its size in bytes.
    fn collect(
        &self,
        next: Position,
        fresh: bool,
        log: &dyn LogReader,
    ) -> Result<(Vec<WireEntry>, usize), NotNow> {
        let tail = self.known.log.tail();
        let config = self.known.context.config();
        let thresholds = &config.thresholds;
        let most = next + thresholds.append_entries.max(1) - 1;
        if next < tail.first() {
            let last = most.min(tail.first() - 1);
            if log
                .len_bytes(next)
                .is_some_and(|bytes| config.is_large(bytes))
            {
                let head = log.head(next)?;
                if let Some(large) = head.filter(|head| config.is_large(head.len as usize)) {
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
        for entry in tail.above(next - 1) {
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

    /// Returns an entry in its wire form, and its size in bytes. A submission is sent by reference if its origin
    /// disseminates it right now, or if it is a bulk payload.
    fn wire(&self, entry: &Entry, fresh: bool) -> (WireEntry, usize) {
        let config = self.known.context.config();
        match &entry.body {
            Body::Submission { id, payload }
                if fresh && id.incarnation != self.known.me() || config.is_large(payload.len()) =>
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
}

fn term_of(known: Known, position: Position, log: &dyn LogReader) -> Result<Option<Term>, NotNow> {
    let committed = known.log.committed();
    if position == committed.position {
        return Ok(Some(committed.term));
    }
    match known.log.tail().term_at(position) {
        Some(term) => Ok(Some(term)),
        None => Ok(log.head(position)?.map(|head| head.entry.term)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::configuration::Member;
    use crate::context::Context;
    use crate::ids::Uuid;
    use crate::log::Log;
    use crate::peers::Peers;

    /// A log on disk with nothing in it.
    struct Empty;

    impl LogReader for Empty {
        fn read(&self, _: Position) -> Result<Option<Entry>, NotNow> {
            Ok(None)
        }
    }

    #[test]
    fn a_member_is_sent_what_it_lacks_and_no_more_than_its_window() {
        let mut log = Log::default();
        for position in 1..=10 {
            let entry = Entry {
                position,
                term: Term::default(),
                body: Body::TermStart,
            };
            log.append(entry, true);
        }
        let mut config = Config::new(Member::default());
        config.thresholds.append_entries = 2;
        config.window_bytes = 2 * 2 * (WIRE_OVERHEAD_BYTES + 64);
        let (context, peers) = (Context::new(config, 5), Peers::default());
        let submissions = Submissions::default();
        let leading = Leading {
            known: Known {
                context: &context,
                log: &log,
                peers: &peers,
            },
            term: Term::default(),
            own_ack: 10,
            submissions: &submissions,
        };
        let member = Incarnation(Uuid([2; 16]));
        let mut replication = Replication::new();
        let replica = ReplicaId::default();
        let confirmed = replication.start(leading, (member, replica), 11, 0);
        assert!(confirmed.is_some(), "it lacks nothing");
        assert_eq!(replication.start(leading, (member, replica), 3, 0), None);
        let last_sent = |sent: Vec<ToMembers>| {
            let entries = sent.into_iter().flat_map(|(_, message)| match message {
                Message::Append(append) => append.entries,
                _ => Vec::new(),
            });
            entries.map(|entry| entry.position).max()
        };
        assert_eq!(last_sent(replication.pursue(leading, &Empty)), Some(6));
        assert_eq!(last_sent(replication.pursue(leading, &Empty)), None, "full");
        replication.acknowledged(member, 6);
        assert_eq!(last_sent(replication.pursue(leading, &Empty)), Some(10));
        assert!(replication.has_sent_all(member, 10));
        assert_eq!(replication.least_acked(), Some(6));
    }
}
