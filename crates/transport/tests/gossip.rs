//! What members tell each other of newcomers, when one of them reads nothing or tells too much.

mod common;

use std::io::Write;
use std::net::TcpStream;

use common::stranger::joining;
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
