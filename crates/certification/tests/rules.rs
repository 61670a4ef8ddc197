//! One test per rule that is easily broken, by name.

use std::time::{Duration, Instant};

use trireme_certification::{
    Certification, DEFAULT_MAX_LENGTH, DecodeError, KeySet, KeySetBuilder, KeyType, Outcome,
    Request, Seqno, Verdict,
};

use KeyType::{Exclusive, Reference, Update};

const A: [u8; 16] = [0xa; 16];
const B: [u8; 16] = [0xb; 16];
const ROW: &[&[u8]] = &[b"db", b"t", b"row"];
const OTHER_ROW: &[&[u8]] = &[b"db", b"t", b"other"];
const TABLE: &[&[u8]] = &[b"db", b"t"];

/// A node whose next seqno is 1, with short words for the tests below.
struct Node(Certification);

/// A plain write-set of A.
fn request() -> Request<'static> {
    Request {
        seqno: 0,
        last_seen: 0,
        origin: A,
        epoch: 0,
        isolation: false,
        pa_unsafe: false,
        rollback: false,
        keys: KeySet::empty(),
    }
}

impl Node {
    fn new() -> Self {
        Node(Certification::new(0, DEFAULT_MAX_LENGTH))
    }

    /// Certifies `request` with these keys at the next seqno.
    fn send(&mut self, request: Request<'_>, keys: &[(&[&[u8]], KeyType)]) -> Outcome {
        let mut builder = KeySetBuilder::new();
        for (parts, ty) in keys {
            builder.append(parts, *ty);
        }
        let mut bytes = Vec::new();
        builder.encode(&mut bytes);
        let (keys, _) = KeySet::parse(&bytes).expect("own encoding");
        let seqno = self.0.position() + 1;
        self.0.certify(&Request {
            seqno,
            keys,
            ..request
        })
    }

    fn write(
        &mut self,
        origin: [u8; 16],
        last_seen: Seqno,
        keys: &[(&[&[u8]], KeyType)],
    ) -> Outcome {
        self.send(
            Request {
                origin,
                last_seen,
                ..request()
            },
            keys,
        )
    }
}

fn pass(depends_on: Seqno) -> Outcome {
    Outcome {
        verdict: Verdict::Pass,
        depends_on,
    }
}

fn conflict(with: Seqno, depends_on: Seqno) -> Outcome {
    Outcome {
        verdict: Verdict::Conflict { with },
        depends_on,
    }
}

#[test]
fn own_writes_do_not_conflict_but_order_the_appliers() {
    let mut node = Node::new();
    assert_eq!(node.write(A, 0, &[(ROW, Update)]), pass(0));
    assert_eq!(node.write(A, 0, &[(OTHER_ROW, Update)]), pass(0));
    assert_eq!(node.write(A, 0, &[(ROW, Update)]), pass(1));
}

#[test]
fn the_exemption_ends_with_the_epoch() {
    let mut node = Node::new();
    node.write(A, 0, &[(ROW, Update)]);
    assert_eq!(
        node.send(
            Request {
                epoch: 1,
                ..request()
            },
            &[(ROW, Update)]
        ),
        conflict(1, 1)
    );
}

#[test]
fn own_use_does_not_hide_anothers() {
    // B adds a child row, then A does; A, which has not seen B's, then deletes the parent.
    let mut node = Node::new();
    node.write(B, 0, &[(ROW, Reference)]);
    assert_eq!(node.write(A, 0, &[(ROW, Reference)]), pass(0));
    assert_eq!(node.write(A, 0, &[(ROW, Exclusive)]), conflict(1, 2));
}

#[test]
fn isolation_passes_alone_and_conflicts_with_its_own_origin_too() {
    let mut node = Node::new();
    node.write(B, 0, &[(ROW, Update)]);
    let isolation = Request {
        isolation: true,
        ..request()
    };
    assert_eq!(node.send(isolation, &[(TABLE, Exclusive)]), pass(1));
    assert_eq!(node.write(A, 1, &[(ROW, Update)]), conflict(2, 2));
    assert_eq!(node.write(A, 1, &[(&[b"elsewhere"], Update)]), pass(2));
}

#[test]
fn isolation_that_saw_too_little_fails() {
    let mut node = Node::new();
    node.write(B, 0, &[(ROW, Update)]);
    node.0.cut(1);
    let isolation = Request {
        isolation: true,
        ..request()
    };
    assert_eq!(
        node.send(isolation, &[(TABLE, Exclusive)]),
        Outcome {
            verdict: Verdict::TooOld,
            depends_on: 1
        }
    );
    // It left no keys.
    assert_eq!(node.write(A, 1, &[(ROW, Update)]), pass(2));
}

#[test]
fn nothing_overtakes_a_view_or_pa_unsafe_write_set() {
    let mut node = Node::new();
    node.0.view(1);
    assert_eq!(node.write(A, 0, &[(ROW, Update)]), pass(1));
    assert_eq!(
        node.send(
            Request {
                pa_unsafe: true,
                ..request()
            },
            &[(&[b"x"], Update)]
        ),
        pass(2)
    );
    assert_eq!(node.write(A, 0, &[(ROW, Update)]), pass(3));
    assert_eq!(node.write(A, 0, &[(&[b"y"], Update)]), pass(3));
}

#[test]
fn failed_write_sets_leave_no_keys() {
    let mut node = Node::new();
    node.write(B, 0, &[(ROW, Update)]);
    assert_eq!(
        node.write(A, 0, &[(ROW, Update), (OTHER_ROW, Update)]),
        conflict(1, 1)
    );
    assert_eq!(node.write(B, 0, &[(OTHER_ROW, Update)]), pass(0));
}

#[test]
fn rollback_fragments_bypass_the_index() {
    let mut node = Node::new();
    node.write(B, 0, &[(ROW, Update)]);
    node.0.cut(1);
    let rollback = Request {
        rollback: true,
        pa_unsafe: true,
        last_seen: -1,
        ..request()
    };
    assert_eq!(node.send(rollback, &[(ROW, Exclusive)]), pass(1));
    assert_eq!(node.write(B, 1, &[(ROW, Update)]), pass(2));
}

#[test]
fn what_was_purged_still_orders_the_appliers() {
    let mut node = Node::new();
    node.write(A, 0, &[(ROW, Update)]);
    node.0.skip(2);
    node.0.cut(2);
    assert_eq!(node.write(A, 2, &[(ROW, Update)]), pass(2));
    assert_eq!(
        node.write(B, 1, &[(&[b"elsewhere"], Update)]).verdict,
        Verdict::TooOld
    );
}

#[test]
fn the_maximal_length_bounds_what_may_be_unseen() {
    let mut node = Node(Certification::new(0, 10));
    (1..=9).for_each(|seqno| node.0.skip(seqno));
    assert_eq!(node.write(A, 0, &[(ROW, Update)]), pass(0));
    assert_eq!(node.write(A, 0, &[(ROW, Update)]).verdict, Verdict::TooWide);
    assert_eq!(node.0.floor(), 1);
    // Nor does a hostile number overflow.
    assert_eq!(
        node.write(A, Seqno::MIN, &[(ROW, Update)]).verdict,
        Verdict::TooWide
    );
    assert_eq!(
        node.write(B, Seqno::MAX, &[(ROW, Update)]).verdict,
        Verdict::Pass
    );
}

#[test]
fn a_cut_neither_goes_back_nor_beyond_the_position() {
    let mut node = Node::new();
    (1..=5).for_each(|seqno| node.0.skip(seqno));
    node.0.cut(3);
    node.0.cut(2);
    assert_eq!(node.0.floor(), 3);
    node.0.cut(Seqno::MAX);
    assert_eq!(node.0.floor(), 5);
}

#[test]
fn a_reset_forgets_all_and_trusts_nothing_older() {
    let mut node = Node::new();
    node.write(A, 0, &[(ROW, Update)]);
    node.0.reset(100);
    assert_eq!(
        (node.0.position(), node.0.floor(), node.0.len()),
        (100, 100, 0)
    );
    assert_eq!(node.write(B, 99, &[(ROW, Update)]).verdict, Verdict::TooOld);
    assert_eq!(node.write(B, 100, &[(ROW, Update)]), pass(100));
}

#[test]
#[should_panic(expected = "gap")]
fn a_gap_in_the_order_is_fatal() {
    Node::new().0.skip(2);
}

#[test]
#[should_panic(expected = "gap")]
fn a_seqno_twice_is_fatal() {
    let mut node = Node::new();
    node.0.skip(1);
    node.0.view(1);
}

#[test]
fn a_purge_is_spread_over_calls_and_ends() {
    let mut node = Node::new();
    let rows: Vec<[u8; 2]> = (0..1000u16).map(u16::to_be_bytes).collect();
    let keys: Vec<[&[u8]; 3]> = rows.iter().map(|row| [b"db" as &[u8], b"t", row]).collect();
    let keys: Vec<(&[&[u8]], KeyType)> = keys.iter().map(|key| (key.as_slice(), Update)).collect();
    node.write(A, 0, &keys);
    assert_eq!(node.0.len(), 1003);
    node.0.cut(1);
    assert!(node.0.len() > 900, "too much work in one call");
    let digest = node.0.digest();
    for _ in 0..40 {
        node.0.cut(1);
    }
    assert_eq!(node.0.len(), 0);
    assert_eq!(
        node.0.digest(),
        digest,
        "what is below the floor is no part of the state"
    );
}

#[test]
fn a_purge_costs_as_much_at_the_end_of_a_large_write_set_as_at_its_beginning() {
    let mut node = Node::new();
    let rows: Vec<[u8; 4]> = (0..100_000u32).map(u32::to_be_bytes).collect();
    let keys: Vec<[&[u8]; 1]> = rows.iter().map(|row| [row as &[u8]]).collect();
    let keys: Vec<(&[&[u8]], KeyType)> = keys.iter().map(|key| (key.as_slice(), Update)).collect();
    node.write(A, 0, &keys);
    let mut times = Vec::new();
    while !node.0.is_empty() {
        let begin = Instant::now();
        (0..100).for_each(|_| node.0.cut(1));
        times.push(begin.elapsed());
    }
    // The fastest of some: the machine may be busy with something else.
    let fastest = |times: &[Duration]| times.iter().min().copied().expect("some");
    let (first, last) = (&times[..5], &times[times.len() - 6..times.len() - 1]);
    assert!(fastest(last) < 10 * fastest(first), "{times:?}");
}

#[test]
fn the_purge_keeps_up_with_the_load() {
    let mut node = Node::new();
    for write_set in 0..100u16 {
        let rows: Vec<[u8; 4]> = (0..100u16)
            .map(|row| (u32::from(write_set) << 16 | u32::from(row)).to_be_bytes())
            .collect();
        let keys: Vec<[&[u8]; 1]> = rows.iter().map(|row| [row as &[u8]]).collect();
        let keys: Vec<(&[&[u8]], KeyType)> =
            keys.iter().map(|key| (key.as_slice(), Update)).collect();
        let position = node.0.position();
        assert_eq!(node.write(A, position, &keys).verdict, Verdict::Pass);
        node.0.cut(position);
        assert!(node.0.len() < 300, "{} keys", node.0.len());
    }
}

#[test]
fn snapshots_with_impossible_headers_are_refused() {
    let header = |max_length: Seqno, position: Seqno, floor: Seqno, barrier: Seqno| {
        let mut bytes = vec![1];
        for number in [max_length, position, floor, barrier] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.resize(
            bytes.len() + position.saturating_sub(floor).clamp(0, 10) as usize,
            0,
        );
        Certification::decode(&bytes).map(|node| node.position())
    };
    assert_eq!(header(10, 5, 3, 4), Ok(5));
    for (max_length, position, floor, barrier) in [
        (0, 5, 5, 5),
        (10, 5, 6, 6),
        (10, 5, 3, 2),
        (10, 5, 3, 6),
        (1, 5, 3, 3),
        (10, Seqno::MAX, Seqno::MAX, Seqno::MAX),
        (Seqno::MAX, Seqno::MAX - 1, Seqno::MIN, 0),
    ] {
        let error = DecodeError::Header {
            max_length,
            position,
            floor,
            barrier,
        };
        assert_eq!(header(max_length, position, floor, barrier), Err(error));
    }
}

#[test]
fn an_index_says_what_it_holds() {
    let mut node = Node::new();
    assert!(node.0.is_empty());
    node.write(A, 0, &[(ROW, Exclusive)]);
    let keys = node.0.len();
    assert!(!node.0.is_empty() && keys > 0);
    let expected =
        format!("Certification {{ position: 1, floor: 0, barrier: 0, keys: {keys}, .. }}");
    assert_eq!(format!("{:?}", node.0), expected);
    node.0.cut(1);
    assert!(node.0.is_empty());
}

#[test]
fn the_origin_is_known_of_what_passed_and_is_above_the_floor() {
    let mut node = Node::new();
    node.write(A, 0, &[(ROW, Exclusive)]);
    node.write(B, 0, &[(ROW, Exclusive)]);
    node.0.view(3);
    node.write(B, 3, &[(OTHER_ROW, Exclusive)]);
    let isolation = Request {
        origin: A,
        last_seen: 4,
        isolation: true,
        ..request()
    };
    node.send(isolation, &[(TABLE, Exclusive)]);
    let seqnos = [0, 1, 2, 3, 4, 5, 6, Seqno::MIN];
    let origins = |node: &Node| seqnos.map(|seqno| node.0.origin(seqno));
    let writers = |node: &Node| seqnos.map(|seqno| node.0.writer(seqno));
    let none = None;
    // The second failed, the third is a view, the sixth has not come.
    let expected = [none, Some(A), none, none, Some(B), Some(A), none, none];
    assert_eq!(origins(&node), expected);
    let expected = [none, Some(A), none, none, Some(B), none, none, none];
    assert_eq!(writers(&node), expected);
    node.0.cut(2);
    let expected = [none, none, none, none, Some(B), Some(A), none, none];
    assert_eq!(origins(&node), expected);
}
