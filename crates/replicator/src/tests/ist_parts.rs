//! Long entries that a joiner pulls in parts.

use bytes::Bytes;

use super::driver::{Cluster, incarnation, peer_message};
use super::transfer::pulling;
use crate::peer_message::PeerMessage;
use crate::{Event, Options, RecordedPart, Seqno, Unread};

const PART_BYTES: u32 = 16;

/// Two members that give long entries in parts; a third has pulled its next from node 0, which has not answered.
fn pulling_parts() -> (Cluster, usize, Seqno) {
    let (mut cluster, joiner, next) = pulling(2);
    for node in 0..2 {
        let options = Options {
            ist_part_bytes: PART_BYTES,
            ..Options::default()
        };
        cluster.event(node, Event::SetOptions(options));
    }
    (cluster, joiner, next)
}

/// What waits to be received by a node.
fn inbox(cluster: &Cluster, node: usize) -> Vec<PeerMessage> {
    let inbox = cluster.nodes[node].inbox.iter();
    inbox
        .map(|(_, bytes)| PeerMessage::decode(bytes.clone()).expect("understood"))
        .collect()
}

/// All that a node is asked for is the rest of an entry.
fn assert_asks_for_rest(cluster: &Cluster, node: usize, from: Seqno, offset: u32) {
    assert_eq!(
        inbox(cluster, node),
        [PeerMessage::IstPullPart { from, offset }]
    );
}

/// The part that node 0 answers with.
fn answer(cluster: &mut Cluster, joiner: usize) -> RecordedPart {
    cluster.receive(0);
    match inbox(cluster, joiner).pop() {
        Some(PeerMessage::IstPart(part)) => part,
        other => panic!("{other:?}"),
    }
}

fn assert_joins(mut cluster: Cluster, joiner: usize) {
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

#[test]
fn a_long_entry_comes_a_part_at_a_time() {
    let (mut cluster, joiner, next) = pulling_parts();
    let mut offset = 0;
    loop {
        let part = answer(&mut cluster, joiner);
        assert_eq!((part.record.seqno, part.offset), (next, offset));
        offset += part.bytes.len() as u32;
        let expected = PART_BYTES.min(part.len - part.offset);
        assert_eq!(part.bytes.len() as u32, expected);
        cluster.receive(joiner);
        if offset == part.len {
            break;
        }
        assert_asks_for_rest(&cluster, 0, next, offset);
    }
    assert_eq!(
        inbox(&cluster, 0),
        [PeerMessage::IstPull { from: next + 1 }],
        "of the next nothing has come"
    );
    assert_joins(cluster, joiner);
}

#[test]
fn another_member_gives_the_rest() {
    let (mut cluster, joiner, next) = pulling_parts();
    answer(&mut cluster, joiner);
    cluster.receive(joiner);
    cluster.nodes[0].inbox.clear();
    cluster.pass(1001);
    assert_asks_for_rest(&cluster, 1, next, PART_BYTES);
    assert_joins(cluster, joiner);
}

type Change = fn(&mut RecordedPart);

#[test]
fn what_does_not_fit_is_asked_for_from_the_beginning_then_elsewhere() {
    let changes: [(&str, Change); 4] = [
        ("empty", |part| part.bytes = Bytes::new()),
        ("longer", |part| {
            part.bytes = Bytes::from(vec![0; part.len as usize]);
        }),
        ("of another", |part| part.digest ^= 1),
        ("of another record", |part| part.record.failed ^= true),
    ];
    for (what, change) in changes {
        let (mut cluster, joiner, next) = pulling_parts();
        answer(&mut cluster, joiner);
        cluster.receive(joiner);
        let mut part = answer(&mut cluster, joiner);
        cluster.nodes[joiner].inbox.clear();
        change(&mut part);
        say(&mut cluster, joiner, &part);
        let from_the_beginning = [PeerMessage::IstPull { from: next }];
        assert_eq!(inbox(&cluster, 0), from_the_beginning, "{what}");
        let mut part = answer(&mut cluster, joiner);
        cluster.nodes[joiner].inbox.clear();
        part.bytes = Bytes::new();
        say(&mut cluster, joiner, &part);
        assert_eq!(inbox(&cluster, 1), from_the_beginning, "{what}");
        assert_joins(cluster, joiner);
    }
}

#[test]
fn a_whole_that_is_not_what_was_recorded_is_not_applied() {
    let (mut cluster, joiner, next) = pulling_parts();
    let mut part = answer(&mut cluster, joiner);
    cluster.nodes[joiner].inbox.clear();
    part.bytes = Bytes::from(vec![0; part.len as usize]);
    say(&mut cluster, joiner, &part);
    let from_the_beginning = [PeerMessage::IstPull { from: next }];
    assert_eq!(inbox(&cluster, 0), from_the_beginning);
    say(&mut cluster, joiner, &part);
    assert_eq!(inbox(&cluster, 1), from_the_beginning);
    assert_joins(cluster, joiner);
}

/// It was asked twice, since it did not answer in time.
#[test]
fn a_part_that_comes_twice_changes_nothing() {
    let (mut cluster, joiner, next) = pulling_parts();
    let first = answer(&mut cluster, joiner);
    cluster.receive(joiner);
    say(&mut cluster, joiner, &first);
    assert_asks_for_rest(&cluster, 0, next, PART_BYTES);
    assert!(inbox(&cluster, 1).is_empty());
    assert_joins(cluster, joiner);
}

#[test]
fn what_a_donor_cannot_read_is_asked_for_elsewhere() {
    let (mut cluster, joiner, next) = pulling_parts();
    answer(&mut cluster, joiner);
    cluster.receive(joiner);
    cluster.nodes[0].records.damage = Some(Unread::Lost("a bad sector".into()));
    cluster.receive(0);
    cluster.receive(joiner);
    assert_eq!(inbox(&cluster, 1), [PeerMessage::IstPull { from: next }]);
    assert_joins(cluster, joiner);
}

/// A joiner that holds it damaged would read the whole again for each part.
#[test]
fn the_own_log_is_not_read_again_for_each_part() {
    let (mut cluster, joiner, next) = pulling_parts();
    answer(&mut cluster, joiner);
    cluster.nodes[joiner].records.damage = Some(Unread::NotNow);
    cluster.receive(joiner);
    assert_asks_for_rest(&cluster, 0, next, PART_BYTES);
}

/// Node 0 sends a part.
fn say(cluster: &mut Cluster, joiner: usize, part: &RecordedPart) {
    let (from, bytes) = (incarnation(0), PeerMessage::IstPart(part.clone()).encode());
    cluster.event(joiner, peer_message(from, bytes));
}
