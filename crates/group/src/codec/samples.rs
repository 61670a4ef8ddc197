//! One value of each kind, for the golden files.

use bytes::Bytes;

use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Member};
use crate::entry::{Body, Entry};
use crate::ids::{Incarnation, ReplicaId, SubmissionId, Term, Uuid};
use crate::message::{
    Append, BulkPayload, ComponentState, DatabaseProof, Join, Link, Message, Outlook, Preference,
    Promise, Proof, Source, Status, Summary, WireBody, WireEntry,
};
use crate::numbers::{Counted, Numbers};

fn uuid(fill: u8) -> Uuid {
    Uuid([fill; 16])
}

pub fn term() -> Term {
    Term {
        number: 7,
        replica: ReplicaId(uuid(0xb1)),
    }
}

fn submission() -> SubmissionId {
    SubmissionId {
        incarnation: Incarnation(uuid(0xc1)),
        number: 9,
    }
}

fn member() -> Member {
    Member {
        replica: ReplicaId(uuid(0xb1)),
        incarnation: Incarnation(uuid(0xc1)),
        weight: 1,
        full_weight: 2,
        voter: true,
        name: "näme".into(),
        incoming: "10.0.0.1:3306".into(),
        address: "10.0.0.1:4567".into(),
        segment: 3,
        arbitrator: false,
        never_donor: true,
        app_protocol: 4,
    }
}

fn configuration() -> Configuration {
    Configuration {
        number: 5,
        members: vec![member()],
        override_id: Some(uuid(0xd1)),
        fork_after: 95,
    }
}

pub fn checkpoint() -> Checkpoint {
    Checkpoint {
        position: 100,
        term: term(),
        history: uuid(0xa1),
        overrides: vec![uuid(0xd1)],
        configuration: configuration(),
        numbers: numbers(),
    }
}

fn numbers() -> Numbers {
    let mut numbers = Numbers::default();
    for (number, left_at) in [(9, 0), (10, 77)] {
        let id = number as u8 - 8;
        let incarnation = Incarnation(uuid(0xc0 + id));
        let counted = Counted {
            incarnation,
            number,
            left_at,
        };
        numbers.remember(ReplicaId(uuid(0xb0 + id)), counted);
    }
    numbers
}

fn summary() -> Summary {
    Summary {
        commit: 100,
        end: 103,
        end_term: term(),
        runs: vec![(term(), 100, 103)],
    }
}

fn payload() -> Bytes {
    Bytes::from_static(b"payload")
}

fn bulk() -> BulkPayload {
    BulkPayload {
        number: 4,
        len: 2_000_000,
        head: 46,
        digest: 0x0102_0304,
    }
}

type Samples = Vec<(&'static str, Message)>;

/// One message of each kind, with the name of its golden file.
pub fn samples() -> Samples {
    [
        of_the_log(),
        of_leadership(),
        of_membership(),
        of_payloads(),
    ]
    .concat()
}

fn status() -> Status {
    Status {
        term: term(),
        leader: true,
        component_state: ComponentState::NonPrimary,
        history: uuid(0xa1),
        overrides: vec![uuid(0xd1)],
        configuration_number: 5,
        members: vec![Incarnation(uuid(0xc1)), Incarnation(uuid(0xc2))],
        ack: 102,
        end: 103,
        commit: 101,
        outlook: Outlook {
            preference: Preference::Never,
            able: true,
            stamp_ms: 5_000,
            links: vec![Link {
                peer: Incarnation(uuid(0xc2)),
                echo_ms: 4_000,
                held_ms: 30,
                round_trip_us: 1_500,
            }],
        },
    }
}

fn append() -> Append {
    let wire = |position, body| WireEntry {
        position,
        term: term(),
        body,
    };
    let entries = vec![
        wire(101, WireBody::Full(Body::TermStart)),
        wire(102, WireBody::Full(Body::Configuration(configuration()))),
        wire(
            103,
            WireBody::Full(Body::Submission {
                id: submission(),
                payload: payload(),
            }),
        ),
        wire(104, WireBody::Full(Body::Voided { id: submission() })),
        wire(
            105,
            WireBody::Reference {
                id: submission(),
                len: 7,
                digest: 0x0102_0304,
            },
        ),
    ];
    Append {
        term: term(),
        prev_position: 100,
        prev_term: term(),
        entries,
        ack: 105,
        commit: 99,
    }
}

fn promise() -> Promise {
    Promise {
        term: term(),
        summary: summary(),
        configurations: vec![(98, configuration())],
        amnesiac: true,
        lost_views: false,
        proof: Proof {
            known: 77,
            database: DatabaseProof::UpTo { seqno: 79 },
        },
        withdrawn: vec![submission()],
    }
}

fn join() -> Join {
    Join {
        member: member(),
        history: uuid(0xa1),
        known_number: 4,
        overrides: vec![uuid(0xd1)],
    }
}

fn of_the_log() -> Samples {
    vec![
        ("status", Message::Status(status())),
        (
            "submit",
            Message::Submit {
                number: 9,
                payload: Some(payload()),
            },
        ),
        (
            "submit-void",
            Message::Submit {
                number: 9,
                payload: None,
            },
        ),
        ("append", Message::Append(append())),
        (
            "ack",
            Message::Ack {
                term: term(),
                position: 103,
                commit: 101,
            },
        ),
        (
            "summary",
            Message::Summary {
                term: term(),
                summary: summary(),
            },
        ),
        (
            "install",
            Message::Install {
                term: term(),
                checkpoint: checkpoint(),
                intact_at: 120,
            },
        ),
    ]
}

fn of_leadership() -> Samples {
    vec![
        ("pre-vote", Message::PreVote { term: term() }),
        (
            "pre-vote-reply",
            Message::PreVoteReply {
                term: term(),
                granted: true,
            },
        ),
        (
            "prepare",
            Message::Prepare {
                term: term(),
                forced: Some(uuid(0xd1)),
            },
        ),
        ("promise", Message::Promise(promise())),
        ("refuse", Message::Refuse { promised: term() }),
        (
            "take-leadership",
            Message::TakeLeadership {
                number: 8,
                forced: None,
            },
        ),
    ]
}

fn of_membership() -> Samples {
    vec![
        ("join", Message::Join(join())),
        (
            "join-refused",
            Message::JoinRefused {
                reason: "copied data directory".into(),
            },
        ),
        ("leave", Message::Leave),
        ("weight", Message::Weight { weight: 3 }),
        ("log-end", Message::LogEnd { round: 11 }),
        (
            "log-end-reply",
            Message::LogEndReply {
                round: 11,
                term: term(),
                end: 103,
            },
        ),
        (
            "expects",
            Message::Expects {
                nodes: 3,
                promised: term(),
            },
        ),
    ]
}

fn of_payloads() -> Samples {
    let offered = Source::Offered { bulk: 4 };
    let logged = Source::Logged {
        position: 103,
        id: submission(),
    };
    vec![
        (
            "offer",
            Message::Offer {
                oldest: 3,
                bulk: Some(bulk()),
            },
        ),
        (
            "offer-none",
            Message::Offer {
                oldest: 5,
                bulk: None,
            },
        ),
        (
            "fetch",
            Message::Fetch {
                source: offered,
                offset: 131_072,
                len: 65_536,
            },
        ),
        (
            "fetch-logged",
            Message::Fetch {
                source: logged,
                offset: 131_072,
                len: 65_536,
            },
        ),
        (
            "part",
            Message::Part {
                source: offered,
                offset: 131_072,
                bytes: payload(),
            },
        ),
        ("held", Message::Held { bulk: 4 }),
        (
            "submit-bulk",
            Message::SubmitBulk {
                number: 9,
                bulk: bulk(),
                head: payload(),
            },
        ),
    ]
}

/// Messages in their other forms: optional fields present or absent, empty lists, the other values of a choice.
pub fn other_forms() -> Samples {
    let logged = Source::Logged {
        position: 103,
        id: submission(),
    };
    vec![
        (
            "status-outside",
            bare_status(ComponentState::Outside, Preference::Auto),
        ),
        (
            "status-primary",
            bare_status(ComponentState::Primary, Preference::Prefer),
        ),
        ("promise-nothing", bare_promise(DatabaseProof::Nothing)),
        ("promise-unclear", bare_promise(DatabaseProof::Unclear)),
        (
            "append-nothing",
            Message::Append(Append {
                term: term(),
                prev_position: 100,
                prev_term: term(),
                entries: Vec::new(),
                ack: 100,
                commit: 99,
            }),
        ),
        (
            "prepare-unforced",
            Message::Prepare {
                term: term(),
                forced: None,
            },
        ),
        (
            "take-leadership-forced",
            Message::TakeLeadership {
                number: 8,
                forced: Some(uuid(0xd1)),
            },
        ),
        (
            "part-logged",
            Message::Part {
                source: logged,
                offset: 0,
                bytes: payload(),
            },
        ),
    ]
}

/// One entry of each kind that the log holds, with the name of its golden file.
pub fn entries() -> Vec<(&'static str, Entry)> {
    let of = |body| Entry {
        position: 103,
        term: term(),
        body,
    };
    let without_override = Configuration {
        override_id: None,
        fork_after: 0,
        ..configuration()
    };
    let bodies = [
        ("log-entry-start", Body::TermStart),
        (
            "log-entry-configuration",
            Body::Configuration(without_override),
        ),
        ("log-entry-void", Body::Voided { id: submission() }),
    ];
    let named = bodies.into_iter().map(|(name, body)| (name, of(body)));
    named.chain([("log-entry", entry())]).collect()
}

pub fn entry() -> Entry {
    Entry {
        position: 103,
        term: term(),
        body: Body::Submission {
            id: submission(),
            payload: payload(),
        },
    }
}

fn bare_status(component_state: ComponentState, preference: Preference) -> Message {
    Message::Status(Status {
        term: term(),
        leader: false,
        component_state,
        history: Uuid::default(),
        overrides: Vec::new(),
        configuration_number: 0,
        members: Vec::new(),
        ack: 0,
        end: 0,
        commit: 0,
        outlook: Outlook {
            preference,
            able: false,
            stamp_ms: 0,
            links: Vec::new(),
        },
    })
}

fn bare_promise(database: DatabaseProof) -> Message {
    Message::Promise(Promise {
        term: term(),
        summary: Summary {
            commit: 0,
            end: 0,
            end_term: Term::default(),
            runs: Vec::new(),
        },
        configurations: Vec::new(),
        amnesiac: false,
        lost_views: true,
        proof: Proof {
            known: 77,
            database,
        },
        withdrawn: Vec::new(),
    })
}
