//! The bytes on the wire, from the preamble to the last kind of frame, against `golden/wire.txt`.
//!
//! After a wanted change, with a new framing or protocol version: delete the file, write it with
//! `TRIREME_GOLDEN=write cargo test -p trireme-transport golden`, and look at the difference.

use bytes::Bytes;

use crate::frame::{Frame, FrameDecoder, FrameKind, PREAMBLE};
use crate::handshake::{Gossip, Hello, Refusal, RefusalCode};
use crate::{Identity, Proof};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/golden/wire.txt");

/// Returns every kind of frame; the match makes a missing new kind a compile error.
fn kinds() -> Vec<FrameKind> {
    let mut kinds = vec![FrameKind::Hello];
    while let Some(next) = match kinds.last() {
        Some(FrameKind::Hello) => Some(FrameKind::State),
        Some(FrameKind::State) => Some(FrameKind::Up),
        Some(FrameKind::Up) => Some(FrameKind::Refuse),
        Some(FrameKind::Refuse) => Some(FrameKind::Gossip),
        Some(FrameKind::Gossip) => Some(FrameKind::Data),
        Some(FrameKind::Data) | None => None,
    } {
        kinds.push(next);
    }
    kinds
}

/// Returns every refusal code, in the same way.
fn codes() -> Vec<RefusalCode> {
    let mut codes = vec![RefusalCode::GroupName];
    while let Some(next) = match codes.last() {
        Some(RefusalCode::GroupName) => Some(RefusalCode::Version),
        Some(RefusalCode::Version) => Some(RefusalCode::History),
        Some(RefusalCode::History) => Some(RefusalCode::Oneself),
        Some(RefusalCode::Oneself) => Some(RefusalCode::Duplicate),
        Some(RefusalCode::Duplicate) => Some(RefusalCode::NotAllowed),
        Some(RefusalCode::NotAllowed) => Some(RefusalCode::Malformed),
        Some(RefusalCode::Malformed) => Some(RefusalCode::Application),
        Some(RefusalCode::Application) => Some(RefusalCode::Identity),
        Some(RefusalCode::Identity) | None => None,
    } {
        codes.push(next);
    }
    codes
}

fn hello(proof: Option<Proof>) -> Hello {
    let identity = Identity {
        replica: [1; 16],
        incarnation: [2; 16],
        name: "näme".to_owned(),
        group_name: "cluster".to_owned(),
        listen_addr: "192.0.2.1:4567".to_owned(),
        history: [3; 16],
        segment: 5,
        extra: vec![9],
    };
    Hello {
        versions: (1, 3),
        identity,
        proof,
    }
}

/// Returns the payloads of all messages of one kind, with the names of their lines.
fn payloads(kind: FrameKind) -> Vec<(String, Vec<u8>)> {
    let named = |name: &str, payload: Vec<u8>| (name.to_owned(), payload);
    match kind {
        FrameKind::Hello => vec![
            named("hello", hello(None).encode()),
            named("hello with a proof", hello(Some(proof())).encode()),
        ],
        FrameKind::State => vec![
            named("state: no connection", vec![0]),
            named("state: a connection", vec![1]),
        ],
        FrameKind::Up => vec![named("up", Vec::new())],
        FrameKind::Refuse => {
            let refusal = |code| Refusal {
                code,
                text: "why".to_owned(),
            };
            let name = |code| format!("refuse: {code:?}");
            let all = codes().into_iter();
            all.map(|code| (name(code), refusal(code).encode()))
                .collect()
        }
        FrameKind::Gossip => {
            let of = |id: u8| ([id; 16], format!("192.0.2.{id}:4567"));
            vec![
                named("gossip: nobody", Gossip(Vec::new()).encode()),
                named("gossip", Gossip(vec![of(1), of(2)]).encode()),
            ]
        }
        FrameKind::Data => vec![named("data", b"headbody".to_vec())],
    }
}

fn proof() -> Proof {
    Proof {
        key: [7; 32],
        signature: [8; 64],
    }
}

fn wire(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
    let frame = match kind {
        FrameKind::Data => {
            let (head, body) = payload.split_at(4);
            Frame::new(head, Some(Bytes::copy_from_slice(body))).unwrap()
        }
        kind => Frame::control(kind, payload),
    };
    [&frame.head[..], &frame.body[..]].concat()
}

/// Checks that the bytes of a line decode to the kind and payload that they were made from.
fn is_read(kind: FrameKind, payload: &[u8], bytes: &[u8]) {
    let mut decoder = FrameDecoder::new(8192);
    decoder.push(&PREAMBLE);
    decoder.push(bytes);
    let read = decoder.next_frame().unwrap().unwrap();
    assert_eq!((read.0, &read.1[..]), (kind, payload));
    match kind {
        FrameKind::Hello => {
            let read = Hello::decode(payload).unwrap();
            let expected = hello(read.proof.as_ref().map(|_| proof()));
            assert_eq!(read, expected);
        }
        FrameKind::Refuse => {
            let read = Refusal::decode(payload).unwrap();
            assert_eq!(read.encode(), payload);
            assert_eq!(read.text, "why");
        }
        FrameKind::Gossip => assert_eq!(Gossip::decode(payload).unwrap().encode(), payload),
        FrameKind::State | FrameKind::Up | FrameKind::Data => {}
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn golden_wire() {
    let mut text = format!("preamble: {}\n", hex(&PREAMBLE));
    for kind in kinds() {
        for (name, payload) in payloads(kind) {
            let bytes = wire(kind, &payload);
            is_read(kind, &payload, &bytes);
            text += &format!("{name}: {}\n", hex(&bytes));
        }
    }
    // Sent to a caller without TLS where this node requires it.
    text += &format!("alert: {}\n", hex(&crate::handshake::ALERT));
    let writes = std::env::var("TRIREME_GOLDEN").is_ok_and(|mode| mode == "write");
    if writes && !std::path::Path::new(FILE).exists() {
        std::fs::write(FILE, &text).unwrap();
    }
    let golden = std::fs::read_to_string(FILE).unwrap();
    for (line, expected) in text.lines().zip(golden.lines()) {
        assert_eq!(
            line, expected,
            "the wire format changed: raise the framing or protocol version"
        );
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}
