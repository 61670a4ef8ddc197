//! Peers that are admitted, and are not who they say they are.

mod common;

use std::net::TcpListener;
use std::time::Duration;

use common::stranger::{Stranger, identity_of, key};
use common::*;
use trireme_tls::testing::{self, NOW, Party};
use trireme_tls::{Credentials, Role, replica_of};
use trireme_transport::*;

const SECRET: &str = "the shared secret of this cluster";

fn admitted() -> (Security, Credentials) {
    let credentials = testing::secret(SECRET);
    (Security::new(credentials.clone(), true, false), credentials)
}

/// A node with a key that its replica id is of.
fn node(seeds: &[&HostPort], security: &Security, seed: u8, incarnation: u8) -> Node {
    let mut config = secure(seeds, security);
    config.key = Some(key(seed));
    Node::with(config, identity(seed, incarnation))
}

fn identity(seed: u8, incarnation: u8) -> Identity {
    Identity {
        listen_addr: "127.0.0.1:0".to_owned(),
        ..identity_of(seed, incarnation)
    }
}

fn is_up(event: &MeshEvent) -> bool {
    matches!(event, MeshEvent::PeerUp { .. })
}

#[test]
fn peers_know_each_other_by_proven_keys() {
    let ca = Party::authority("ca");
    let of = |name| Security::new(ca.issue(name, NOW).credentials(&ca), true, false);
    let a = node(&[], &of("a"), 1, 1);
    let b = node(&[&a.address], &of("b"), 2, 2);
    wait_meshed(&[&a, &b]);
    let key_of = |at: &Node, id| at.lock().mesh.peer(id).and_then(|peer| peer.key);
    assert_eq!(key_of(&a, b.id), Some(*key(2).public()));
    assert_eq!(key_of(&b, a.id), Some(*key(1).public()));
    // Another certificate is the same node.
    b.lock().mesh.set_security(of("renewed"));
    b.lock().mesh.disconnect_peer(a.id, None);
    a.wait_down(b.id);
    wait_meshed(&[&a, &b]);
    assert_eq!(key_of(&a, b.id), Some(*key(2).public()));
}

#[test]
fn a_certificate_does_not_make_anybody_another_replica() {
    let ca = Party::authority("ca");
    let security = Security::new(ca.issue("node", NOW).credentials(&ca), true, false);
    let a = node(&[], &security, 1, 1);
    let mut thief = secure(&[&a.address], &security);
    thief.key = Some(key(3));
    let b = Node::with(thief, identity(2, 2));
    for node in [&a, &b] {
        let text = node.wait_rejected(RejectReason::Identity);
        assert!(text.contains("is that of another key"), "{text}");
    }
    assert!(a.linked().is_empty() && b.linked().is_empty());
    assert_eq!(a.count(is_up) + b.count(is_up), 0);
}

#[test]
fn a_recorded_hello_is_worth_nothing() {
    let (security, credentials) = admitted();
    let a = node(&[], &security, 1, 1);
    let b = node(&[], &security, 2, 2);
    // One that is admitted has heard b's Hello on a connection of its own.
    let mut to_b = Stranger::call(&b, &credentials);
    to_b.introduce(&identity_of(9, 9), &key(9));
    let (kind, recorded) = to_b.hear().unwrap();
    assert_eq!(kind, FrameKind::Hello as u8);
    assert!(Hello::decode(&recorded).unwrap().proof.is_some());
    let mut to_a = Stranger::call(&a, &credentials);
    to_a.say(kind, &recorded).unwrap();
    let refusal = to_a.hear_refusal();
    assert_eq!(refusal.code, RefusalCode::Identity);
    assert!(refusal.text.contains("not of this connection"));
    assert!(!refusal.text.contains("cluster"), "{}", refusal.text);
    assert_eq!(a.count(is_up), 0);
}

#[test]
fn a_hello_that_is_sent_back_is_worth_nothing() {
    let (security, credentials) = admitted();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = HostPort::from(listener.local_addr().unwrap());
    let a = node(&[&address], &security, 1, 1);
    let (tcp, _) = listener.accept().unwrap();
    let mut stranger = Stranger::meet(tcp, Role::Acceptor, &credentials);
    let (kind, said) = stranger.hear().unwrap();
    stranger.say(kind, &said).unwrap();
    let refusal = stranger.hear_refusal();
    assert_eq!(refusal.code, RefusalCode::Identity);
    assert_eq!(a.count(is_up), 0);
}

#[test]
fn who_proves_nothing_learns_nothing() {
    let (security, credentials) = admitted();
    let a = node(&[], &security, 1, 1);
    let mut stranger = Stranger::call(&a, &credentials);
    let hello = Hello {
        proof: None,
        ..stranger.hello(&identity_of(9, 9), &key(9))
    };
    stranger
        .say(FrameKind::Hello as u8, &hello.encode())
        .unwrap();
    let (kind, payload) = stranger.hear().unwrap();
    assert_eq!(kind, FrameKind::Refuse as u8, "no Hello comes first");
    let refusal = Refusal::decode(&payload).unwrap();
    assert_eq!(refusal.code, RefusalCode::Identity);
    assert!(refusal.text.contains("proves no identity"));
    assert!(!refusal.text.contains("cluster"), "{}", refusal.text);
}

#[test]
fn a_link_is_replaced_by_the_same_key_only() {
    let (security, credentials) = admitted();
    let a = node(&[], &security, 1, 1);
    let join = |seed| {
        let mut stranger = Stranger::call(&a, &credentials);
        stranger.introduce(&identity_of(seed, 9), &key(seed));
        stranger
    };
    let up = |stranger: &mut Stranger| {
        stranger.say(FrameKind::State as u8, &[0]).unwrap();
        a.wait_for("up", is_up);
    };
    let mut first = join(2);
    up(&mut first);
    std::thread::sleep(Duration::from_millis(1_100)); // later it is no crossing of calls
    let refusal = join(3).hear_refusal();
    assert_eq!(refusal.code, RefusalCode::Identity);
    first.say(FrameKind::Data as u8, b"still here").unwrap();
    assert_eq!(a.wait_frame([9; 16]), b"still here");
    let mut second = join(2);
    up(&mut second);
    assert!(first.hear_raw(1 << 20).len() < 1 << 20, "it has ended");
    second.say(FrameKind::Data as u8, b"the same").unwrap();
    assert_eq!(a.wait_frame([9; 16]), b"the same");
}

/// A replica that claims to be process 9, which another one is. `is_linked`: the claim becomes a link, which the layer
/// above refuses. Its closed port must not count as the death of the real one when that one's link breaks.
fn claims_to_be_another(is_linked: bool) {
    let (security, credentials) = admitted();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = HostPort::from(listener.local_addr().unwrap());
    let a = node(&[&address], &security, 1, 1);
    let (tcp, _) = listener.accept().unwrap();
    let mut thief = Stranger::meet(tcp, Role::Acceptor, &credentials);
    assert_eq!(thief.hear().unwrap().0, FrameKind::Hello as u8);
    thief.introduce(&identity_of(3, 9), &key(3));
    if is_linked {
        thief.say(FrameKind::State as u8, &[0]).unwrap();
        a.wait_for("the thief", is_up);
        a.lock().mesh.disconnect_peer([9; 16], Some("another"));
        a.wait_down([9; 16]);
    } else {
        let is_heard = |e: &MeshEvent| matches!(e, MeshEvent::Rejected { .. });
        drop(thief);
        a.wait_for("the end of the call", is_heard);
    }
    drop(listener);

    let mut real = Stranger::call(&a, &credentials);
    real.introduce(&identity_of(2, 9), &key(2));
    real.say(FrameKind::State as u8, &[0]).unwrap();
    a.wait_for("the real one", is_up);
    std::thread::sleep(Duration::from_millis(1_100)); // later its addresses are called at once
    drop(real);
    a.wait_down([9; 16]);
    std::thread::sleep(Duration::from_millis(300));
    let is_dead = |event: &MeshEvent| matches!(event, MeshEvent::Refused { peer: Some(_), .. });
    assert_eq!(a.count(is_dead), 0);
}

#[test]
fn an_answer_without_a_link_is_no_proof_of_who_listens_there() {
    claims_to_be_another(false);
}

#[test]
fn a_refused_link_is_no_proof_of_who_listens_there() {
    claims_to_be_another(true);
}

/// Data directories from before keys keep their ids.
#[test]
fn an_old_replica_id_stays_with_the_key_that_came_with_it_first() {
    let (security, _) = admitted();
    let old = |seed, incarnation, replica: u8| {
        let mut id = identity(seed, incarnation);
        id.replica = [replica; 16];
        id
    };
    let with = |seeds: &[&HostPort], seed, identity| {
        let mut config = secure(seeds, &security);
        config.key = Some(key(seed));
        Node::with(config, identity)
    };
    let a = with(&[], 1, old(1, 1, 1));
    let b = with(&[&a.address], 2, old(2, 2, 2));
    wait_meshed(&[&a, &b]);
    drop(b);
    a.wait_down([2; 16]);
    // The same one comes back, as another process.
    let b = with(&[&a.address], 2, old(2, 3, 2));
    wait_meshed(&[&a, &b]);
    drop(b);
    a.wait_down([3; 16]);
    for (seed, replica) in [(5, 2), (6, 1)] {
        let c = with(&[&a.address], seed, old(seed, seed, replica));
        let text = c.wait_rejected(RejectReason::Identity);
        assert!(text.contains("is that of another key"), "{text}");
        assert!(c.linked().is_empty());
    }
}

/// What they do then is decided above (rule 14).
#[test]
fn a_copied_data_directory_is_the_same_replica_twice() {
    let (security, _) = admitted();
    let a = node(&[], &security, 1, 1);
    let b = node(&[&a.address], &security, 2, 2);
    wait_meshed(&[&a, &b]);
    let _copy = node(&[&a.address], &security, 2, 3);
    let found = a.wait_for(
        "the copy",
        |event| matches!(event, MeshEvent::PeerUp { info, .. } if info.incarnation == [3; 16]),
    );
    let MeshEvent::PeerUp { info, same_replica } = found else {
        unreachable!();
    };
    assert_eq!(info.replica, replica_of(key(2).public()));
    assert_eq!(same_replica, Some(b.id));
}
