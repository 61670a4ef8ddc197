//! Peers that are no members: as long as it is known who is one, they have little room.

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;

use common::stranger::{caller, hello, joining, raw_frame};
use common::*;
use trireme_transport::*;

/// Joins by hand from an address of this machine, as a peer with an incarnation greater than the node's.
fn join_from(node: &Node, host: u8, id: u8) -> TcpStream {
    let mut stream = node.call_from(host);
    stream.write_all(&joining(id)).unwrap();
    stream
}

fn wait_linked(node: &Node, id: u8) {
    wait_until("linked", || node.linked().contains(&[id; 16]));
}

fn members(ids: &[u8]) -> Option<BTreeSet<[u8; 16]>> {
    Some(ids.iter().map(|id| [*id; 16]).collect())
}

#[test]
fn a_stranger_sends_short_frames_only() {
    let a = Node::start(1, &[]);
    let (mut member, mut stranger) = (join_from(&a, 1, 2), join_from(&a, 1, 3));
    wait_linked(&a, 2);
    wait_linked(&a, 3);
    // As long as nobody is known, everybody may be a member.
    let (short, long) = (vec![7; 64 << 10], vec![7; (64 << 10) + 1]);
    stranger.write_all(&raw_frame(16, &long)).unwrap();
    assert_eq!(a.wait_frame([3; 16]), long);
    // The next view may have others than the last.
    a.lock().mesh.set_members(members(&[1, 2]), false);
    stranger.write_all(&raw_frame(16, &long)).unwrap();
    assert_eq!(a.wait_frame([3; 16]), long);
    a.lock().mesh.set_members(members(&[1, 2]), true);
    for (peer, id) in [(&mut member, 2), (&mut stranger, 3)] {
        peer.write_all(&raw_frame(16, &short)).unwrap();
        assert_eq!(a.wait_frame([id; 16]), short);
    }
    member.write_all(&raw_frame(16, &long)).unwrap();
    assert_eq!(a.wait_frame([2; 16]), long);
    // It may be cut off before it has said all.
    let _ = stranger.write_all(&raw_frame(16, &long));
    let reason = a.wait_down([3; 16]);
    let is_too_long =
        matches!(reason, DownReason::Invalid(FrameError::TooLong { max, .. }) if max == 64 << 10);
    assert!(is_too_long, "{reason:?}");
    // So it is for one that comes later.
    let mut stranger = join_from(&a, 1, 4);
    wait_linked(&a, 4);
    let _ = stranger.write_all(&raw_frame(16, &long)); // as above
    a.wait_down([4; 16]);
    assert_eq!(a.linked(), [[2; 16]]);
}

#[test]
fn strangers_give_way_to_members() {
    give_way_to_members(true);
}

/// Otherwise they could keep a cluster from forming again.
#[test]
fn strangers_give_way_to_the_members_of_the_last_view() {
    give_way_to_members(false);
}

fn give_way_to_members(are_current: bool) {
    let a = Node::start(1, &[]);
    a.lock().mesh.set_members(members(&[1, 2]), are_current);
    // Of one address so many, the last ones.
    let join = |host, id| {
        let stream = join_from(&a, host, id);
        wait_linked(&a, id);
        stream
    };
    let crowd: Vec<TcpStream> = (10..30).map(|id| join(9, id)).collect();
    let expected: Vec<PeerId> = (14..30).map(|id| [id; 16]).collect();
    wait_until("the oldest have gone", || a.linked() == expected);
    // Of many addresses all that there are places, and a member finds one.
    let crowds: Vec<TcpStream> = (0..112u8).map(|i| join(20 + i / 16, 100 + i)).collect();
    assert_eq!(a.linked().len(), 128);
    let _member = join_from(&a, 1, 2);
    wait_linked(&a, 2);
    assert_eq!(a.linked().len(), 128);
    drop((crowd, crowds));
}

#[test]
fn silent_callers_of_one_address_keep_out_none_of_another() {
    let mut patient = config(&[]);
    patient.handshake_timeout_ms = 60_000;
    let a = Node::with(patient, identity(1));
    let (said, mut slow) = (joining(9), a.call_from(2));
    slow.write_all(&said[..4]).unwrap();
    let crowd: Vec<TcpStream> = (0..200).map(|_| a.call_from(3)).collect();
    std::thread::sleep(std::time::Duration::from_millis(300));
    slow.write_all(&said[4..]).unwrap();
    wait_linked(&a, 9);
    drop(crowd);
}

/// Under all circumstances: members, too, and as long as nobody is known.
#[test]
fn a_replica_has_few_links() {
    let a = Node::start(1, &[]);
    let join = |id| {
        let who = Identity {
            replica: [9; 16],
            ..caller(id)
        };
        let mut stream = a.call();
        let said = raw_frame(1, &hello(who).encode());
        let said = [&PREAMBLE[..], &said, &raw_frame(2, &[0])].concat();
        stream.write_all(&said).unwrap();
        wait_linked(&a, id);
        stream
    };
    let _another = join_from(&a, 1, 2);
    wait_linked(&a, 2);
    let mut held: Vec<TcpStream> = (10..16).map(join).collect();
    let expected: Vec<PeerId> = [2, 12, 13, 14, 15].map(|id| [id; 16]).to_vec();
    assert_eq!(a.linked(), expected);
    a.lock().mesh.set_members(members(&[1, 2, 9]), true);
    held.push(join(16));
    let expected: Vec<PeerId> = [2, 13, 14, 15, 16].map(|id| [id; 16]).to_vec();
    assert_eq!(a.linked(), expected);
}
