//! Wire formats: golden bytes, round trips, hostile input.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use trireme_certification::{KeySetBuilder, KeyType};
use trireme_group::{Delivery, Incarnation, OVERRIDES_MAX, SubmissionId, Uuid};

use super::driver::{Cluster, incarnation};
use crate::control::Control;
use crate::message::{Message, MessageError};
use crate::peer_message::{PeerMessage, SnapshotChunk};
use crate::{ControlDigest, Gtid, Recorded, RecordedPart, WriteSetDraft, flags};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/wire.txt");

fn write_set() -> Bytes {
    let mut keys = KeySetBuilder::new();
    keys.append(&[b"db", b"t", b"row"], KeyType::Update);
    let draft = WriteSetDraft::new(
        flags::TRX_START | flags::TRX_END,
        11,
        12,
        &keys,
        &[b"da", b"ta"],
    );
    draft.finish(42, 3, -1)
}

fn messages() -> Vec<(&'static str, Bytes)> {
    let configuration = Cluster::of(1).configuration;
    let id = SubmissionId {
        incarnation: incarnation(0),
        number: 9,
    };
    let records = vec![
        Recorded {
            position: 5,
            seqno: 3,
            depends_on: 2,
            failed: true,
            delivery: Delivery::Submission {
                id,
                payload: Bytes::from_static(b"payload"),
            },
        },
        Recorded {
            position: 6,
            seqno: 4,
            depends_on: 3,
            failed: false,
            delivery: Delivery::Configuration(configuration),
        },
    ];
    let part_of_record = RecordedPart {
        record: Recorded {
            position: 5,
            seqno: 3,
            depends_on: 2,
            failed: false,
            delivery: Delivery::Submission {
                id,
                payload: Bytes::new(),
            },
        },
        len: 9,
        digest: 0x1234_5678,
        offset: 7,
        bytes: Bytes::from_static(b"ad"),
    };
    let local = Gtid {
        uuid: Uuid([5; 16]),
        seqno: 8,
    };
    let request = Message::StateRequest {
        request: Bytes::from_static(b"rsync"),
        local,
        preference: "a,b,".into(),
        bypass: false,
    };
    let script_request = Message::StateRequest {
        request: Bytes::from_static(b"rsync"),
        local,
        preference: String::new(),
        bypass: true,
    };
    let part = Bytes::from_static(b"part");
    vec![
        ("write-set", write_set()),
        ("state request", request.encode()),
        ("joined", Message::Joined.encode()),
        ("synced", Message::Synced.encode()),
        ("donated", Message::Donated { rcode: -125 }.encode()),
        ("desync", Message::Desync.encode()),
        ("resync", Message::Resync.encode()),
        ("cut", Message::Applied(77).encode()),
        (
            "vote",
            Message::Vote {
                seqno: 5,
                ballot: 6,
                policy: 7,
                text: "why".into(),
            }
            .encode(),
        ),
        ("leave out", Message::LeaveOut(incarnation(3)).encode()),
        ("caught up", Message::CaughtUp.encode()),
        ("doubt", Message::InDoubt(78).encode()),
        ("script request", script_request.encode()),
        (
            "snapshot request",
            PeerMessage::SnapshotRequest {
                round: 1,
                at_least: 2,
            }
            .encode(),
        ),
        (
            "snapshot chunk",
            PeerMessage::SnapshotChunk(SnapshotChunk {
                round: 1,
                offset: 2,
                total: 6,
                part,
            })
            .encode(),
        ),
        (
            "snapshot refused",
            PeerMessage::SnapshotRefused { round: 1 }.encode(),
        ),
        ("ist pull", PeerMessage::IstPull { from: 3 }.encode()),
        (
            "ist chunk",
            PeerMessage::IstChunk { from: 3, records }.encode(),
        ),
        ("flow stop", PeerMessage::FlowStop.encode()),
        ("flow continue", PeerMessage::FlowContinue.encode()),
        (
            "flow pace",
            PeerMessage::FlowPace { per_second: 1234 }.encode(),
        ),
        (
            "ist pull of a part",
            PeerMessage::IstPullPart { from: 3, offset: 7 }.encode(),
        ),
        ("ist part", PeerMessage::IstPart(part_of_record).encode()),
    ]
}

/// Kinds are at byte 1. What a node cannot read has none.
#[test]
fn every_kind_of_message_has_a_golden_line() {
    let all = messages();
    let (submissions, directs) = all.split_at(13);
    let kinds = |messages: &[(&str, Bytes)]| -> BTreeSet<u8> {
        messages.iter().map(|(_, bytes)| bytes[1]).collect()
    };
    let bare = |kind: u8| Bytes::from(vec![1, kind]);
    let unknown = |kind: &u8, error: Option<MessageError>| error == Some(MessageError::Kind(*kind));
    let read = |kind: &u8| !unknown(kind, Message::decode(&bare(*kind)).err());
    assert_eq!(kinds(submissions), (0..=u8::MAX).filter(read).collect());
    let read = |kind: &u8| !unknown(kind, PeerMessage::decode(bare(*kind)).err());
    assert_eq!(kinds(directs), (0..=u8::MAX).filter(read).collect());
}

/// The formats do not change by accident. `TRIREME_GOLDEN=write cargo test -p trireme-replicator golden` writes the
/// file if it is missing; an existing one stays. For a new kind, delete the file first: no old line may change
/// (docs/formats.md).
#[test]
fn golden_bytes() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut text: String = messages()
        .iter()
        .map(|(name, bytes)| format!("{name}: {}\n", hex(bytes)))
        .collect();
    let control = Cluster::of(2).nodes[0]
        .replicator
        .control_snapshot()
        .expect("in step");
    text += &format!("control state: {}\n", hex(&control));
    let full = with_every_choice(full_control()).encode();
    assert_eq!(Control::decode(full.clone()).unwrap().encode(), full);
    text += &format!("full control state: {}\n", hex(&full));
    let writes = std::env::var("TRIREME_GOLDEN").is_ok_and(|mode| mode == "write");
    if writes && !std::path::Path::new(GOLDEN).exists() {
        std::fs::write(GOLDEN, &text).expect("writable");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("golden file");
    for (line, expected) in text.lines().zip(golden.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}

/// Version 1 did not know whose snapshots have failed.
#[test]
fn a_control_state_of_the_last_version_is_read() {
    let digits = include_str!("../../tests/golden/control-1.txt");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex");
    let bytes: Bytes = (0..digits.len()).step_by(2).map(byte).collect();
    let now = Cluster::of(2).nodes[0].replicator.control_snapshot();
    assert_eq!(Control::decode(bytes).unwrap().encode(), now.unwrap());
}

#[test]
fn what_was_written_is_read() {
    let Message::WriteSet(read) = Message::decode(&write_set()).unwrap() else {
        panic!()
    };
    assert_eq!(
        (read.last_seen, read.epoch, read.trx, read.conn),
        (42, 3, 11, 12)
    );
    assert_eq!((&read.data[..], read.keys().len()), (&b"data"[..], 4));
    for (name, bytes) in messages().into_iter().skip(13) {
        assert_eq!(
            PeerMessage::decode(bytes.clone()).unwrap().encode(),
            bytes,
            "{name}"
        );
    }
    for (name, bytes) in messages().into_iter().skip(1).take(12) {
        assert_eq!(Message::decode(&bytes).unwrap().encode(), bytes, "{name}");
    }
    let mut cluster = Cluster::of(2);
    cluster.certify(0, "k", KeyType::Exclusive);
    cluster.settle();
    let bytes = cluster.nodes[0].replicator.control_snapshot().unwrap();
    assert_eq!(Control::decode(bytes.clone()).unwrap().encode(), bytes);
}

#[test]
fn another_version_is_refused() {
    for (name, bytes) in messages() {
        let mut bytes = bytes.to_vec();
        bytes[0] = 2;
        let bytes = Bytes::from(bytes);
        let error = Message::decode(&bytes).expect_err(name);
        assert_eq!(
            error.to_string(),
            "format version 2, this node knows version 1"
        );
        assert_eq!(PeerMessage::decode(bytes).expect_err(name), error);
    }
}

/// A control state with something of everything in it.
fn full_control() -> Control {
    let mut cluster = Cluster::of(3);
    (cluster.nodes.iter_mut()).for_each(|node| node.replicator.borrow_nothing());
    cluster.reconfigure(|c| c.override_id = Some(Uuid([3; 16])));
    cluster.settle();
    // A vote that is decided, one that is open, and a donor at work.
    let seqno = cluster.nodes[0].replicator.last_seqno().expect("in step");
    for (node, at) in [(0, 1), (1, 1), (2, 1), (1, 3)] {
        let errors = &mut cluster.nodes[node].server.errors;
        errors.insert(seqno + at, b"exists".to_vec());
    }
    cluster.toi(0, 5);
    cluster.settle();
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    cluster.nodes[2].threads = 0;
    cluster.certify(0, "k", KeyType::Exclusive);
    cluster.settle();
    let control = cluster.nodes[0].replicator.context_mut().set_control(None);
    let mut control = control.expect("in step");
    control.members.tampered().2.push_back(incarnation(7));
    assert!(!control.forks.all().is_empty() && control.votes.result(seqno + 1).is_some());
    assert!(control.votes.open().next().is_some());
    assert!(
        control
            .members
            .states()
            .values()
            .any(|m| m.donates_to.is_some())
    );
    control
}

/// The same, with what its seats do not say.
fn with_every_choice(mut control: Control) -> Control {
    let (_, states, _) = control.members.tampered();
    for (member_state, doubt) in states.values_mut().zip([-1, 78]) {
        member_state.doubt = Some(doubt);
        member_state.trusted = doubt == 78;
        member_state.left_out = !member_state.trusted;
        member_state.desyncs = 2;
    }
    control
}

/// The brief digest does not go by the encoding: whatever that leaves out is missing in what comes back.
#[test]
fn nothing_of_a_control_state_is_left_out() {
    let control = full_control();
    let kept = ControlDigest::of_snapshot(&control.encode());
    assert_eq!(kept, Some(control.digest()));
}

#[test]
fn what_is_cut_short_or_goes_on_is_refused() {
    for (index, (name, bytes)) in messages().into_iter().enumerate() {
        let longer = Bytes::from([&bytes[..], b"x"].concat());
        let shorter = (0..bytes.len()).map(|end| bytes.slice(..end));
        for wrong in shorter.chain([longer]) {
            // The data of a write-set end where it ends.
            let length = wrong.len();
            let is_data = name == "write-set" && length >= bytes.len() - b"data".len();
            let is_read = match index {
                0..13 => Message::decode(&wrong).is_ok(),
                _ => PeerMessage::decode(wrong).is_ok(),
            };
            assert_eq!(is_read, is_data, "{name}, {length}");
        }
    }
    let control = full_control().encode().to_vec();
    assert!(Control::decode(control.clone().into()).is_ok());
    for end in 0..control.len() {
        let mut cut = control[..end].to_vec();
        if end >= 9 {
            let digest = xxhash_rust::xxh3::xxh3_64(&cut[9..]).to_le_bytes();
            cut[1..9].copy_from_slice(&digest);
        }
        assert!(Control::decode(cut.into()).is_err(), "{end}");
    }
}

/// More than every node can note could not be noted by who takes that state over.
#[test]
fn a_control_state_with_too_many_overrides_is_refused() {
    let mut cluster = Cluster::of(1);
    let control = cluster.nodes[0].replicator.context_mut().control_mut();
    let control = control.expect("in step");
    for (count, is_read) in [(OVERRIDES_MAX, true), (OVERRIDES_MAX + 1, false)] {
        control.forks = vec![(Uuid([3; 16]), 1); count].into();
        assert_eq!(
            Control::decode(control.encode()).is_ok(),
            is_read,
            "{count}"
        );
    }
}

/// Whoever went on with one of these would count backwards: "attempt to subtract with overflow" at the
/// next seqno (`liar node`, seed 1010001521).
#[test]
fn a_control_state_whose_parts_do_not_fit_is_refused() {
    type Lie = fn(&mut Control);
    let lies: [(&str, Lie); 5] = [
        ("position below the last run's", |c| c.position = 1),
        ("seqno below the last run's", |c| {
            c.runs.first.push_back((c.position, c.seqno() + 1))
        }),
        ("runs in another order", |c| {
            c.runs.first.make_contiguous().reverse()
        }),
        ("a view that is still to come", |c| {
            let view = c.members.configuration().clone();
            c.views.push(c.seqno() + 1, view);
        }),
        ("a view twice", |c| {
            let (seqno, view) = c.views.last().expect("a view").clone();
            c.views.push(seqno, view);
        }),
    ];
    let control = full_control();
    for (what, lie) in lies {
        let mut control = control.clone();
        lie(&mut control);
        assert!(Control::decode(control.encode()).is_err(), "{what}");
    }
}

#[test]
fn values_without_a_meaning_are_refused() {
    let named = |wanted| {
        let mut all = messages().into_iter();
        let found = all.find(|(name, _)| *name == wanted);
        found.expect("among the messages").1.to_vec()
    };
    // The first record's kind: behind version, kind, seqno, count, three numbers and a flag.
    let kind = 2 + 8 + 4 + 3 * 8 + 1;
    for (at, what) in [(kind, "delivery"), (kind - 1, "bool")] {
        let mut bytes = named("ist chunk");
        bytes[at] = 7;
        let error = PeerMessage::decode(bytes.into())
            .expect_err(what)
            .to_string();
        assert!(error.contains(what), "{error}");
    }
    let mut preference = named("vote");
    *preference.last_mut().expect("text") = 0xff;
    assert!(Message::decode(&preference.into()).is_err());
}

proptest! {
    #[test]
    fn hostile_bytes_are_refused_or_read_but_never_panic(
        which in 0..20usize,
        cut in any::<usize>(),
        flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        noise in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let all = messages();
        let mut bytes = all.get(which).map_or(noise, |(_, bytes)| bytes.to_vec());
        for (at, value) in flips {
            if !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] = value;
            }
        }
        bytes.truncate(cut % (bytes.len() + 1).max(1) + bytes.len() / 2);
        let bytes = Bytes::from(bytes);
        if let Ok(Message::WriteSet(ws)) = Message::decode(&bytes) {
            let _ = ws.keys().len();
        }
        let _ = PeerMessage::decode(bytes.clone());
        let _ = Control::decode(bytes);
    }

    #[test]
    fn a_damaged_control_state_is_refused(at in any::<usize>(), flip in 1..=255u8, cut in any::<usize>()) {
        let bytes = Cluster::of(2).nodes[0].replicator.control_snapshot().expect("in step");
        let mut damaged = bytes.to_vec();
        let at = at % damaged.len();
        damaged[at] ^= flip;
        prop_assert!(Control::decode(Bytes::from(damaged)).is_err());
        prop_assert!(Control::decode(bytes.slice(..cut % bytes.len())).is_err());
        // The digest is no secret: a wrong state with a right digest must not panic either.
        let mut forged = bytes.to_vec();
        let at = 9 + at % (forged.len() - 9);
        forged[at] ^= flip;
        let digest = xxhash_rust::xxh3::xxh3_64(&forged[9..]).to_le_bytes();
        forged[1..9].copy_from_slice(&digest);
        let _ = Control::decode(Bytes::from(forged));
    }
}

/// A member's garbage takes no seqno anywhere, and stops nobody.
#[test]
fn garbage_in_the_order_is_void() {
    let mut cluster = Cluster::of(2);
    let before = cluster.nodes[0].replicator.last_seqno();
    for garbage in [
        &b""[..],
        b"\x01",
        b"\x01\x01short",
        b"\x09\x01",
        b"\x01\x63",
    ] {
        let id = SubmissionId {
            incarnation: Incarnation(Uuid([2; 16])),
            number: 1000,
        };
        cluster.append(Delivery::Submission {
            id,
            payload: Bytes::copy_from_slice(garbage),
        });
    }
    cluster.settle();
    assert_eq!(cluster.nodes[0].replicator.last_seqno(), before);
    cluster.assert_settled();
}
