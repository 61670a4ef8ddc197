//! Validates messages: the core ignores a well-formed message that no correct member sends.
//!
//! In: decoded messages. Out: whether the core takes the message, and a short description for the log. Without TLS
//! anybody on the network can send such messages, and the core's assertions are only for its own mistakes.

use crate::branches::OVERRIDES_MAX;
use crate::entry::Body;
use crate::fetching::BULK_NUMBER_MAX;
use crate::fetching::{HEAD_MAX, PART_MAX, PAYLOAD_MAX};
use crate::ids::{Incarnation, SubmissionId, Term};
use crate::known::Known;
use crate::limits::{Counting, MEMBERS_MAX, NUMBER_STEP_MAX};
use crate::matching::Matching;
use crate::message::{Append, BulkPayload, Message, Promise, Source, Status, Summary, WireBody};
use crate::tail::SUMMARY_RUNS_MAX;
use crate::vote::Vote;

const COUNTING: Counting = Counting::OF_PEERS;
/// Greatest number of configurations in a promise: those that a log may hold above its commit point, and the ones that
/// its owner adds.
const PROMISED_CONFIGURATIONS_MAX: usize = 2 * crate::limits::PENDING_CONFIGURATIONS_MAX;

/// The state against which messages are validated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validation<'a> {
    pub known: Known<'a>,
    pub vote: &'a Vote,
    pub matching: &'a Matching,
}

impl Validation<'_> {
    /// Returns false for a message that no correct member sends. Only this function judges term numbers, see
    /// [`Validation::believes_number`] and [`Validation::believes_heartbeat`].
    pub(crate) fn accepts(self, from: Incarnation, message: &Message) -> bool {
        let term = |term: &Term| self.believes_number(term.number);
        // A process that claims this node's replica id has no say in this node's votes (rule 14).
        let other = || {
            let replica = self.known.peers.replica_of(from);
            replica != Some(self.known.my_replica())
        };
        match message {
            Message::Status(status) => self.believes_heartbeat(status) && is_status(status),
            Message::Append(append) => {
                term(&append.term) && consistent(append) && self.has_room_for_overrides(append)
            }
            Message::Ack {
                term: b,
                position,
                commit,
            } => term(b) && COUNTING.reaches_all(&[*position, *commit]) && other(),
            Message::Summary { term: b, summary } => term(b) && is_summary(summary),
            Message::Install {
                term: b,
                checkpoint,
                intact_at,
            } => {
                term(b)
                    && checkpoint.position >= 1
                    && checkpoint.term <= *b
                    && !checkpoint.history.is_nil()
                    && checkpoint.is_sound(COUNTING)
                    && checkpoint.configuration.is_sound(COUNTING)
                    && COUNTING.reaches(*intact_at)
            }
            Message::PreVote { term: b } => term(b),
            Message::PreVoteReply { term: b, .. } => term(b) && other(),
            Message::Prepare { term: b, .. } => term(b),
            Message::Promise(promise) => term(&promise.term) && other() && is_promise(promise),
            Message::Refuse { promised } => term(promised),
            Message::TakeLeadership { number, .. } => self.believes_number(*number),
            Message::Expects { nodes, promised } => {
                (1..=MEMBERS_MAX as u32).contains(nodes) && term(promised) && other()
            }
            Message::LogEndReply { end, .. } => COUNTING.reaches(*end),
            Message::Offer { bulk, .. } => bulk.as_ref().is_none_or(fits),
            Message::SubmitBulk { number, bulk, head } => {
                COUNTING.reaches(*number) && fits(bulk) && head.len() == bulk.head as usize
            }
            Message::Join(join) => {
                join.overrides.len() <= OVERRIDES_MAX && COUNTING.reaches(join.known_number)
            }
            Message::Fetch { source, len, .. } => (1..=PART_MAX).contains(len) && is_source(source),
            Message::Part { source, bytes, .. } => {
                bytes.len() <= PART_MAX as usize && is_source(source)
            }
            Message::Submit { number, payload } => {
                let fits = |payload: &bytes::Bytes| payload.len() <= PAYLOAD_MAX as usize;
                COUNTING.reaches(*number) && payload.as_ref().is_none_or(fits)
            }
            Message::Held { .. }
            | Message::JoinRefused { .. }
            | Message::Leave
            | Message::Weight { .. }
            | Message::LogEnd { .. } => true,
        }
    }

    /// The one rule for term numbers of peers, in every message: a correct member is ahead of this one only by the
    /// elections that this one has missed. Only this member's promise on disk counts, not numbers that it has heard. So
    /// every further step upwards needs a promise that this member has written first, and no peer can drive it to the
    /// end of all numbers.
    fn believes_number(self, number: u64) -> bool {
        let step_max = self.vote.persisted().number.saturating_add(NUMBER_STEP_MAX);
        // A number that is promised already drives nobody upwards.
        COUNTING.reaches(number) && number <= step_max.max(self.vote.promised().number)
    }

    /// The one exception: a process without a history believes any leader's number. It has missed all elections, and
    /// one false `Prepare` makes the cluster's number greater than a step. It follows whichever leader it meets, so a
    /// false number does it no harm that a false history could not do.
    fn believes_heartbeat(self, status: &Status) -> bool {
        let is_new = self.known.log.committed().history.is_nil();
        let number = status.term.number;
        self.believes_number(number) || is_new && status.leader && COUNTING.reaches(number)
    }

    /// True if the log, together with these entries, has no more forced views than a history may have.
    fn has_room_for_overrides(self, append: &Append) -> bool {
        let committed = self.known.log.committed().position;
        let entries = append.entries.iter().filter(|e| e.position > committed);
        let added = entries.filter(|e| is_override(&e.body)).count();
        if added == 0 {
            return true;
        }
        let upto = append.prev_position;
        let logged = self.known.log.tail().configurations(committed);
        let logged = logged.filter(|(at, c)| *at <= upto && c.override_id.is_some());
        let incoming = self
            .matching
            .incoming()
            .iter()
            .filter(|e| e.position <= upto);
        let known = logged.count() + incoming.filter(|e| is_override(&e.body)).count();
        self.known.log.committed().overrides.len() + known + added <= OVERRIDES_MAX
    }
}

/// Describes an invalid message: its kind, and the fields that may be wrong. Never all contents, which may be
/// gigabytes.
pub(crate) fn outline(message: &Message) -> String {
    match message {
        Message::Status(status) => format!(
            "a heartbeat of term {}, with its log's end at {}, {} overrides and {} links",
            status.term.number,
            status.end,
            status.overrides.len(),
            status.outlook.links.len()
        ),
        Message::Append(append) => format!(
            "order records of term {} after position {}, {} entries with {} bytes of payload",
            append.term.number,
            append.prev_position,
            append.entries.len(),
            payload_bytes(append)
        ),
        Message::Summary { term, summary } => {
            let (number, end) = (term.number, summary.end);
            format!("a summary for term {number} of a log that ends at {end}")
        }
        Message::Install {
            term, checkpoint, ..
        } => format!(
            "a checkpoint of term {} at position {}, with {} members and {} overrides",
            term.number,
            checkpoint.position,
            checkpoint.configuration.members.len(),
            checkpoint.overrides.len()
        ),
        Message::Ack { term, .. } => in_term("an acknowledgement", term.number),
        Message::PreVote { term } => in_term("a question", term.number),
        Message::PreVoteReply { term, .. } => in_term("an answer", term.number),
        Message::Prepare { term, .. } => in_term("a candidate's request", term.number),
        Message::Promise(promise) => in_term("a promise", promise.term.number),
        Message::Refuse { promised } => in_term("a refusal", promised.number),
        Message::TakeLeadership { number, .. } => in_term("an offer of leadership", *number),
        Message::Join(join) => {
            let count = join.overrides.len();
            format!("a request for admission with {count} overrides")
        }
        Message::Expects { nodes, promised } => {
            let text = in_term("support for a founder", promised.number);
            format!("{text}, of {nodes} nodes")
        }
        Message::LogEndReply { end, .. } => format!("the end of a log at {end}"),
        Message::Offer { bulk, .. } => {
            let len = bulk.map_or(0, |bulk| bulk.len);
            format!("an offer of {len} bytes")
        }
        Message::SubmitBulk { bulk, head, .. } => {
            let (len, head) = (bulk.len, head.len());
            format!("a submission of {len} bytes, {head} of them in it")
        }
        Message::Fetch { len, .. } => format!("a request for {len} bytes of a payload"),
        Message::Part { bytes, .. } => format!("{} bytes of a payload", bytes.len()),
        // These are always valid.
        Message::Submit { .. }
        | Message::Held { .. }
        | Message::JoinRefused { .. }
        | Message::Leave
        | Message::Weight { .. }
        | Message::LogEnd { .. } => String::new(),
    }
}

fn in_term(what: &str, number: u64) -> String {
    format!("{what} in term {number}")
}

fn payload_bytes(append: &Append) -> u64 {
    let entries = append.entries.iter();
    entries.map(|entry| payload_len(&entry.body) as u64).sum()
}

/// True if the bulk payload is within the limits.
fn fits(bulk: &BulkPayload) -> bool {
    bulk.number <= BULK_NUMBER_MAX
        && (1..=PAYLOAD_MAX).contains(&bulk.len)
        && bulk.head <= HEAD_MAX.min(bulk.len)
}

/// True if the entries are contiguous, their terms neither fall nor exceed the leader's, and their bodies are sound.
fn consistent(append: &Append) -> bool {
    let mut last = (append.prev_position, append.prev_term);
    COUNTING.reaches_all(&[append.prev_position, append.ack, append.commit])
        && append.prev_term <= append.term
        && append.entries.iter().all(|entry| {
            let follows = entry.position == last.0 + 1
                && entry.term >= last.1
                && entry.term <= append.term
                && is_body(&entry.body);
            last = (entry.position, entry.term);
            follows
        })
        && COUNTING.reaches(last.0)
}

fn is_body(body: &WireBody) -> bool {
    match body {
        WireBody::Full(body) => body.is_sound(COUNTING),
        WireBody::Reference { id, len, .. } => COUNTING.reaches(id.number) && *len <= PAYLOAD_MAX,
    }
}

fn is_override(body: &WireBody) -> bool {
    matches!(body, WireBody::Full(Body::Configuration(c)) if c.override_id.is_some())
}

fn is_status(status: &Status) -> bool {
    let counts = [
        status.configuration_number,
        status.ack,
        status.end,
        status.commit,
    ];
    COUNTING.reaches_all(&counts)
        && status.members.len() <= MEMBERS_MAX
        && status.outlook.links.len() <= MEMBERS_MAX
        && status.overrides.len() <= OVERRIDES_MAX
}

fn is_summary(summary: &Summary) -> bool {
    let mut runs = summary.runs.iter();
    COUNTING.reaches_all(&[summary.commit, summary.end])
        && summary.runs.len() <= SUMMARY_RUNS_MAX
        && runs.all(|(_, first, last)| first <= last && *last <= summary.end)
}

/// True for a valid promise. `Promises::withdrawn` checks the origins of the withdrawals, because only there the
/// earlier incarnations of a process are known.
fn is_promise(promise: &Promise) -> bool {
    let reached = |id: &SubmissionId| COUNTING.reaches(id.number);
    let mut configurations = promise.configurations.iter();
    is_summary(&promise.summary)
        && promise.configurations.len() <= PROMISED_CONFIGURATIONS_MAX
        && configurations
            .all(|(at, configuration)| COUNTING.reaches(*at) && configuration.is_sound(COUNTING))
        && promise.withdrawn.iter().all(reached)
}

fn is_source(source: &Source) -> bool {
    match source {
        Source::Offered { .. } => true,
        Source::Logged { position, id } => COUNTING.reaches_all(&[*position, id.number]),
    }
}

fn payload_len(body: &WireBody) -> usize {
    match body {
        WireBody::Reference { len, .. } => *len as usize,
        WireBody::Full(Body::Submission { payload, .. }) => payload.len(),
        WireBody::Full(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::configuration::Member;
    use crate::event::Action;
    use crate::event::{Event, Recovered};
    use crate::group::Group;
    use crate::ids::Position;
    use crate::ids::{ReplicaId, Uuid};
    use crate::message::{ComponentState, WireEntry};

    fn append(entries: &[(Position, u64)]) -> Append {
        let wire = |(position, number): &(Position, u64)| WireEntry {
            position: *position,
            term: Term {
                number: *number,
                replica: ReplicaId(Uuid([1; 16])),
            },
            body: WireBody::Full(Body::TermStart),
        };
        let term = Term {
            number: 5,
            replica: ReplicaId(Uuid([1; 16])),
        };
        Append {
            term,
            prev_position: 0,
            prev_term: Term::default(),
            entries: entries.iter().map(wire).collect(),
            ack: 0,
            commit: 0,
        }
    }

    #[test]
    fn order_records_that_skip_or_fall_are_no_order_records() {
        assert!(consistent(&append(&[(1, 3), (2, 3), (3, 5)])));
        assert!(!consistent(&append(&[(1, 3), (3, 3)])), "a gap");
        assert!(!consistent(&append(&[(1, 4), (2, 3)])), "a falling term");
        assert!(!consistent(&append(&[(1, 6)])), "beyond the leader's term");
        assert!(!consistent(&append(&[(0, 3)])), "before the start");
    }

    #[test]
    fn a_payload_that_no_log_takes_is_no_payload() {
        let mut append = append(&[(1, 3)]);
        for (len, is_plausible) in [
            (PAYLOAD_MAX, true),
            (PAYLOAD_MAX + 1, false),
            (1 << 31, false),
        ] {
            let (incarnation, number, digest) = (Incarnation(Uuid([2; 16])), 1, 0);
            let id = SubmissionId {
                incarnation,
                number,
            };
            append.entries[0].body = WireBody::Reference { id, len, digest };
            assert_eq!(consistent(&append), is_plausible, "{len}");
            let bulk = BulkPayload {
                len,
                ..BulkPayload::default()
            };
            assert_eq!(fits(&bulk), is_plausible, "{len}");
        }
        for (number, is_plausible) in [(BULK_NUMBER_MAX, true), (BULK_NUMBER_MAX + 1, false)] {
            let bulk = BulkPayload {
                number,
                len: 1,
                ..BulkPayload::default()
            };
            assert_eq!(fits(&bulk), is_plausible, "{number}");
        }
    }

    /// A node that is connected to one peer.
    fn connected() -> (Group, ReplicaId, Incarnation) {
        let mut group = Group::new(Config::new(Member::default()), Recovered::default(), 0);
        let (replica, incarnation) = (ReplicaId(Uuid([1; 16])), Incarnation(Uuid([2; 16])));
        let event = Event::PeerUp {
            replica,
            incarnation,
        };
        group.handle(1, event);
        (group, replica, incarnation)
    }

    /// Hands the message in, and returns the node's log lines about it.
    fn told(group: &mut Group, now: u64, from: Incarnation, message: Message) -> Vec<String> {
        group.out.drain_into(&mut Vec::new());
        group.handle(now, Event::Message { from, message });
        let mut out = Vec::new();
        group.out.drain_into(&mut out);
        let notes = out.into_iter().filter_map(|action| match action {
            Action::Note { text } => Some(text),
            _ => None,
        });
        notes.collect()
    }

    #[test]
    fn of_what_is_ignored_only_kind_and_sizes_are_told_and_seldom() {
        let (mut group, _, peer) = connected();
        let entry = |position| WireEntry {
            position,
            term: Term::default(),
            body: WireBody::Full(Body::Submission {
                id: SubmissionId {
                    incarnation: peer,
                    number: 1,
                },
                payload: vec![42; 100_000].into(),
            }),
        };
        // Positions that skip.
        let entries = (0..10).map(|n| entry(2 * n + 1)).collect();
        let message = Message::Append(Append {
            entries,
            ..append(&[])
        });
        let lines = told(&mut group, 2, peer, message.clone());
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert!(line.contains("10 entries with 1000000 bytes"), "{line}");
        assert!(line.len() < 300, "{line}");
        for now in 3..1_000 {
            assert!(told(&mut group, now, peer, message.clone()).is_empty());
        }
        let lines = told(&mut group, 10_002, peer, message.clone());
        assert!(lines[0].ends_with("; 997 messages like it since the last such line"));
        let stranger = Incarnation(Uuid([9; 16]));
        assert!(told(&mut group, 30_000, stranger, message).is_empty());
    }

    #[test]
    fn a_list_of_overrides_that_nobody_can_note_is_ignored() {
        let (mut group, replica, peer) = connected();
        let term = Term { number: 5, replica };
        let status = |count| {
            Message::Status(Status {
                term,
                overrides: vec![Uuid([3; 16]); count],
                ..Status::default()
            })
        };
        assert!(told(&mut group, 2, peer, status(OVERRIDES_MAX)).is_empty());
        let lines = told(&mut group, 2, peer, status(OVERRIDES_MAX + 1));
        assert!(lines[0].contains("513 overrides"), "{lines:?}");
    }

    #[test]
    fn an_absurd_term_is_not_promised() {
        let (mut group, replica, incarnation) = connected();
        let term = Term {
            number: u64::MAX,
            replica,
        };
        let message = Message::Status(Status {
            term,
            leader: true,
            ..Status::default()
        });
        group.handle(
            2,
            Event::Message {
                from: incarnation,
                message,
            },
        );
        assert_eq!(group.term(), Term::default());
    }

    /// The leader's next messages may come before the promise of its far term is on disk.
    #[test]
    fn a_promised_term_is_believed_before_it_is_on_disk() {
        let (mut group, replica, peer) = connected();
        let number = 3 * NUMBER_STEP_MAX;
        let term = Term { number, replica };
        let message = Message::Append(Append {
            term,
            ..append(&[])
        });
        assert_eq!(told(&mut group, 2, peer, message.clone()).len(), 1);
        let status = Message::Status(Status {
            term,
            leader: true,
            component_state: ComponentState::Primary,
            history: Uuid([7; 16]),
            ..Status::default()
        });
        assert!(told(&mut group, 20_000, peer, status).is_empty());
        assert_eq!(group.term(), term);
        assert!(told(&mut group, 20_000, peer, message).is_empty());
    }
}
