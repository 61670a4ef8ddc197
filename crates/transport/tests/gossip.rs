//! What members tell each other of newcomers, when one of them reads nothing or tells too much.

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use common::stranger::{joining, raw_frame};
use common::*;
use trireme_transport::*;

fn join(node: &Node, id: u8) -> TcpStream {
    let mut stream = node.call();
    stream.write_all(&joining(id)).unwrap();
    wait_until("linked", || node.linked().contains(&[id; 16]));
    stream
}

#[test]
fn a_peer_that_reads_nothing_is_told_of_no_newcomer() {
    let a = Node::start(1, &[]);
    let _deaf = join(&a, 9);
    let queued = || a.lock().mesh.ordinary_queued_bytes([9; 16]).unwrap();
    // More than the system's buffers take.
    while queued() < 4 << 20 {
        assert_eq!(a.send([9; 16], &vec![0; 4 << 20]), SendOutcome::Queued);
    }
    let before = queued();
    let others: Vec<TcpStream> = (10..40).map(|id| join(&a, id)).collect();
    assert!(queued() <= before, "{} more", queued() - before);
    drop(others);
}

#[test]
fn a_peer_that_tells_too_many_addresses_is_not_heeded() {
    let a = Node::start(1, &[]);
    let mut talkative = join(&a, 9);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // All these addresses are of this machine, and one listener hears the calls to the last one.
    let gossip = |addresses: std::ops::Range<u32>| {
        let at = |i: u32| format!("127.1.{}.{}:1", i / 250, 1 + i % 250);
        Gossip(addresses.map(|i| ([77; 16], at(i))).collect()).encode()
    };
    let last = Gossip(vec![([77; 16], format!("127.0.0.1:{port}"))]).encode();
    // In one piece: the node reads both at the same time.
    let told = [gossip(0..200), last.clone()].map(|gossip| raw_frame(5, &gossip));
    talkative.write_all(&told.concat()).unwrap();
    let is_refused = |e: &MeshEvent| matches!(e, MeshEvent::Refused { .. });
    wait_until("128 calls", || a.count(is_refused) >= 128);
    assert!(listener.accept().is_err(), "beyond the first 128");
    wait_until("heeded later", || {
        talkative.write_all(&raw_frame(5, &last)).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        listener.accept().is_ok()
    });
}

#[test]
fn a_peer_that_connects_again_is_heeded_no_more() {
    let a = Node::start(1, &[]);
    let gossip = |addresses: std::ops::Range<u32>| {
        let at = |i: u32| format!("127.2.{}.{}:1", i / 250, 1 + i % 250);
        raw_frame(
            5,
            &Gossip(addresses.map(|i| ([77; 16], at(i))).collect()).encode(),
        )
    };
    for id in 0..5u8 {
        let mut talkative = join(&a, 10 + id);
        let from = 200 * u32::from(id);
        talkative.write_all(&gossip(from..from + 200)).unwrap();
        // The frame behind the gossip tells that it was read.
        talkative.write_all(&raw_frame(16, b"read")).unwrap();
        let is_read = |event: &MeshEvent| matches!(event, MeshEvent::Frame { from, .. } if *from == [10 + id; 16]);
        wait_until("read", || a.count(is_read) > 0);
    }
    std::thread::sleep(Duration::from_millis(500));
    let core = a.lock();
    let called = core.events.iter().filter_map(|event| match event {
        MeshEvent::Refused { address, .. } => Some(address.as_str()),
        _ => None,
    });
    // Each connection alone would lead to 128 calls; the time that passes adds 16 in a second.
    let called = called
        .filter(|address| address.starts_with("127.2."))
        .collect::<BTreeSet<_>>();
    assert!(called.len() < 256, "{} calls", called.len());
}
