//! Two sides on a pair of sockets.

mod common;

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;

use common::{shake, verdict};
use proptest::prelude::*;
use trireme_tls::testing::{NOW, Party};
use trireme_tls::{Credentials, Failure, Handshake, Progress, Role, Session};

fn pair() -> (Session<UnixStream>, Session<UnixStream>) {
    let ca = Party::authority("ca");
    let node = ca.issue("node", NOW).credentials(&ca);
    let (near, far) = shake(&node, &node);
    (near.unwrap(), far.unwrap())
}

/// Steps one side until it fails; the other is no node of ours.
fn failure(mut handshake: Handshake<UnixStream>) -> Failure {
    loop {
        match handshake.step() {
            Ok(Progress::Waiting(waiting)) => handshake = waiting,
            Ok(Progress::Done(_)) => panic!("a session with a peer that does not do"),
            Err(failure) => return failure,
        }
    }
}

#[test]
fn both_sides_present_what_the_other_trusts() {
    let (near, far) = pair();
    for side in [near.describe(), far.describe()] {
        assert!(
            side.starts_with("TLS 1.3 TLS_AES_128_GCM_SHA256, certificate CN=node with SHA-256 "),
            "{side}"
        );
    }
}

#[test]
fn a_foreign_authority_is_named_on_both_sides() {
    let (ca, other) = (Party::authority("ca"), Party::authority("other"));
    let good = ca.issue("good", NOW).credentials(&ca);
    // Who calls is a stranger, but trusts those who are called.
    let stranger = other.issue("stranger", NOW).credentials(&ca);
    let (acceptor, dialer) = shake(&good, &stranger);
    let text = acceptor.unwrap_err().to_string();
    assert!(
        text.contains("CN=stranger") && text.contains("socket.ssl_ca here"),
        "{text}"
    );
    let text = verdict(dialer).to_string();
    assert!(
        text.contains("unknown ca") && text.contains("socket.ssl_cert here"),
        "{text}"
    );
    // Who is called is one.
    let (acceptor, dialer) = shake(&stranger, &good);
    let text = dialer.unwrap_err().to_string();
    assert!(
        text.contains("CN=stranger") && text.contains("socket.ssl_ca here"),
        "{text}"
    );
    assert!(matches!(acceptor.unwrap_err(), Failure::Alert { .. }));
}

#[test]
fn certificates_that_are_out_of_date_are_named() {
    let ca = Party::authority("ca");
    let dir = tempfile::tempdir().unwrap();
    for (days, wanted) in [((-9, -2), "expired on"), ((2, 9), "not valid before")] {
        let error =
            Credentials::read(&ca.issue("late", days).files(&ca, dir.path(), "late")).unwrap_err();
        assert!(
            error.to_string().contains(wanted) && error.to_string().contains("late.pem"),
            "{error}"
        );
    }
}

#[test]
fn an_authority_may_be_a_node_and_so_may_version_1() {
    let ca = Party::authority("ca");
    let dir = tempfile::tempdir().unwrap();
    let mut itself = ca.files(&ca, dir.path(), "ca");
    itself.ca.clear(); // socket.ssl_ca is socket.ssl_cert then
    itself.cipher = "AES256-SHA".to_owned();
    let itself = Credentials::read(&itself).unwrap();
    let old = ca.issue_v1("old").credentials(&ca);
    for (a, b) in [
        (&itself, &itself),
        (&itself, &old),
        (&old, &itself),
        (&old, &old),
    ] {
        let (near, far) = shake(a, b);
        near.unwrap();
        far.unwrap();
    }
}

#[test]
fn no_certificate_no_session() {
    use openssl::ssl::{SslConnector, SslMethod, SslVerifyMode};
    let ca = Party::authority("ca");
    let node = ca.issue("node", NOW).credentials(&ca);
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let client = std::thread::spawn(move || {
        let mut connector = SslConnector::builder(SslMethod::tls()).unwrap();
        connector.set_verify(SslVerifyMode::NONE);
        let stream = connector.build().connect("node", far);
        stream.map(|mut stream| stream.read(&mut [0]).map_err(|e| e.to_string()))
    });
    let failure = failure(Handshake::new(&node, Role::Acceptor, near).unwrap());
    assert!(
        failure.to_string().contains("presents no certificate"),
        "{failure}"
    );
    let heard = client.join().unwrap().unwrap();
    assert!(heard.unwrap_err().contains("certificate required"));
}

#[test]
fn an_older_version_is_refused() {
    use openssl::ssl::{SslConnector, SslMethod, SslVerifyMode, SslVersion};
    let ca = Party::authority("ca");
    let node = ca.issue("node", NOW).credentials(&ca);
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let client = std::thread::spawn(move || {
        let mut connector = SslConnector::builder(SslMethod::tls()).unwrap();
        connector.set_verify(SslVerifyMode::NONE);
        connector
            .set_max_proto_version(Some(SslVersion::TLS1_2))
            .unwrap();
        connector.build().connect("node", far).is_ok()
    });
    let failure = failure(Handshake::new(&node, Role::Acceptor, near).unwrap());
    assert_eq!(failure, Failure::NotTls);
    assert!(!client.join().unwrap());
}

#[test]
fn what_is_no_tls_is_told_apart() {
    let ca = Party::authority("ca");
    let node = ca.issue("node", NOW).credentials(&ca);
    for role in [Role::Acceptor, Role::Dialer] {
        for (bytes, wanted) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], Failure::NotTls),
            (b"TRIREME\x01 and so on and on", Failure::NotTls),
            (b"", Failure::Closed),
        ] {
            let (near, mut far) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            far.write_all(bytes).unwrap();
            far.shutdown(std::net::Shutdown::Write).unwrap();
            let handshake = Handshake::new(&node, role, near).unwrap();
            assert_eq!(handshake.step().unwrap_err(), wanted, "{role:?} {bytes:?}");
        }
    }
}

#[test]
fn a_full_socket_keeps_nobody_waiting_and_loses_nothing() {
    let (mut near, mut far) = pair();
    let sent: Vec<u8> = (0..3 << 20).map(|i: u32| (i / 7) as u8).collect();
    let (mut at, mut received) = (0, Vec::new());
    let mut room = vec![0; 50_000];
    let mut was_full = false;
    while received.len() < sent.len() {
        // Written until the socket is full, which it soon is.
        while at < sent.len() {
            match near.write_vectored(&[IoSlice::new(&sent[at..])], usize::MAX) {
                Ok(written) => at += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    was_full = true;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        near.send().unwrap();
        far.readable(false);
        while let Ok(len) = far.read(&mut room) {
            assert!(len > 0);
            received.extend_from_slice(&room[..len]);
        }
        assert!(far.is_emptied());
    }
    assert!(was_full && !near.has_unsent() && received == sent);
}

#[test]
fn an_end_comes_behind_what_was_sent() {
    let (mut near, mut far) = pair();
    near.write_vectored(&[IoSlice::new(b"last words")], usize::MAX)
        .unwrap();
    near.finish();
    far.readable(false);
    let mut room = [0; 100];
    assert_eq!(far.read(&mut room).unwrap(), 10);
    assert_eq!(far.read(&mut room).unwrap(), 0);
    // Without a word of farewell, too.
    let (near, mut far) = pair();
    drop(near);
    far.readable(false);
    assert_eq!(far.read(&mut room).unwrap(), 0);
}

#[test]
fn a_write_takes_no_more_than_its_limit() {
    let (mut near, _far) = pair();
    let large = vec![0; 1 << 20];
    let mut write = |limit| near.write_vectored(&[IoSlice::new(&large)], limit).unwrap();
    assert_eq!((write(usize::MAX), write(20_000)), (64 << 10, 20_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_pieces_arrive_as_one_stream(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40_000), 0..8),
        limit in 1usize..70_000,
    ) {
        let (mut near, mut far) = pair();
        let sent = pieces.concat();
        let mut received = Vec::new();
        let (mut at, mut room) = (0, vec![0; 10_000]);
        while received.len() < sent.len() {
            // The pieces, without what has been taken.
            let (mut skip, mut left) = (at, Vec::new());
            for piece in &pieces {
                let cut = skip.min(piece.len());
                skip -= cut;
                left.push(IoSlice::new(&piece[cut..]));
            }
            if at < sent.len() {
                match near.write_vectored(&left, limit) {
                    Ok(written) => {
                        prop_assert!(written > 0 && written <= limit);
                        at += written;
                    }
                    Err(error) => prop_assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
            near.send().unwrap();
            far.readable(false);
            while let Ok(len) = far.read(&mut room) {
                received.extend_from_slice(&room[..len]);
            }
        }
        prop_assert_eq!(received, sent);
    }
}

#[test]
fn both_sides_of_a_session_know_what_binds_to_it_and_no_other_does() {
    let (near, far) = pair();
    let ((near_role, near), (far_role, far)) = (near.binding().unwrap(), far.binding().unwrap());
    assert_eq!((near_role, far_role), (Role::Acceptor, Role::Dialer));
    assert_eq!(near, far);
    let (other, _other) = pair();
    assert_ne!(other.binding().unwrap().1, near);
}
