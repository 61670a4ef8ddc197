//! Peers that do not belong here, and peers that speak nonsense.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::stranger::{caller, hello, joining, raw_frame};
use common::*;
use trireme_transport::*;

/// Joins by hand, as a peer with an incarnation greater than the node's.
fn join_by_hand(node: &Node, id: u8) -> TcpStream {
    let mut stream = node.call();
    stream.write_all(&joining(id)).unwrap();
    node.wait_for(
        "hand-made peer",
        |e| matches!(e, MeshEvent::PeerUp { info, .. } if info.incarnation == [id; 16]),
    );
    stream
}

#[test]
fn another_cluster_name_is_refused_on_both_sides() {
    let a = Node::start(1, &[]);
    let mut other = identity(2);
    other.group_name = "elsewhere".to_owned();
    let b = Node::with(config(&[&a.address]), other);
    let (at_a, at_b) = (
        a.wait_rejected(RejectReason::GroupName),
        b.wait_rejected(RejectReason::GroupName),
    );
    for text in [&at_a, &at_b] {
        assert!(
            text.contains("\"elsewhere\"") && !text.contains('\n'),
            "{text}"
        );
    }
    // Who has proven nothing is not told what this cluster's name is.
    assert!(at_a.contains("\"cluster\""), "{at_a}");
    assert!(!at_b.contains("\"cluster\""), "{at_b}");
    assert!(at_b.contains(&a.address.to_string()), "{at_b}");
    assert!(a.linked().is_empty() && b.linked().is_empty());
}

#[test]
fn another_history_is_refused_until_it_changes() {
    let mut first = identity(1);
    first.history = [7; 16];
    let a = Node::with(config(&[]), first);
    let mut other = identity(2);
    other.history = [8; 16];
    let b = Node::with(config(&[&a.address]), other);
    let (ours, theirs) = ("07070707-0707-", "08080808-0808-");
    let text = a.wait_rejected(RejectReason::History);
    assert!(text.contains(ours) && text.contains(theirs), "{text}");
    let text = b.wait_rejected(RejectReason::History);
    assert!(text.contains(theirs) && !text.contains(ours), "{text}");
    b.lock().mesh.set_history([0; 16]);
    wait_meshed(&[&a, &b]);
}

#[test]
fn no_common_version() {
    let mut future = config(&[]);
    future.versions = (5, 6);
    let a = Node::with(future, identity(1));
    let b = Node::start(2, &[&a.address]);
    let text = b.wait_rejected(RejectReason::Version);
    assert!(text.contains("5 to 6") && text.contains("1 to 1"), "{text}");
}

#[test]
fn garbage_is_reported_once_and_the_node_goes_on() {
    let a = Node::start(1, &[]);
    for _ in 0..3 {
        let mut stream = a.call();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(read_out(stream), b"");
    }
    let text = a.wait_rejected(RejectReason::ForeignProtocol);
    assert!(
        text.contains("127.0.0.1 speaks another protocol (Galera?)"),
        "{text}"
    );
    assert_eq!(a.count(|e| matches!(e, MeshEvent::Rejected { .. })), 0);
    let b = Node::start(2, &[&a.address]);
    wait_meshed(&[&a, &b]);
}

#[test]
fn a_galera_node_is_recognised() {
    // It speaks first when called: a 4-byte length with version bits, a checksum, then its handshake.
    let galera = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = HostPort::from(galera.local_addr().unwrap());
    let a = Node::start(1, &[&address]);
    let (mut stream, _) = galera.accept().unwrap();
    stream
        .write_all(&[0x24, 0, 0, 0x10, 0x8b, 0x30, 0x02, 0x91, 0, 1, 0x10, 0])
        .unwrap();
    let text = a.wait_rejected(RejectReason::ForeignProtocol);
    assert!(
        text.contains(&address.to_string()) && text.contains("Galera nodes cannot share a cluster"),
        "{text}"
    );
    // It says nothing when it calls.
    let silent = a.call();
    assert!(
        a.wait_rejected(RejectReason::Timeout)
            .contains("sent nothing for 500 ms")
    );
    assert_eq!(read_out(silent), b"");
}

/// Both sides wait for a word equally long: whoever gives up first, it is told.
#[test]
fn a_galera_node_that_hangs_up_first_is_recognised() {
    let mut patient = config(&[]);
    patient.handshake_timeout_ms = 4_000;
    let a = Node::with(patient, identity(1));
    let silent = a.call();
    std::thread::sleep(Duration::from_secs(3));
    drop(silent);
    let text = a.wait_rejected(RejectReason::Timeout);
    assert!(
        text.contains("Galera nodes cannot share a cluster"),
        "{text}"
    );
    assert!(!text.contains("for 4000 ms"), "{text}");
}

#[test]
fn a_tls_peer_is_recognised() {
    let a = Node::start(1, &[]);
    a.call()
        .write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc])
        .unwrap();
    assert!(
        a.wait_rejected(RejectReason::ForeignProtocol)
            .contains("socket.ssl")
    );
}

#[test]
fn malformed_handshakes_are_refused() {
    let a = Node::start(1, &[]);
    let mut hello = hello(identity(2)).encode();
    hello.truncate(60);
    for frame in [
        raw_frame(1, &hello),
        raw_frame(16, b"data before the handshake"),
        raw_frame(99, b""),
    ] {
        let mut stream = a.call();
        stream.write_all(&[&PREAMBLE[..], &frame].concat()).unwrap();
        let answer = read_out(stream);
        assert_eq!(answer[..8], PREAMBLE);
        assert_eq!(answer[8 + 8], FrameKind::Refuse as u8);
    }
    a.wait_rejected(RejectReason::Malformed);
}

#[test]
fn damaged_and_endless_frames_break_the_connection() {
    let a = Node::start(1, &[]);
    let mut damaged = raw_frame(16, b"0123456789");
    damaged[12] ^= 1;
    let endless = [&u32::MAX.to_le_bytes()[..], &[0; 4], &[16]].concat();
    for (bytes, wanted) in [
        (damaged, "checksum"),
        (endless, "4294967295 bytes"),
        (raw_frame(1, b""), "unexpected"),
    ] {
        let mut stream = join_by_hand(&a, 9);
        stream.write_all(&raw_frame(16, b"good")).unwrap();
        assert_eq!(a.wait_frame([9; 16]), b"good");
        stream.write_all(&bytes).unwrap();
        let reason = a.wait_down([9; 16]);
        assert!(
            matches!(&reason, DownReason::Invalid(e) if e.to_string().contains(wanted)),
            "{reason}"
        );
        read_out(stream);
    }
    // Cut off in the middle of a frame.
    let mut stream = join_by_hand(&a, 9);
    stream
        .write_all(&raw_frame(16, b"half of it")[..12])
        .unwrap();
    drop(stream);
    a.wait_down([9; 16]);
    assert_eq!(a.count(|e| matches!(e, MeshEvent::Frame { .. })), 0);
}

#[test]
fn a_lost_connection_that_one_side_did_not_notice_is_replaced() {
    let a = Node::start(1, &[]);
    let _first = join_by_hand(&a, 9);
    std::thread::sleep(Duration::from_millis(1_100));
    let mut second = join_by_hand(&a, 9);
    assert_eq!(a.linked(), [[9; 16]]);
    second.write_all(&raw_frame(16, b"by the second")).unwrap();
    assert_eq!(a.wait_frame([9; 16]), b"by the second");
}

#[test]
fn the_greater_incarnation_obeys() {
    let a = Node::start(9, &[]);
    let said = [&PREAMBLE[..], &raw_frame(1, &hello(identity(1)).encode())].concat();
    let call_as_first = |has_link: u8| {
        let mut stream = a.call();
        stream.write_all(&said).unwrap();
        let hello = hello(a.lock().mesh.identity().clone()).encode();
        let mut answer = vec![0; 8 + HEADER_BYTES + hello.len()];
        stream.read_exact(&mut answer).unwrap();
        let mut state = [0; HEADER_BYTES + 1];
        stream.read_exact(&mut state).unwrap();
        assert_eq!(state[8..], [FrameKind::State as u8, has_link]);
        stream
    };
    let mut first = call_as_first(0);
    assert!(a.linked().is_empty(), "not before it is told");
    first.write_all(&raw_frame(3, b"")).unwrap();
    wait_until("linked", || a.linked() == [[1; 16]]);
    // The node says that it has a connection, but the other side has lost it and knows better.
    let mut second = call_as_first(1);
    second
        .write_all(&[raw_frame(3, b""), raw_frame(16, b"by the second")].concat())
        .unwrap();
    assert_eq!(a.wait_down([1; 16]), DownReason::Replaced);
    assert_eq!(a.wait_frame([1; 16]), b"by the second");
    assert_eq!(a.linked(), [[1; 16]]);
}

#[test]
fn a_second_connection_is_refused_while_the_first_stands() {
    let a = Node::start(1, &[]);
    let mut first = join_by_hand(&a, 9);
    let mut second = a.call();
    let hello = hello(caller(9)).encode();
    second
        .write_all(&[&PREAMBLE[..], &raw_frame(1, &hello), &raw_frame(2, &[1])].concat())
        .unwrap();
    let answer = read_out(second);
    assert_eq!(
        answer[answer.len() - 4..],
        [FrameKind::Refuse as u8, RefusalCode::Duplicate as u8, 0, 0]
    );
    first.write_all(&raw_frame(16, b"still here")).unwrap();
    assert_eq!(a.wait_frame([9; 16]), b"still here");
}

#[test]
fn the_allowlist_decides_and_both_sides_say_so() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let mut guarded = config(&[]);
    guarded.allow = Some(allowlist(move |ip| {
        heard.lock().unwrap().push(ip.to_owned());
        ip != "127.0.0.3"
    }));
    let a = Node::with(guarded, identity(1));
    let at = |ip: &str, id: u8| {
        let mut config = config(&[&a.address]);
        config.listen = HostPort {
            host: ip.to_owned(),
            port: 0,
        };
        let mut identity = identity(id);
        identity.listen_addr = format!("{ip}:0");
        Node::with(config, identity)
    };
    let b = at("127.0.0.2", 2);
    wait_meshed(&[&a, &b]);
    let c = at("127.0.0.3", 3);
    assert!(
        c.wait_rejected(RejectReason::NotAllowedByPeer)
            .contains("127.0.0.3 is not in the allowlist")
    );
    assert!(
        a.wait_rejected(RejectReason::NotAllowed)
            .contains("Connection not allowed")
    );
    assert!(c.linked().is_empty());
    assert!(
        asked.lock().unwrap().contains(&"127.0.0.2".to_owned()),
        "called from the address listened on"
    );
}

#[test]
fn silent_callers_are_bounded() {
    let mut patient = config(&[]);
    patient.handshake_timeout_ms = 60_000;
    let a = Node::with(patient, identity(1));
    let mut first = a.call();
    let crowd: Vec<TcpStream> = (0..64).map(|_| a.call()).collect();
    let end = first.read(&mut [0]).map_err(|e| e.kind());
    assert!(
        matches!(end, Ok(0) | Err(std::io::ErrorKind::ConnectionReset)),
        "the oldest gives way: {end:?}"
    );
    let b = Node::start(2, &[&a.address]);
    wait_meshed(&[&a, &b]);
    drop(crowd);
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let a = Node::start(1, &[]);
    let mut same = config(&[]);
    same.listen = a.address.clone();
    let error = Mesh::bind(same, identity(2)).err().unwrap().to_string();
    assert!(
        error.contains(&a.address.to_string()) && error.contains("port is in use"),
        "{error}"
    );
    let mut long = identity(3);
    long.extra = vec![0; 5000];
    assert!(matches!(
        Mesh::bind(config(&[]), long),
        Err(TransportError::IdentityTooLong { .. })
    ));
    let mut bad = identity(4);
    bad.listen_addr = "a:b:c".to_owned();
    assert!(matches!(
        Mesh::bind(config(&[]), bad),
        Err(TransportError::InvalidAddress { .. })
    ));
}

#[test]
fn members_are_told_of_each_other() {
    let a = Node::start(1, &[]);
    let b = Node::start(2, &[&a.address]);
    wait_meshed(&[&a, &b]);
    let mut peer = join_by_hand(&a, 9);
    let mut told = Vec::new();
    let mut read_until = |wanted: &HostPort| {
        let gossip = Gossip(vec![([0; 16], wanted.to_string())])
            .encode()
            .split_off(18);
        while !told.windows(gossip.len()).any(|bytes| bytes == gossip) {
            let mut byte = [0];
            peer.read_exact(&mut byte).unwrap();
            told.push(byte[0]);
        }
    };
    read_until(&b.address);
    let c = Node::start(3, &[&a.address]);
    read_until(&c.address);
}

/// Calls a stranger on this address of the loopback, which says that it is the caller itself. Returns the caller, and
/// the address, which is free again.
fn called_a_liar(ip: &str) -> (Node, HostPort) {
    let liar = TcpListener::bind((ip, 0)).unwrap();
    let address = HostPort::from(liar.local_addr().unwrap());
    let mut config = config(&[&address]);
    config.retry_slow_ms = 100;
    let a = Node::with(config, identity(1));
    let (mut stream, _) = liar.accept().unwrap();
    drop(liar);
    let refusal = Refusal {
        code: RefusalCode::Oneself,
        text: String::new(),
    };
    let refusal = raw_frame(FrameKind::Refuse as u8, &refusal.encode());
    stream
        .write_all(&[&PREAMBLE[..], &refusal].concat())
        .unwrap();
    read_out(stream);
    (a, address)
}

fn listen_at(address: &HostPort, id: u8) -> Node {
    let mut config = config(&[]);
    config.listen = address.clone();
    let mut identity = identity(id);
    identity.listen_addr = address.to_string();
    Node::with(config, identity)
}

#[test]
fn an_answer_from_another_ip_address_is_not_ones_own() {
    let (a, address) = called_a_liar("127.0.0.2");
    let b = listen_at(&address, 2);
    wait_meshed(&[&a, &b]);
}

#[test]
fn an_operator_names_an_address_again_that_counted_as_ones_own() {
    let (a, address) = called_a_liar("127.0.0.1");
    let b = listen_at(&address, 2);
    std::thread::sleep(Duration::from_millis(300));
    assert!(a.linked().is_empty(), "not called again by itself");
    a.lock().mesh.add_seed(address);
    wait_meshed(&[&a, &b]);
}

#[test]
fn a_node_takes_so_many_peers_and_no_more() {
    let a = Node::start(1, &[]);
    let peers: Vec<_> = (2..130).map(|id| join_by_hand(&a, id)).collect();
    assert_eq!(a.linked().len(), peers.len());
    let mut stream = a.call();
    let hello = hello(identity(200)).encode();
    stream
        .write_all(&[&PREAMBLE[..], &raw_frame(1, &hello)].concat())
        .unwrap();
    let answer = read_out(stream);
    let said = String::from_utf8_lossy(&answer);
    assert!(said.contains("128 others already"), "{said}");
}
