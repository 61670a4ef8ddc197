//! Wire and disk formats: golden files, round trips, and bytes from anywhere.
//!
//! `TRIREME_GOLDEN=write cargo test -p trireme-certification --test formats` writes golden files that are missing.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use trireme_certification::{
    Certification, DecodeError, KeySet, KeySetBuilder, KeySetError, KeyType, Request, Verdict,
};

/// Compares `bytes` with the golden file, which is hexadecimal, 16 bytes a line.
fn check_golden(name: &str, bytes: &[u8]) {
    let lines: Vec<String> = bytes
        .chunks(16)
        .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    let text = lines.join("\n") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let writes = std::env::var("TRIREME_GOLDEN").is_ok_and(|mode| mode == "write");
    if writes && !path.exists() {
        std::fs::write(&path, &text).expect("golden file written");
    }
    let golden = std::fs::read_to_string(&path).expect("golden file");
    assert_eq!(text, golden, "the format differs from {}", path.display());
}

fn key_set(keys: &[(&[&[u8]], KeyType)]) -> Vec<u8> {
    let mut builder = KeySetBuilder::new();
    for (parts, ty) in keys {
        builder.append(parts, *ty);
    }
    let mut bytes = Vec::new();
    builder.encode(&mut bytes);
    bytes
}

/// All types; nine keys, so that the types take three bytes, one of them not full.
fn sample_keys() -> Vec<u8> {
    key_set(&[
        (
            &[b"shop", b"orders", b"\x00\x80\x00\x00\x2a"],
            KeyType::Exclusive,
        ),
        (
            &[b"shop", b"stock", b"\x00\x80\x00\x00\x07"],
            KeyType::Update,
        ),
        (
            &[b"shop", b"customers", b"\x00\x80\x00\x00\x01"],
            KeyType::Reference,
        ),
        (&[b"shop", b"customers"], KeyType::Shared),
        (&[b"test"], KeyType::Shared),
    ])
}

fn sample_snapshot() -> Vec<u8> {
    let mut node = Certification::new(40, 16384);
    let bytes = sample_keys();
    let (keys, _) = KeySet::parse(&bytes).expect("own encoding");
    let table = key_set(&[(&[b"shop", b"log"], KeyType::Exclusive)]);
    let (table, _) = KeySet::parse(&table).expect("own encoding");
    let write_set = Request {
        seqno: 42,
        last_seen: 41,
        origin: *b"node-incarnation",
        epoch: 3,
        isolation: false,
        pa_unsafe: false,
        rollback: false,
        keys,
    };
    node.skip(41);
    let other = Request {
        origin: *b"another-incarnat",
        ..write_set
    };
    let verdicts = [
        node.certify(&write_set).verdict,
        node.certify(&Request {
            seqno: 43,
            last_seen: 42,
            ..other
        })
        .verdict,
        node.certify(&Request {
            seqno: 44,
            isolation: true,
            keys: table,
            ..other
        })
        .verdict,
        node.certify(&Request { seqno: 45, ..other }).verdict,
    ];
    use Verdict::{Conflict, Pass};
    assert_eq!(verdicts, [Pass, Pass, Pass, Conflict { with: 42 }]);
    node.cut(42);
    let mut bytes = Vec::new();
    node.encode(&mut bytes);
    bytes
}

#[test]
fn key_set_is_golden() {
    check_golden("key_set_v1.hex", &sample_keys());
}

#[test]
fn snapshot_is_golden() {
    check_golden("snapshot_v1.hex", &sample_snapshot());
}

#[test]
fn every_prefix_and_any_more_is_refused() {
    let bytes = sample_keys();
    for end in 0..bytes.len() {
        let error = KeySet::parse(&bytes[..end]).expect_err("a prefix");
        assert!(
            matches!(error, KeySetError::Truncated { present, .. } if present == end),
            "{error}"
        );
    }
    let mut snapshot = sample_snapshot();
    for end in 0..snapshot.len() {
        let error = Certification::decode(&snapshot[..end]).expect_err("a prefix");
        let in_keys = matches!(
            error,
            DecodeError::Keys {
                source: KeySetError::Truncated { .. },
                ..
            }
        );
        assert!(in_keys || error == DecodeError::Truncated, "{error}");
    }
    snapshot.push(0);
    assert_eq!(
        Certification::decode(&snapshot).err(),
        Some(DecodeError::Trailing(1))
    );
}

#[test]
fn other_versions_are_refused_by_name() {
    let (mut keys, mut snapshot) = (sample_keys(), sample_snapshot());
    (keys[0], snapshot[0]) = (2, 2);
    assert_eq!(KeySet::parse(&keys), Err(KeySetError::Version(2)));
    assert_eq!(KeySet::parse(&[9]), Err(KeySetError::Version(9)));
    assert_eq!(
        Certification::decode(&snapshot).err(),
        Some(DecodeError::Version(2))
    );
}

#[test]
fn records_of_no_known_kind_or_without_keys_are_refused() {
    let record = |kind: u8, keys: &[u8]| {
        let mut bytes = vec![1];
        for number in [10i64, 1, 0, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.push(kind);
        bytes.extend([7; 16 + 8]);
        bytes.extend(keys);
        Certification::decode(&bytes).map(|node| node.len())
    };
    let keys = sample_keys();
    assert_eq!(record(1, &keys), Ok(9));
    assert_eq!(record(2, &keys), Ok(9));
    assert_eq!(record(3, &keys), Err(DecodeError::Record(1)));
    assert_eq!(
        record(1, KeySet::empty().as_bytes()),
        Err(DecodeError::Record(1))
    );
}

#[test]
fn a_count_beyond_the_bytes_is_refused_without_allocating() {
    assert_eq!(
        KeySet::parse(&[1, 0xff, 0xff, 0xff, 0xff]),
        Err(KeySetError::Truncated {
            needed: 5 + 0xffff_ffff * 8 + (1 << 30),
            present: 5
        })
    );
}

#[test]
fn only_the_canonical_form_is_a_key_set() {
    let two = |first: u64, second: u64, types: u8| {
        let mut bytes = vec![1, 2, 0, 0, 0];
        bytes.extend(first.to_le_bytes());
        bytes.extend(second.to_le_bytes());
        bytes.push(types);
        KeySet::parse(&bytes).map(|(keys, _)| keys.iter().collect::<Vec<_>>())
    };
    assert_eq!(
        two(0, 1, 0b1101),
        Ok(vec![(0, KeyType::Reference), (1, KeyType::Exclusive)])
    );
    assert_eq!(two(1, 0, 0), Err(KeySetError::Order(1)));
    assert_eq!(two(1, 1, 0), Err(KeySetError::Order(1)));
    assert_eq!(two(0, 1, 0b10000), Err(KeySetError::Padding));
}

/// Bytes that are a format's own, but for a few.
fn damaged(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (damage, any::<prop::sample::Index>(), any::<bool>()).prop_map(move |(damage, end, cut)| {
        let mut bytes = whole.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        bytes
    })
}

/// Any bytes, and bytes with a good header.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let arbitrary = prop::collection::vec(any::<u8>(), 0..80);
    let headed = (0..4u8, prop::collection::vec(any::<u8>(), 0..80))
        .prop_map(|(count, rest)| [vec![1, count, 0, 0, 0], rest].concat());
    prop_oneof![arbitrary, headed, damaged(sample_keys())]
}

/// Few enough distinct names that they meet, from arbitrary bytes.
fn any_keys() -> impl Strategy<Value = Vec<(Vec<Vec<u8>>, KeyType)>> {
    let part = prop::collection::vec(0..3u8, 0..3);
    let key = prop::collection::vec(part, 0..4);
    prop::collection::vec((key, prop::sample::select(KeyType::ALL.to_vec())), 0..30)
}

fn build(keys: &[(Vec<Vec<u8>>, KeyType)]) -> KeySetBuilder {
    let mut builder = KeySetBuilder::new();
    for (parts, ty) in keys {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        builder.append(&parts, *ty);
    }
    builder
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// No bytes make the parser panic, and what it takes is exactly what it read.
    #[test]
    fn key_sets_parse_or_fail(bytes in any_bytes()) {
        if let Ok((keys, consumed)) = KeySet::parse(&bytes) {
            prop_assert_eq!(keys.as_bytes(), &bytes[..consumed]);
            let hashes: Vec<u64> = keys.iter().map(|(hash, _)| hash).collect();
            prop_assert_eq!(hashes.len(), keys.len());
            prop_assert!(hashes.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(KeySet::parse(keys.as_bytes()), Ok((keys, consumed)));
        }
    }

    /// No bytes make the decoder panic; what it takes, it writes again.
    #[test]
    fn snapshots_decode_or_fail(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), damaged(sample_snapshot())]
    ) {
        if let Ok(mut node) = Certification::decode(&bytes) {
            let mut again = Vec::new();
            node.encode(&mut again);
            prop_assert_eq!(again, bytes);
            node.skip(node.position() + 1);
        }
    }

    /// Equal sets have equal bytes, in whatever order they were appended; and the bytes say what was appended.
    #[test]
    fn key_sets_are_canonical(keys in any_keys(), rest in prop::collection::vec(any::<u8>(), 0..9)) {
        let builder = build(&keys);
        let mut bytes = vec![];
        builder.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), builder.bytes());

        let mut reversed = vec![];
        build(&keys.iter().rev().cloned().collect::<Vec<_>>()).encode(&mut reversed);
        prop_assert_eq!(&bytes, &reversed);

        let mut expected = BTreeMap::new();
        for (parts, ty) in &keys {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            for level in 0..=parts.len() {
                let ty = if level == parts.len() { *ty } else { KeyType::Reference };
                let present = expected.entry(trireme_certification::key_hash(&parts[..level])).or_insert(ty);
                *present = ty.max(*present);
            }
        }
        let whole = [bytes.as_slice(), &rest].concat();
        let (parsed, consumed) = KeySet::parse(&whole).expect("own encoding");
        prop_assert_eq!(consumed, bytes.len());
        prop_assert_eq!(parsed.iter().collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
    }
}
