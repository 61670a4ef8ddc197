//! Meshes with TLS: among themselves, and with those that have another certificate or none.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use common::stranger::joining;
use common::*;
use trireme_tls::testing::{NOW, Party};
use trireme_transport::*;

/// A node's protection with a certificate of `ca`.
fn of(ca: &Party) -> Security {
    Security::new(ca.issue("node", NOW).credentials(ca), true, false)
}

#[test]
fn nodes_mesh_and_speak_encrypted() {
    let tls = of(&Party::authority("ca"));
    let a = Node::with(secure(&[], &tls), identity(1));
    let b = Node::with(secure(&[&a.address], &tls), identity(2));
    let c = Node::with(secure(&[&b.address], &tls), identity(3));
    wait_meshed(&[&a, &b, &c]);
    for node in [&a, &b, &c] {
        assert_eq!(node.lock().mesh.plaintext_links(), 0);
        for peer in node.lock().mesh.peers() {
            assert!(
                peer.protection.starts_with("TLS 1.3 "),
                "{}",
                peer.protection
            );
        }
    }
    assert_eq!(a.send(b.id, b"to b"), SendOutcome::Queued);
    assert_eq!(b.wait_frame(a.id), b"to b");
    assert_eq!(c.send(a.id, b"to a"), SendOutcome::Queued);
    assert_eq!(a.wait_frame(c.id), b"to a");
    // A lost connection is replaced.
    a.lock().mesh.disconnect_peer(b.id, None);
    b.wait_down(a.id);
    wait_meshed(&[&a, &b, &c]);
}

#[test]
fn large_and_small_frames_arrive_in_order() {
    let (a, b) = meshed(&of(&Party::authority("ca")));
    // More than sockets hold, and more than one hold of the lock encrypts.
    let frames: Vec<Vec<u8>> = (0..200u32)
        .map(|i| vec![i as u8; [3, 900, 16 << 10, 70_000, 1 << 20][i as usize % 5]])
        .collect();
    {
        let mut core = a.lock();
        for frame in &frames {
            let frame = Frame::new(b"", Some(frame.clone().into())).unwrap();
            assert_eq!(core.mesh.send(b.id, frame), SendOutcome::Queued);
        }
        let began = Instant::now();
        core.mesh.flush();
        let waits = core.mesh.queued_bytes(b.id);
        assert!(
            waits > 40 << 20,
            "{waits} bytes wait: all was encrypted at once, in {:?}",
            began.elapsed()
        );
    }
    for frame in &frames {
        assert_eq!(&b.wait_frame(a.id), frame);
    }
}

#[test]
fn last_words_are_heard() {
    let (a, b) = meshed(&of(&Party::authority("ca")));
    {
        let mut core = a.lock();
        let frame = Frame::new(b"", Some(vec![7; 300_000].into())).unwrap();
        assert_eq!(core.mesh.send(b.id, frame), SendOutcome::Queued);
        core.mesh.close();
    }
    assert_eq!(b.wait_frame(a.id).len(), 300_000);
    assert_eq!(b.wait_down(a.id), DownReason::Closed);
}

/// The kernel discards what the socket has still to send, if it is closed with unread bytes.
#[test]
fn last_words_are_heard_although_bytes_wait_to_be_read() {
    let (a, b) = meshed(&of(&Party::authority("ca")));
    // The session of `a` has read everything, and expects no more before the poller says so.
    assert_eq!(b.send(a.id, b"read"), SendOutcome::Queued);
    assert_eq!(a.wait_frame(b.id), b"read");
    {
        let mut core = a.lock();
        assert_eq!(b.send(a.id, b"unread"), SendOutcome::Queued);
        // While `b` does not read, its socket has room for a part only.
        let _idle = b.lock();
        let frame = Frame::new(b"", Some(vec![7; 1 << 20].into())).unwrap();
        assert_eq!(core.mesh.send(b.id, frame), SendOutcome::Queued);
        core.mesh.close();
    }
    assert_eq!(b.wait_frame(a.id).len(), 1 << 20);
    assert_eq!(b.wait_down(a.id), DownReason::Closed);
}

#[test]
fn a_stranger_with_a_certificate_is_named_on_both_sides() {
    let (ca, other) = (Party::authority("ca"), Party::authority("other"));
    let a = Node::with(secure(&[], &of(&ca)), identity(1));
    let stranger = Security::new(other.issue("stranger", NOW).credentials(&ca), true, false);
    let b = Node::with(secure(&[&a.address], &stranger), identity(2));
    let text = a.wait_rejected(RejectReason::Tls);
    assert!(
        text.contains("127.0.0.1") && text.contains("CN=stranger"),
        "{text}"
    );
    let text = b.wait_rejected(RejectReason::Tls);
    assert!(
        text.contains(&a.address.to_string()) && text.contains("unknown ca"),
        "{text}"
    );
    assert!(a.linked().is_empty() && b.linked().is_empty());
}

#[test]
fn plaintext_and_tls_tell_each_other_apart() {
    let tls = of(&Party::authority("ca"));
    // A plain node calls.
    let a = Node::with(secure(&[], &tls), identity(1));
    let b = Node::start(2, &[&a.address]);
    let text = a.wait_rejected(RejectReason::Tls);
    assert!(
        text.contains("does not encrypt") && text.contains("socket.dynamic"),
        "{text}"
    );
    let text = b.wait_rejected(RejectReason::ForeignProtocol);
    assert!(text.contains("speaks TLS, this node does not"), "{text}");
    // A plain node is called, and nothing falls back.
    let c = Node::start(3, &[]);
    let d = Node::with(secure(&[&c.address], &tls), identity(4));
    let text = c.wait_rejected(RejectReason::ForeignProtocol);
    assert!(text.contains("speaks TLS, this node does not"), "{text}");
    let text = d.wait_rejected(RejectReason::Broken);
    assert!(
        text.contains(&c.address.to_string()) && text.contains("socket.ssl"),
        "{text}"
    );
    assert!([&a, &b, &c, &d].iter().all(|node| node.linked().is_empty()));
}

#[test]
fn a_node_may_accept_both_while_a_cluster_changes_over() {
    let ca = Party::authority("ca");
    let credentials = ca.issue("node", NOW).credentials(&ca);
    let accepts_both = |dials_tls| Security::new(credentials.clone(), dials_tls, true);
    let a = Node::with(secure(&[], &accepts_both(true)), identity(1));
    let plain = Node::start(2, &[&a.address]);
    let tls = Node::with(secure(&[&a.address], &of(&ca)), identity(3));
    wait_until("both kinds linked", || a.linked().len() == 2);
    assert_eq!(a.lock().mesh.plaintext_links(), 1);
    // It calls the plain one with TLS, too, which is no trouble.
    let text = plain.wait_rejected(RejectReason::TlsInVain);
    assert!(text.contains("is connected without TLS"), "{text}");
    assert_eq!(plain.send(a.id, b"plain"), SendOutcome::Queued);
    assert_eq!(a.wait_frame(plain.id), b"plain");
    // The one without TLS learns it, and the last door closes: no member was lost for longer than a call takes.
    plain.lock().mesh.set_security(accepts_both(true));
    a.lock().mesh.set_security(of(&ca));
    assert!(matches!(
        plain.wait_down(a.id),
        DownReason::Closed | DownReason::Io(_)
    ));
    wait_meshed(&[&a, &plain, &tls]);
    assert_eq!(a.lock().mesh.plaintext_links(), 0);
}

#[test]
fn a_node_that_gets_its_certificate_late_calls_at_once() {
    let ca = Party::authority("ca");
    let a = Node::with(secure(&[], &of(&ca)), identity(1));
    let mut slow = config(&[&a.address]);
    slow.retry_slow_ms = 60_000; // more than a test waits
    let b = Node::with(slow, identity(2));
    b.wait_rejected(RejectReason::ForeignProtocol);
    b.lock().mesh.set_security(of(&ca));
    wait_meshed(&[&a, &b]);
}

fn is_up(event: &MeshEvent) -> bool {
    matches!(event, MeshEvent::PeerUp { .. })
}

#[test]
fn no_plaintext_handshake_outlives_the_permission() {
    let ca = Party::authority("ca");
    let both = Security::new(ca.issue("node", NOW).credentials(&ca), true, true);
    let said = joining(9);
    let state_bytes = HEADER_BYTES + 1;
    // The last caller is silent until the change: the handshaker holds its socket, with the former protection.
    let said_before = [PREAMBLE.len(), said.len() - state_bytes, 0];
    let ups = said_before.map(|before| {
        let a = Node::with(secure(&[], &both), identity(1));
        let mut outsider = a.call();
        (outsider.set_read_timeout(Some(Duration::from_secs(1)))).unwrap();
        outsider.write_all(&said[..before]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        a.lock().mesh.set_security(of(&ca));
        // Fails if the node has closed the connection already.
        let _ = outsider.write_all(&said[before..]);
        read_out(outsider);
        a.count(is_up) + a.linked().len()
    });
    assert_eq!(ups, [0; 3]);
}

#[test]
fn no_plaintext_call_outlives_the_permission() {
    let called = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = HostPort::from(called.local_addr().unwrap());
    let a = Node::start(1, &[&address]);
    let (mut plain, _) = called.accept().unwrap();
    (plain.set_read_timeout(Some(Duration::from_secs(1)))).unwrap();
    plain.read_exact(&mut [0; PREAMBLE.len()]).unwrap();
    a.lock().mesh.set_security(of(&Party::authority("ca")));
    // Fails if the node has closed the connection already.
    let _ = plain.write_all(&joining(9));
    read_out(plain);
    assert_eq!((a.count(is_up), a.linked()), (0, vec![]));
    let (mut next, _) = called.accept().unwrap();
    let mut first = [0];
    next.read_exact(&mut first).unwrap();
    assert_eq!(first, [0x16], "it calls again, with TLS");
}

#[test]
fn new_certificates_count_for_new_links_and_drop_none() {
    let (old, new) = (Party::authority("old"), Party::authority("new"));
    let a = Node::with(secure(&[], &of(&old)), identity(1));
    let b = Node::with(secure(&[&a.address], &of(&old)), identity(2));
    wait_meshed(&[&a, &b]);
    a.lock().mesh.set_security(of(&new));
    assert_eq!(a.send(b.id, b"still"), SendOutcome::Queued);
    assert_eq!(b.wait_frame(a.id), b"still");
    // A call that began before may still lead to a link.
    let is_refused = |event: &MeshEvent| {
        matches!(
            event,
            MeshEvent::Rejected {
                reason: RejectReason::Tls,
                ..
            }
        )
    };
    wait_until("the new certificate counts", || {
        a.lock().mesh.disconnect_peer(b.id, None);
        b.count(is_refused) > 0
    });
    assert!(
        b.wait_rejected(RejectReason::Tls)
            .contains("does not trust")
    );
    b.lock().mesh.set_security(of(&new));
    // Same name, another key: not the same authority.
    a.wait_rejected(RejectReason::Tls);
    assert!(a.linked().is_empty());
}

#[test]
fn silent_and_half_open_callers_lock_nobody_out() {
    let tls = of(&Party::authority("ca"));
    let mut slow = secure(&[], &tls);
    slow.handshake_timeout_ms = 60_000;
    let a = Node::with(slow, identity(1));
    let mut held = Vec::new();
    for i in 0..300u32 {
        let mut stream = a.call();
        // Some begin a record that they never finish.
        if i % 2 == 0 {
            stream.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
        }
        held.push(stream);
    }
    let began = Instant::now();
    let b = Node::with(secure(&[&a.address], &tls), identity(2));
    wait_meshed(&[&a, &b]);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    // The address may hold 16 sockets of those who wait, and as many of those who shake hands.
    let open = held.into_iter().filter_map(|mut stream| {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0; 64]);
        matches!(&read, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock).then_some(())
    });
    assert!(open.count() <= 32);
}

#[test]
fn a_handshake_that_does_not_end_is_given_up() {
    let a = Node::with(secure(&[], &of(&Party::authority("ca"))), identity(1));
    let silent = a.call();
    let mut begun = a.call();
    begun.write_all(&[0x16, 3, 1, 2, 0]).unwrap();
    let text = a.wait_rejected(RejectReason::Timeout);
    assert!(text.contains("500 ms"), "{text}");
    assert_eq!((read_out(silent), read_out(begun)), (vec![], vec![]));
}

#[test]
fn a_peer_that_proves_nothing_hears_nothing() {
    let a = Node::with(secure(&[], &of(&Party::authority("ca"))), identity(1));
    for said in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\x16\x03\x01\x00\x05hello",
        b"\x80\x00\x00",
    ] {
        let mut stream = a.call();
        stream.write_all(said).unwrap();
        let answer = read_out(stream);
        // A TLS alert at most.
        assert!(
            answer.is_empty() || answer.len() == 7 && answer[0] == 0x15,
            "{answer:02x?}"
        );
    }
    // Plain TCP is told that this is TLS, not the cluster's name.
    let mut stream = a.call();
    stream.write_all(&PREAMBLE).unwrap();
    assert_eq!(read_out(stream), [0x15, 3, 3, 0, 2, 2, 40]);
}

#[test]
fn an_isolated_node_takes_no_proven_peers() {
    let (a, b) = meshed(&of(&Party::authority("ca")));
    a.lock().mesh.set_isolated(true);
    b.wait_down(a.id);
    std::thread::sleep(Duration::from_millis(300));
    assert!(a.linked().is_empty() && b.linked().is_empty());
    a.lock().mesh.set_isolated(false);
    wait_meshed(&[&a, &b]);
}
