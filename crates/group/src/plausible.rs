//! Messages that decode but that no correct member sends are ignored: without TLS anybody on the
//! network can send them, and the core's assertions are for its own mistakes.

use crate::entry::Body;
use crate::fetching::{HEAD_MAX, PART_MAX, PAYLOAD_MAX};
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Position};
use crate::message::{Append, Message, Parcel, WireBody};

/// Positions and ballot numbers beyond these are not reached by counting.
const POSITION_MAX: Position = 1 << 62;
const NUMBER_STEP_MAX: u64 = 1 << 32;
/// More members than any cluster has.
const LINKS_MAX: usize = 1024;

impl Group {
    pub(crate) fn plausible(&self, from: Incarnation, message: &Message) -> bool {
        let number_max = self
            .promised
            .number
            .max(self.number_seen)
            .saturating_add(NUMBER_STEP_MAX);
        let number = |number: u64| number <= number_max;
        let ballot = |ballot: &Ballot| number(ballot.number);
        // A process that claims this node's replica id has no say in its votes (rule 14).
        let other = || {
            self.peers
                .get(&from)
                .is_none_or(|peer| peer.replica != self.my_replica())
        };
        match message {
            Message::Status(status) => {
                let few = status.outlook.links.len() <= LINKS_MAX;
                ballot(&status.ballot) && status.end < POSITION_MAX && few
            }
            Message::Append(append) => ballot(&append.ballot) && consistent(append),
            Message::Ack { ballot: b, .. } => ballot(b) && other(),
            Message::Summary { ballot: b, summary } => ballot(b) && summary.end < POSITION_MAX,
            Message::Install {
                ballot: b,
                checkpoint,
                ..
            } => {
                ballot(b)
                    && (1..POSITION_MAX).contains(&checkpoint.position)
                    && checkpoint.ballot <= *b
                    && !checkpoint.history.is_nil()
                    && checkpoint.configuration.total_weight() > 0
            }
            Message::PreVote { ballot: b } => ballot(b),
            Message::PreVoteReply { ballot: b, .. } => ballot(b) && other(),
            Message::Prepare { ballot: b, .. } => ballot(b),
            Message::Promise(promise) => ballot(&promise.ballot) && other(),
            Message::Refuse { promised } => ballot(promised),
            Message::TakeOffice { number: n, .. } => number(*n),
            Message::Expects { nodes, promised } => {
                (1..=LINKS_MAX as u32).contains(nodes) && ballot(promised) && other()
            }
            Message::LogEndReply { end, .. } => *end < POSITION_MAX,
            Message::Offer { parcel, .. } => parcel.as_ref().is_none_or(fits),
            Message::SubmitParcel { parcel, head, .. } => {
                fits(parcel) && head.len() == parcel.head as usize
            }
            Message::Fetch { len, .. } => (1..=PART_MAX).contains(len),
            Message::Part { bytes, .. } => bytes.len() <= PART_MAX as usize,
            Message::Submit { payload, .. } => payload
                .as_ref()
                .is_none_or(|p| p.len() <= PAYLOAD_MAX as usize),
            Message::Held { .. }
            | Message::Join(_)
            | Message::JoinRefused { .. }
            | Message::Leave
            | Message::Weight { .. }
            | Message::LogEnd { .. } => true,
        }
    }
}

/// No longer than any write-set is.
fn fits(parcel: &Parcel) -> bool {
    (1..=PAYLOAD_MAX).contains(&parcel.len) && parcel.head <= HEAD_MAX.min(parcel.len)
}

/// Entries are contiguous, their ballots never fall nor exceed the sequencer's, and the log takes them.
fn consistent(append: &Append) -> bool {
    let mut last = (append.prev_position, append.prev_ballot);
    append.prev_position < POSITION_MAX
        && append.entries.iter().all(|entry| {
            let follows = entry.position == last.0 + 1
                && entry.ballot >= last.1
                && entry.ballot <= append.ballot
                && payload_len(&entry.body) <= PAYLOAD_MAX as usize;
            last = (entry.position, entry.ballot);
            follows
        })
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
    use crate::configuration::Member;
    use crate::event::{Event, Recovered};
    use crate::group::Config;
    use crate::ids::{ReplicaId, SubmissionId, Uuid};
    use crate::message::{Status, WireEntry};

    fn append(entries: &[(Position, u64)]) -> Append {
        let wire = |(position, number): &(Position, u64)| WireEntry {
            position: *position,
            ballot: Ballot {
                number: *number,
                replica: ReplicaId(Uuid([1; 16])),
            },
            body: WireBody::Full(Body::BallotStart),
        };
        let ballot = Ballot {
            number: 5,
            replica: ReplicaId(Uuid([1; 16])),
        };
        Append {
            ballot,
            prev_position: 0,
            prev_ballot: Ballot::default(),
            entries: entries.iter().map(wire).collect(),
            ack: 0,
            commit: 0,
        }
    }

    #[test]
    fn order_records_that_skip_or_fall_are_no_order_records() {
        assert!(consistent(&append(&[(1, 3), (2, 3), (3, 5)])));
        assert!(!consistent(&append(&[(1, 3), (3, 3)])), "a gap");
        assert!(!consistent(&append(&[(1, 4), (2, 3)])), "a falling ballot");
        assert!(
            !consistent(&append(&[(1, 6)])),
            "beyond the sequencer's ballot"
        );
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
            let parcel = Parcel {
                len,
                ..Parcel::default()
            };
            assert_eq!(fits(&parcel), is_plausible, "{len}");
        }
    }

    #[test]
    fn an_absurd_ballot_is_not_promised() {
        let mut group = Group::new(Config::new(Member::default()), Recovered::default(), 0);
        let (replica, incarnation) = (ReplicaId(Uuid([1; 16])), Incarnation(Uuid([2; 16])));
        group.handle(
            1,
            Event::PeerUp {
                replica,
                incarnation,
            },
        );
        let ballot = Ballot {
            number: u64::MAX,
            replica,
        };
        let message = Message::Status(Status {
            ballot,
            sequencer: true,
            ..Status::default()
        });
        group.handle(
            2,
            Event::Message {
                from: incarnation,
                message,
            },
        );
        assert_eq!(group.ballot(), Ballot::default());
    }
}
