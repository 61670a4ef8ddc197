//! Wire formats: golden bytes, round trips, hostile input.

use bytes::Bytes;
use proptest::prelude::*;
use trireme_certification::{KeySetBuilder, KeyType};
use trireme_group::{Delivery, Incarnation, SubmissionId, Uuid};

use super::driver::{Cluster, incarnation};
use crate::control::Control;
use crate::direct::{Direct, SnapshotChunk};
use crate::message::Message;
use crate::{Gtid, Recorded, WriteSetDraft, flags};

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
    draft.finish(42, 3)
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
    let local = Gtid {
        uuid: Uuid([5; 16]),
        seqno: 8,
    };
    let request = Message::StateRequest {
        request: Bytes::from_static(b"rsync"),
        local,
        preference: "a,b,".into(),
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
        ("cut", Message::Cut(77).encode()),
        (
            "vote",
            Message::Vote {
                seqno: 5,
                ballot: 6,
                text: "why".into(),
            }
            .encode(),
        ),
        (
            "snapshot request",
            Direct::SnapshotRequest {
                round: 1,
                at_least: 2,
            }
            .encode(),
        ),
        (
            "snapshot chunk",
            Direct::SnapshotChunk(SnapshotChunk {
                round: 1,
                offset: 2,
                total: 6,
                part,
            })
            .encode(),
        ),
        (
            "snapshot refused",
            Direct::SnapshotRefused { round: 1 }.encode(),
        ),
        ("ist pull", Direct::IstPull { from: 3 }.encode()),
        ("ist chunk", Direct::IstChunk { from: 3, records }.encode()),
        ("flow stop", Direct::FlowStop.encode()),
        ("flow continue", Direct::FlowContinue.encode()),
    ]
}

/// The formats do not change by accident. After a wanted change: `TRIREME_UPDATE_GOLDEN=1 cargo
/// test -p trireme-replicator golden`, and a new version number.
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
        .expect("in step")
        .1;
    text += &format!("control state: {}\n", hex(&control));
    if std::env::var_os("TRIREME_UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &text).expect("writable");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("golden file");
    for (line, expected) in text.lines().zip(golden.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(text.lines().count(), golden.lines().count());
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
    for (name, bytes) in messages().into_iter().skip(9) {
        assert_eq!(
            Direct::decode(bytes.clone()).unwrap().encode(),
            bytes,
            "{name}"
        );
    }
    for (name, bytes) in messages().into_iter().skip(1).take(8) {
        assert_eq!(Message::decode(&bytes).unwrap().encode(), bytes, "{name}");
    }
    let mut cluster = Cluster::of(2);
    cluster.certify(0, "k", KeyType::Exclusive);
    cluster.settle();
    let bytes = cluster.nodes[0].replicator.control_snapshot().unwrap().1;
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
        assert_eq!(Direct::decode(bytes).expect_err(name), error);
    }
}

proptest! {
    #[test]
    fn hostile_bytes_are_refused_or_read_but_never_panic(
        which in 0..17usize,
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
        let _ = Direct::decode(bytes.clone());
        let _ = Control::decode(bytes);
    }

    #[test]
    fn a_damaged_control_state_is_refused(at in any::<usize>(), flip in 1..=255u8, cut in any::<usize>()) {
        let bytes = Cluster::of(2).nodes[0].replicator.control_snapshot().expect("in step").1;
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
