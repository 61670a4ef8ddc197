//! Meshes with a shared secret: among themselves, and with those in the middle or outside who do not have it.

mod common;

use std::io::Write;
use std::time::Duration;

use common::*;
use trireme_tls::testing::{self, NOW, Party};
use trireme_transport::testing::in_the_middle;
use trireme_transport::*;

const OLD: &str = "the old secret of this cluster, 32+";
const NEW: &str = "the new secret of this cluster, 32+";

fn of(lines: &str) -> Security {
    Security::new(testing::secret(lines), true, false)
}

/// While a cluster goes over to the secret.
fn and_plain(lines: &str) -> Security {
    Security::new(testing::secret(lines), true, true)
}

fn is_down(event: &MeshEvent) -> bool {
    matches!(event, MeshEvent::PeerDown { .. })
}

#[test]
fn nodes_mesh_and_speak_encrypted() {
    let security = of(OLD);
    let a = Node::with(secure(&[], &security), identity(1));
    let b = Node::with(secure(&[&a.address], &security), identity(2));
    let c = Node::with(secure(&[&b.address], &security), identity(3));
    wait_meshed(&[&a, &b, &c]);
    for node in [&a, &b, &c] {
        assert_eq!(node.lock().mesh.plaintext_links(), 0);
        for peer in node.lock().mesh.peers() {
            let how = &peer.protection;
            assert!(how.contains("shared secret"), "{how}");
        }
    }
    assert_eq!(a.send(b.id, b"to b"), SendOutcome::Queued);
    assert_eq!(b.wait_frame(a.id), b"to b");
    a.lock().mesh.disconnect_peer(b.id, None);
    b.wait_down(a.id);
    wait_meshed(&[&a, &b, &c]);
}

#[test]
fn another_secret_is_named_on_both_sides() {
    let a = Node::with(secure(&[], &of(OLD)), identity(1));
    let b = Node::with(secure(&[&a.address], &of(NEW)), identity(2));
    for node in [&a, &b] {
        let text = node.wait_rejected(RejectReason::Tls);
        assert!(text.contains("repl.secret_file"), "{text}");
    }
    assert!(a.linked().is_empty() && b.linked().is_empty());
}

#[test]
fn neither_certificates_nor_plaintext_take_the_place_of_the_secret() {
    let ca = Party::authority("ca");
    let certificate = Security::new(ca.issue("node", NOW).credentials(&ca), true, false);
    let a = Node::with(secure(&[], &of(OLD)), identity(1));
    let b = Node::with(secure(&[&a.address], &certificate), identity(2));
    for node in [&a, &b] {
        let text = node.wait_rejected(RejectReason::Tls);
        assert!(text.contains("repl.secret_file"), "{text}");
    }
    // One line a minute for each address and reason: another node tells of the next.
    let e = Node::with(secure(&[], &of(OLD)), identity(5));
    let c = Node::start(3, &[&e.address]);
    let text = e.wait_rejected(RejectReason::Tls);
    assert!(text.contains("does not encrypt"), "{text}");
    let text = c.wait_rejected(RejectReason::ForeignProtocol);
    assert!(text.contains("speaks TLS"), "{text}");
    // Who answers has a certificate, too.
    let d = Node::with(secure(&[&b.address], &of(OLD)), identity(4));
    let text = d.wait_rejected(RejectReason::Tls);
    assert!(text.contains("does not have the secret"), "{text}");
    let all = [&a, &b, &c, &d, &e];
    assert!(all.iter().all(|node| node.linked().is_empty()));
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn who_listens_in_the_middle_learns_nothing_and_replays_in_vain() {
    let a = Node::with(secure(&[], &of(OLD)), identity(1));
    let (middle, sessions) = in_the_middle(a.address.literal().unwrap(), |_, _, _| {});
    let b = Node::with(secure(&[&middle.into()], &of(OLD)), identity(2));
    wait_until("linked", || {
        !a.linked().is_empty() && !b.linked().is_empty()
    });
    assert_eq!(b.send(a.id, b"a word for a alone"), SendOutcome::Queued);
    a.wait_frame(b.id);
    let sessions = sessions.lock().unwrap().clone();
    let [called, answered] = [0, 1].map(|way: usize| {
        let said = sessions.iter().map(|session| &session[way][..]);
        said.collect::<Vec<_>>().concat()
    });
    for bytes in [&called, &answered] {
        assert!(bytes.len() > 200);
        for word in [&b"TRIREME"[..], b"cluster", b"node1", b"node2", b"a word"] {
            assert!(!contains(bytes, word), "{}", String::from_utf8_lossy(word));
        }
    }
    drop(b);
    wait_until("down", || a.linked().is_empty());
    // The whole session again, at once and in pieces.
    for piece in [called.len(), 700, 64] {
        let mut stream = a.call();
        for piece in called.chunks(piece) {
            if stream.write_all(piece).is_err() {
                break; // the node has had enough
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = stream.shutdown(std::net::Shutdown::Write); // as above
        let answer = read_out(stream);
        assert!(!contains(&answer, b"cluster"));
    }
    let is_up = |event: &MeshEvent| matches!(event, MeshEvent::PeerUp { .. });
    assert!(a.linked().is_empty());
    assert_eq!(a.count(is_up), 0, "beside the first, which was taken out");
}

#[test]
fn who_changes_a_bit_in_the_middle_breaks_the_connection() {
    // Byte 2000 of each direction is behind the handshake, within data.
    let a = Node::with(secure(&[], &of(OLD)), identity(1));
    let spoil = |_: usize, passed: usize, bytes: &mut [u8]| {
        if (passed..passed + bytes.len()).contains(&2_000) {
            bytes[2_000 - passed] ^= 1;
        }
    };
    let (middle, _) = in_the_middle(a.address.literal().unwrap(), spoil);
    let mut patient = secure(&[&middle.into()], &of(OLD));
    patient.retry_min_ms = 60_000; // what breaks is not made anew
    patient.retry_max_ms = 60_000;
    let b = Node::with(patient, identity(2));
    wait_until("linked", || {
        !a.linked().is_empty() && !b.linked().is_empty()
    });
    assert_eq!(b.send(a.id, &[7; 3_000]), SendOutcome::Queued);
    let reason = a.wait_down(b.id);
    assert!(matches!(reason, DownReason::Io(_)), "{reason:?}");
    let is_frame = |event: &MeshEvent| matches!(event, MeshEvent::Frame { .. });
    assert_eq!(a.count(is_frame), 0);
}

#[test]
fn a_caller_without_the_secret_hears_nothing() {
    let a = Node::with(secure(&[], &of(OLD)), identity(1));
    let mut stream = a.call();
    stream.write_all(&PREAMBLE).unwrap();
    assert_eq!(read_out(stream), [0x15, 3, 3, 0, 2, 2, 40]);
    for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\x00\x05hello"] {
        let mut stream = a.call();
        stream.write_all(said).unwrap();
        let answer = read_out(stream);
        let is_alert = answer.len() == 7 && answer[0] == 0x15;
        assert!(answer.is_empty() || is_alert, "{answer:02x?}");
    }
}

#[test]
fn a_secret_changes_while_the_cluster_runs() {
    let nodes: Vec<Node> = {
        let a = Node::with(secure(&[], &of(OLD)), identity(1));
        let b = Node::with(secure(&[&a.address], &of(OLD)), identity(2));
        let c = Node::with(secure(&[&a.address], &of(OLD)), identity(3));
        vec![a, b, c]
    };
    wait_meshed(&[&nodes[0], &nodes[1], &nodes[2]]);
    let (both, turned) = (format!("{OLD}\n{NEW}\n"), format!("{NEW}\n{OLD}\n"));
    for lines in [both.as_str(), turned.as_str(), NEW] {
        for node in &nodes {
            node.lock().mesh.set_security(of(lines));
            for (from, to) in [(0, 1), (1, 2), (2, 0)] {
                let outcome = nodes[from].send(nodes[to].id, b"meanwhile");
                assert_eq!(outcome, SendOutcome::Queued);
                nodes[to].wait_frame(nodes[from].id);
            }
            // A new link comes about at each moment of the change.
            let late = Node::with(secure(&[&nodes[0].address], &of(lines)), identity(9));
            wait_until("linked", || !late.linked().is_empty());
        }
    }
    // Some links are as old as the cluster, and none has broken but to those who came and went.
    for node in &nodes {
        let lost = node.count(|event| match event {
            MeshEvent::PeerDown { incarnation, .. } => *incarnation != [9; 16],
            _ => false,
        });
        assert_eq!(lost, 0);
    }
    let old = Node::with(secure(&[&nodes[0].address], &of(OLD)), identity(8));
    old.wait_rejected(RejectReason::Tls);
    assert!(old.linked().is_empty());
}

#[test]
fn a_cluster_that_runs_goes_over_to_the_secret() {
    let a = Node::start(1, &[]);
    let b = Node::start(2, &[&a.address]);
    let c = Node::start(3, &[&a.address]);
    wait_meshed(&[&a, &b, &c]);
    for node in [&a, &b, &c] {
        node.lock().mesh.set_security(and_plain(OLD));
        assert_eq!(a.send(b.id, b"meanwhile"), SendOutcome::Queued);
        b.wait_frame(a.id);
    }
    assert!([&a, &b, &c].iter().all(|node| node.count(is_down) == 0));
    for node in [&a, &b, &c] {
        node.lock().mesh.set_security(of(OLD));
    }
    let plain = |node: &&Node| node.lock().mesh.plaintext_links();
    wait_until("no plain link", || {
        [&a, &b, &c].iter().map(plain).sum::<usize>() == 0
    });
    wait_meshed(&[&a, &b, &c]);
}
