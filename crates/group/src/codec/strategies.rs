//! Arbitrary messages.

use std::ops::RangeInclusive;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Member};
use crate::entry::{Body, Entry};
use crate::ids::{Incarnation, ReplicaId, SubmissionId, Term, Uuid};
use crate::message::{
    Append, BulkPayload, ComponentState, DatabaseProof, Join, Link, Message, Outlook, Preference,
    Promise, Proof, Source, Status, Summary, WireBody, WireEntry,
};
use crate::numbers::{Counted, Numbers};

const FEW: RangeInclusive<usize> = 0..=4;

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<[u8; 16]>().prop_map(Uuid)
}

fn replica() -> impl Strategy<Value = ReplicaId> {
    uuid().prop_map(ReplicaId)
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    uuid().prop_map(Incarnation)
}

fn term() -> impl Strategy<Value = Term> {
    (any::<u64>(), replica()).prop_map(|(number, replica)| Term { number, replica })
}

fn submission() -> impl Strategy<Value = SubmissionId> {
    (incarnation(), any::<u64>()).prop_map(|(incarnation, number)| SubmissionId {
        incarnation,
        number,
    })
}

fn payload() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn member() -> impl Strategy<Value = Member> {
    let text = || "\\PC{0,12}";
    let identity = (replica(), incarnation(), text(), text(), text());
    (identity, any::<[u8; 3]>(), any::<[bool; 3]>(), any::<i32>()).prop_map(
        |((replica, incarnation, name, incoming, address), numbers, flags, app_protocol)| Member {
            replica,
            incarnation,
            weight: numbers[0],
            full_weight: numbers[1],
            voter: flags[0],
            name,
            incoming,
            address,
            segment: numbers[2],
            arbitrator: flags[1],
            never_donor: flags[2],
            app_protocol,
        },
    )
}

fn configuration() -> impl Strategy<Value = Configuration> {
    let numbers = any::<[u64; 2]>();
    (numbers, vec(member(), FEW), option::of(uuid())).prop_map(
        |([number, fork_after], members, override_id)| Configuration {
            number,
            members,
            override_id,
            fork_after,
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::TermStart),
        configuration().prop_map(Body::Configuration),
        (submission(), payload()).prop_map(|(id, payload)| Body::Submission { id, payload }),
        submission().prop_map(|id| Body::Voided { id }),
    ]
}

/// Any entry.
pub fn entry() -> impl Strategy<Value = Entry> {
    (any::<u64>(), term(), body()).prop_map(|(position, term, body)| Entry {
        position,
        term,
        body,
    })
}

fn wire_entry() -> impl Strategy<Value = WireEntry> {
    let reference = (submission(), any::<u32>(), any::<u32>())
        .prop_map(|(id, len, digest)| WireBody::Reference { id, len, digest });
    (
        any::<u64>(),
        term(),
        prop_oneof![body().prop_map(WireBody::Full), reference],
    )
        .prop_map(|(position, term, body)| WireEntry {
            position,
            term,
            body,
        })
}

/// Any checkpoint.
pub fn checkpoint() -> impl Strategy<Value = Checkpoint> {
    let counted = (incarnation(), any::<[u64; 2]>());
    let counted = counted.prop_map(|(incarnation, [number, left_at])| Counted {
        incarnation,
        number,
        left_at,
    });
    let numbers = vec((replica(), counted), FEW).prop_map(|all| {
        let mut numbers = Numbers::default();
        (all.into_iter()).for_each(|(replica, counted)| numbers.remember(replica, counted));
        numbers
    });
    (
        any::<u64>(),
        term(),
        uuid(),
        vec(uuid(), FEW),
        configuration(),
        numbers,
    )
        .prop_map(
            |(position, term, history, overrides, configuration, numbers)| Checkpoint {
                position,
                term,
                history,
                overrides,
                configuration,
                numbers,
            },
        )
}

fn summary() -> impl Strategy<Value = Summary> {
    (
        any::<[u64; 2]>(),
        term(),
        vec((term(), any::<u64>(), any::<u64>()), FEW),
    )
        .prop_map(|([commit, end], end_term, runs)| Summary {
            commit,
            end,
            end_term,
            runs,
        })
}

fn status() -> impl Strategy<Value = Status> {
    let component_state = prop::sample::select(vec![
        ComponentState::Outside,
        ComponentState::Primary,
        ComponentState::NonPrimary,
    ]);
    let history = (uuid(), vec(uuid(), FEW), vec(incarnation(), FEW));
    (
        term(),
        any::<bool>(),
        component_state,
        history,
        any::<[u64; 4]>(),
        outlook(),
    )
        .prop_map(
            |(term, leader, component_state, (history, overrides, members), numbers, outlook)| {
                Status {
                    term,
                    leader,
                    component_state,
                    history,
                    overrides,
                    configuration_number: numbers[0],
                    members,
                    ack: numbers[1],
                    end: numbers[2],
                    commit: numbers[3],
                    outlook,
                }
            },
        )
}

fn outlook() -> impl Strategy<Value = Outlook> {
    let preference = prop::sample::select(vec![
        Preference::Auto,
        Preference::Prefer,
        Preference::Never,
    ]);
    let link = (incarnation(), any::<u64>(), any::<[u32; 2]>()).prop_map(
        |(peer, echo_ms, [held_ms, round_trip_us])| Link {
            peer,
            echo_ms,
            held_ms,
            round_trip_us,
        },
    );
    (preference, any::<bool>(), any::<u64>(), vec(link, FEW)).prop_map(
        |(preference, able, stamp_ms, links)| Outlook {
            preference,
            able,
            stamp_ms,
            links,
        },
    )
}

fn append() -> impl Strategy<Value = Append> {
    (term(), term(), vec(wire_entry(), FEW), any::<[u64; 3]>()).prop_map(
        |(term, prev_term, entries, [prev_position, ack, commit])| Append {
            term,
            prev_position,
            prev_term,
            entries,
            ack,
            commit,
        },
    )
}

fn proof() -> impl Strategy<Value = Proof> {
    let database = prop_oneof![
        Just(DatabaseProof::Nothing),
        any::<u64>().prop_map(|seqno| DatabaseProof::UpTo { seqno }),
        Just(DatabaseProof::Unclear),
    ];
    (any::<u64>(), database).prop_map(|(known, database)| Proof { known, database })
}

fn promise() -> impl Strategy<Value = Promise> {
    let configurations = vec((any::<u64>(), configuration()), 0..=2);
    (
        term(),
        summary(),
        configurations,
        any::<bool>(),
        any::<bool>(),
        proof(),
        vec(submission(), FEW),
    )
        .prop_map(
            |(term, summary, configurations, amnesiac, lost_views, proof, withdrawn)| Promise {
                term,
                summary,
                configurations,
                amnesiac,
                lost_views,
                proof,
                withdrawn,
            },
        )
}

fn join() -> impl Strategy<Value = Join> {
    (member(), uuid(), any::<u64>(), vec(uuid(), FEW)).prop_map(
        |(member, history, known_number, overrides)| Join {
            member,
            history,
            known_number,
            overrides,
        },
    )
}

fn bulk() -> impl Strategy<Value = BulkPayload> {
    (any::<u64>(), any::<[u32; 3]>()).prop_map(|(number, [len, head, digest])| BulkPayload {
        number,
        len,
        head,
        digest,
    })
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        any::<u64>().prop_map(|bulk| Source::Offered { bulk }),
        (any::<u64>(), submission()).prop_map(|(position, id)| Source::Logged { position, id }),
    ]
}

/// Any message, each kind equally often.
pub fn message() -> impl Strategy<Value = Message> {
    let number = any::<u64>;
    prop_oneof![
        status().prop_map(Message::Status),
        (number(), option::of(payload()))
            .prop_map(|(number, payload)| Message::Submit { number, payload }),
        append().prop_map(Message::Append),
        (term(), number(), number()).prop_map(|(term, position, commit)| Message::Ack {
            term,
            position,
            commit
        }),
        (term(), summary()).prop_map(|(term, summary)| Message::Summary { term, summary }),
        (term(), checkpoint(), number()).prop_map(|(term, checkpoint, intact_at)| {
            Message::Install {
                term,
                checkpoint,
                intact_at,
            }
        }),
        term().prop_map(|term| Message::PreVote { term }),
        (term(), any::<bool>()).prop_map(|(term, granted)| Message::PreVoteReply { term, granted }),
        (term(), option::of(uuid())).prop_map(|(term, forced)| Message::Prepare { term, forced }),
        promise().prop_map(Message::Promise),
        term().prop_map(|promised| Message::Refuse { promised }),
        (number(), option::of(uuid()))
            .prop_map(|(number, forced)| Message::TakeLeadership { number, forced }),
        join().prop_map(Message::Join),
        "\\PC{0,40}".prop_map(|reason| Message::JoinRefused { reason }),
        Just(Message::Leave),
        any::<u8>().prop_map(|weight| Message::Weight { weight }),
        number().prop_map(|round| Message::LogEnd { round }),
        (number(), option::of(bulk())).prop_map(|(oldest, bulk)| Message::Offer { oldest, bulk }),
        (source(), any::<[u32; 2]>()).prop_map(|(source, [offset, len])| Message::Fetch {
            source,
            offset,
            len
        }),
        (source(), any::<u32>(), payload()).prop_map(|(source, offset, bytes)| Message::Part {
            source,
            offset,
            bytes
        }),
        number().prop_map(|bulk| Message::Held { bulk }),
        (number(), bulk(), payload())
            .prop_map(|(number, bulk, head)| { Message::SubmitBulk { number, bulk, head } }),
        (number(), term(), number()).prop_map(|(round, term, end)| Message::LogEndReply {
            round,
            term,
            end
        }),
        (any::<u32>(), term()).prop_map(|(nodes, promised)| Message::Expects { nodes, promised }),
    ]
}
