//! The format against its golden files, round trips, and garbage.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;

use super::samples::{checkpoint, entries, entry, other_forms, samples, term};
use super::strategies;
use super::*;
use crate::configuration::Member;
use crate::ids::Uuid;
use crate::message::{Join, Summary};
use crate::numbers::{Counted, Numbers};

/// 16 bytes a line.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        for byte in line {
            write!(text, "{byte:02x}").expect("a String takes everything");
        }
        text.push('\n');
    }
    text
}

fn unhex(text: &str) -> Bytes {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// Compares with `golden/<name>.hex` and returns its bytes. TRIREME_GOLDEN=write writes golden files that are missing;
/// existing ones stay (docs/formats.md).
fn golden(name: &str, encoded: &Bytes) -> Bytes {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("src/codec/golden/{name}.hex"));
    let writes = std::env::var("TRIREME_GOLDEN").is_ok_and(|mode| mode == "write");
    if writes && !path.exists() {
        std::fs::write(&path, hex(encoded)).unwrap();
    }
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(hex(encoded), text, "{name}: the format has changed");
    unhex(&text)
}

#[test]
fn messages_are_as_in_the_golden_files() {
    for (name, message) in samples().into_iter().chain(other_forms()) {
        assert_eq!(
            decode(golden(name, &encode(&message))),
            Ok(message),
            "{name}"
        );
    }
}

/// Kinds are at byte 1; 6 is not read any more, and 64 and above are of the log.
#[test]
fn every_kind_of_message_has_a_golden_file() {
    let kinds = samples()
        .into_iter()
        .map(|(_, message)| encode(&message)[1]);
    let kinds: BTreeSet<u8> = kinds.collect();
    let is_read = |kind: &u8| {
        let unknown = DecodeError::Unknown {
            what: "kind of message",
            value: *kind,
        };
        decode(Bytes::from(vec![1, *kind])) != Err(unknown)
    };
    let read: BTreeSet<u8> = (0..=u8::MAX).filter(is_read).collect();
    assert_eq!(kinds, read);
    assert_eq!(kinds, (1..=25).filter(|kind| *kind != 6).collect());
}

#[test]
fn what_the_log_holds_is_as_in_the_golden_files() {
    for (name, entry) in entries() {
        assert_eq!(decode_entry(golden(name, &encode_entry(&entry))), Ok(entry));
    }
    assert_eq!(
        decode_checkpoint(golden("log-checkpoint", &encode_checkpoint(&checkpoint()))),
        Ok(checkpoint())
    );
}

#[test]
fn the_parts_of_an_entry_are_the_entry() {
    let void = Entry {
        body: Body::TermStart,
        ..entry()
    };
    assert_eq!(encode_entry_parts(&entry()).0.len(), ENTRY_HEAD_BYTES);
    for entry in [entry(), void] {
        let (head, payload) = encode_entry_parts(&entry);
        assert_eq!([head, payload].concat(), encode_entry(&entry));
    }
}

#[test]
fn the_head_of_an_entry_is_the_entry_without_its_payload() {
    let (head, _) = encode_entry_parts(&entry());
    let mut without = entry();
    without.drop_payload();
    assert_eq!(decode_entry_head(&head), Ok(without));
    assert!(decode_entry_head(&head[..head.len() - 1]).is_err());
    assert!(decode_entry_head(&[]).is_err());
}

#[test]
fn payloads_are_not_copied() {
    let bytes = encode_entry(&entry());
    let range = bytes.as_ptr_range();
    let Body::Submission { payload, .. } = decode_entry(bytes.clone()).unwrap().body else {
        panic!()
    };
    assert!(range.contains(&payload.as_ptr()));
}

#[test]
fn every_truncation_and_every_added_byte_is_an_error() {
    for (name, message) in samples() {
        let bytes = encode(&message);
        for length in 0..bytes.len() {
            assert!(
                decode(bytes.slice(..length)).is_err(),
                "{name} cut to {length}"
            );
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(
            decode(longer.into()),
            Err(DecodeError::Trailing(1)),
            "{name}"
        );
    }
}

#[test]
fn what_the_log_holds_is_whole_or_refused() {
    let (entry, checkpoint) = (encode_entry(&entry()), encode_checkpoint(&checkpoint()));
    for length in 0..entry.len() {
        assert!(decode_entry(entry.slice(..length)).is_err(), "{length}");
    }
    for length in 0..checkpoint.len() {
        let cut = checkpoint.slice(..length);
        assert!(decode_checkpoint(cut).is_err(), "{length}");
    }
    let longer = |bytes: &Bytes| Bytes::from([&bytes[..], &[0]].concat());
    assert_eq!(
        decode_checkpoint(longer(&checkpoint)),
        Err(DecodeError::Trailing(1))
    );
    assert_eq!(decode_entry(longer(&entry)), Err(DecodeError::Trailing(1)));
    for version in [0, 2] {
        let foreign = |bytes: &Bytes| Bytes::from([&[version], &bytes[1..]].concat());
        let error = DecodeError::Version(version);
        assert_eq!(decode_entry(foreign(&entry)), Err(error.clone()));
        assert_eq!(decode_checkpoint(foreign(&checkpoint)), Err(error));
    }
}

#[test]
fn foreign_versions_and_kinds_are_refused() {
    assert_eq!(
        decode(Bytes::from_static(&[2, 15])),
        Err(DecodeError::Version(2))
    );
    assert_eq!(
        decode(Bytes::from_static(&[1, 0])),
        Err(DecodeError::Unknown {
            what: "kind of message",
            value: 0
        })
    );
    let message = encode(&Message::Leave);
    assert!(matches!(
        decode_entry(message.clone()),
        Err(DecodeError::Unknown { value: 15, .. })
    ));
    assert!(matches!(
        decode_checkpoint(message),
        Err(DecodeError::Unknown { value: 15, .. })
    ));
    assert!(matches!(
        decode(encode_entry(&entry())),
        Err(DecodeError::Unknown { value: ENTRY, .. })
    ));
}

fn weight_config(name: &str) -> Message {
    let member = Member {
        name: name.into(),
        ..Member::default()
    };
    Message::Join(Join {
        member,
        history: Uuid::NIL,
        known_number: 0,
        overrides: Vec::new(),
    })
}

#[test]
fn long_texts_are_cut_at_a_character_boundary_and_refused_by_the_reader() {
    let Message::Join(join) = decode(encode(&weight_config(&"é".repeat(3000)))).unwrap() else {
        panic!()
    };
    assert_eq!(join.member.name, "é".repeat(2048));
    let Message::Join(join) = decode(encode(&weight_config(&"€".repeat(3000)))).unwrap() else {
        panic!()
    };
    assert_eq!(join.member.name.len(), 4095);

    let mut raw = BytesMut::new();
    raw.put_slice(&[1, 14]);
    raw.put_u32_le(4097);
    raw.put_bytes(b'x', 4097);
    assert_eq!(
        decode(raw.freeze()),
        Err(DecodeError::TooLong {
            what: "text",
            length: 4097,
            limit: 4096
        })
    );
    assert_eq!(
        decode(Bytes::from_static(&[1, 14, 1, 0, 0, 0, 0xff])),
        Err(DecodeError::NotUtf8)
    );
}

#[test]
fn a_list_may_not_promise_more_than_is_there() {
    let promising = |count: u32, rest: usize| {
        let mut raw = BytesMut::from(
            &encode(&Message::Summary {
                term: term(),
                summary: Summary::default(),
            })[..],
        );
        raw.truncate(raw.len() - 4);
        raw.put_u32_le(count);
        raw.put_bytes(0, rest);
        decode(raw.freeze())
    };
    assert!(promising(2, 80).is_ok());
    assert_eq!(
        promising(3, 80),
        Err(DecodeError::Truncated {
            needed: 120,
            left: 80
        })
    );
    assert_eq!(
        promising(65535, 80),
        Err(DecodeError::Truncated {
            needed: 65535 * 40,
            left: 80
        })
    );
    assert!(matches!(
        promising(u32::MAX, 80),
        Err(DecodeError::TooLong { what: "list", .. })
    ));
}

#[test]
fn flags_and_keys_have_one_encoding() {
    let mut raw = BytesMut::from(
        &encode(&Message::PreVoteReply {
            term: term(),
            granted: true,
        })[..],
    );
    *raw.last_mut().unwrap() = 2;
    assert_eq!(
        decode(raw.freeze()),
        Err(DecodeError::Unknown {
            what: "flag",
            value: 2
        })
    );

    // The last 48 bytes are the second number, the 48 before them the first: equal keys, or only equal incarnations.
    for (from, error) in [(0, DecodeError::NotAscending), (16, DecodeError::Twice)] {
        let mut raw = BytesMut::from(&encode_checkpoint(&checkpoint())[..]);
        let (rest, last) = raw.split_at_mut(encode_checkpoint(&checkpoint()).len() - 48);
        last[from..].copy_from_slice(&rest[rest.len() - 48 + from..]);
        assert_eq!(decode_checkpoint(raw.freeze()), Err(error));
    }
}

#[test]
fn a_checkpoint_of_the_older_kind_is_still_read() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/codec/golden/log-checkpoint-65.hex");
    let old = unhex(&std::fs::read_to_string(path).unwrap());
    let read = decode_checkpoint(old.clone()).unwrap();
    // Its numbers do not say that the second replica has left at 77.
    let mut expected = checkpoint();
    expected.numbers = Numbers::default();
    for (replica, counted) in checkpoint().numbers.replicas() {
        let left_at = counted.left_at.min(1);
        let counted = Counted {
            left_at,
            ..*counted
        };
        expected.numbers.remember(*replica, counted);
    }
    assert_eq!(read, expected);
    for length in 0..old.len() {
        assert!(decode_checkpoint(old.slice(..length)).is_err(), "{length}");
    }
    let longer = Bytes::from([&old[..], &[0]].concat());
    assert_eq!(decode_checkpoint(longer), Err(DecodeError::Trailing(1)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn messages_round_trip(message in strategies::message()) {
        prop_assert_eq!(decode(encode(&message)), Ok(message));
    }

    #[test]
    fn entries_and_checkpoints_round_trip(entry in strategies::entry(), checkpoint in strategies::checkpoint()) {
        prop_assert_eq!(decode_entry(encode_entry(&entry)), Ok(entry));
        prop_assert_eq!(decode_checkpoint(encode_checkpoint(&checkpoint)), Ok(checkpoint));
    }

    #[test]
    fn garbage_never_panics(kind in 0u8..70, garbage in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes = Bytes::from([&[1, kind], &garbage[..]].concat());
        let _ = decode(bytes.clone());
        let _ = decode_entry(bytes.clone());
        let _ = decode_checkpoint(bytes);
    }

    /// What is accepted has one encoding: a mutation either is refused, or is another message.
    #[test]
    fn mutations_never_panic(
        message in strategies::message(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut raw = encode(&message).to_vec();
        for (at, value) in changes {
            let at = at.index(raw.len());
            raw[at] = value;
        }
        let raw = Bytes::from(raw);
        if let Ok(other) = decode(raw.clone()) {
            prop_assert_eq!(encode(&other), raw);
        }
    }
}
