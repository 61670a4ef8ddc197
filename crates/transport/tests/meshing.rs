//! Finding each other, staying together, coming back: real sockets on the loopback.

mod common;

use std::time::{Duration, Instant};

use bytes::Bytes;
use common::*;
use trireme_transport::testing::free_port;
use trireme_transport::*;

fn is_down(event: &MeshEvent) -> bool {
    matches!(event, MeshEvent::PeerDown { .. })
}

#[test]
fn three_nodes_mesh_through_one_seed_and_exchange_frames() {
    let a = Node::start(1, &[]);
    let b = Node::start(2, &[&a.address]);
    let c = Node::start(3, &[&a.address]);
    wait_meshed(&[&a, &b, &c]);
    assert_eq!(b.send(c.id, b"b to c"), SendOutcome::Queued);
    assert_eq!(c.wait_frame(b.id), b"b to c");
    // A body of many reads, broadcast without a copy, arrives behind its head.
    let body = Bytes::from((0..3_000_000u32).map(|i| (i * 7) as u8).collect::<Vec<_>>());
    let frame = Frame::new(b"head", Some(body.clone())).unwrap();
    for peer in [a.id, b.id] {
        assert_eq!(c.lock().mesh.send(peer, frame.clone()), SendOutcome::Queued);
    }
    c.lock().mesh.flush();
    for node in [&a, &b] {
        assert!(node.wait_frame(c.id) == [b"head", &body[..]].concat());
    }
    assert_eq!(a.send([9; 16], b""), SendOutcome::NotConnected);
    assert_eq!(a.lock().mesh.peer(c.id).unwrap().name, "node3");
    let infos: Vec<PeerInfo> = a.lock().mesh.peers().cloned().collect();
    assert_eq!(
        (
            infos[0].name.as_str(),
            &infos[0].extra[..],
            infos[0].version
        ),
        ("node2", &[2][..], 1)
    );
    assert_eq!(infos[0].listen_addr, b.address.to_string());
}

/// Each event takes more room than such a frame: a peer must not make a million of them at once.
#[test]
fn tiny_frames_come_in_turns_and_in_order() {
    let (a, b) = meshed(&Security::default());
    let count = 20_000u32;
    for number in 0..count {
        let frame = Frame::new(&number.to_le_bytes(), None).unwrap();
        assert_eq!(a.lock().mesh.send(b.id, frame), SendOutcome::Queued);
    }
    a.lock().mesh.flush();
    for number in 0..count {
        assert_eq!(b.wait_frame(a.id), number.to_le_bytes());
    }
    let most = b.lock().most_at_once;
    // A turn may read a connection twice.
    assert!(most <= 2_010, "{most}");
}

#[test]
fn nodes_that_list_everybody_and_strangers_settle_on_one_connection_per_pair() {
    // Ports are fixed first, so that all can list all, themselves included.
    let ports: Vec<HostPort> = (0..4).map(|_| local(free_port())).collect();
    let nobody = local(1);
    let unknown = HostPort::parse("no..such..host:4567", None).unwrap(); // fails without a DNS server
    let nodes: Vec<Node> = (0..4)
        .map(|i| {
            let mut seeds: Vec<&HostPort> = ports.iter().collect();
            seeds.extend([&nobody, &unknown]);
            let mut config = config(&seeds);
            config.listen = ports[i].clone();
            let mut identity = identity(i as u8 + 1);
            identity.listen_addr = ports[i].to_string();
            Node::with(config, identity)
        })
        .collect();
    wait_meshed(&nodes.iter().collect::<Vec<_>>());
    std::thread::sleep(Duration::from_millis(300));
    for node in &nodes {
        assert_eq!(node.linked().len(), 3);
        assert_eq!(
            node.count(is_down),
            0,
            "calls that cross must not break what stands"
        );
        assert_eq!(
            node.count(|e| matches!(e, MeshEvent::Rejected { .. })),
            0,
            "nothing to complain of"
        );
        for peer in node.linked() {
            assert_eq!(node.send(peer, &node.id), SendOutcome::Queued);
        }
    }
    for node in &nodes {
        for peer in nodes.iter().filter(|peer| peer.id != node.id) {
            wait_until("frame from everybody", || {
                node.count(|e| matches!(e, MeshEvent::Frame { from, .. } if *from == peer.id)) == 1
            });
        }
    }
}

#[test]
fn simultaneous_calls_end_in_exactly_one_connection() {
    for _ in 0..20 {
        let (a, b) = (Node::start(1, &[]), Node::start(2, &[]));
        a.lock().mesh.add_seed(b.address.clone());
        b.lock().mesh.add_seed(a.address.clone());
        wait_meshed(&[&a, &b]);
        assert_eq!(a.send(b.id, b"x"), SendOutcome::Queued);
        assert_eq!(b.send(a.id, b"y"), SendOutcome::Queued);
        assert_eq!(
            (a.wait_frame(b.id), b.wait_frame(a.id)),
            (b"y".to_vec(), b"x".to_vec())
        );
        assert_eq!(a.count(is_down) + b.count(is_down), 0);
    }
}

#[test]
fn the_own_address_is_recognised_and_not_called_in_vain() {
    let mut alone = config(&[]);
    alone.listen = local(free_port());
    alone.seeds = vec![alone.listen.clone()];
    let slow_ms = alone.retry_slow_ms;
    let named = HostPort {
        host: "localhost".to_owned(),
        port: alone.listen.port,
    };
    let a = Node::with(alone, identity(1));
    wait_until("nothing left to do", || {
        a.lock().mesh.next_deadline_ms().is_none()
    });
    // A name may stand for others later.
    a.lock().mesh.add_seed(named);
    wait_until("the name is called at the slow pace", || {
        let deadline_ms = a.lock().mesh.next_deadline_ms();
        deadline_ms.is_some_and(|deadline_ms| deadline_ms >= slow_ms)
    });
    assert_eq!(a.lock().mesh.listed(), (vec![a.id; 2], vec![]));
    assert!(a.linked().is_empty() && a.lock().events.is_empty());
}

#[test]
fn names_are_resolved() {
    let a = Node::start(1, &[]);
    let named = HostPort {
        host: "localhost".to_owned(),
        port: a.address.port,
    };
    let b = Node::start(2, &[&named]);
    wait_meshed(&[&a, &b]);
}

#[test]
fn ipv6_and_the_any_address() {
    let mut first = config(&[]);
    first.listen = HostPort::parse("tcp://[::]:0", None).unwrap();
    let mut any = identity(1);
    any.listen_addr = "[::]:0".to_owned();
    let Ok(probe) = std::net::TcpListener::bind("[::1]:0") else {
        return;
    }; // a machine without IPv6
    drop(probe);
    let a = Node::with(first, any);
    let b = Node::start(
        2,
        &[&HostPort {
            host: "::1".to_owned(),
            port: a.address.port,
        }],
    );
    let c = Node::start(3, &[&local(a.address.port)]);
    wait_meshed(&[&a, &b, &c]);
    let seen = c
        .lock()
        .mesh
        .peers()
        .find(|p| p.incarnation == a.id)
        .cloned()
        .unwrap();
    assert_eq!(
        seen.listen_addr,
        local(a.address.port).to_string(),
        "unspecified: the address that is seen"
    );
}

#[test]
fn isolation_is_a_partition_and_heals() {
    let a = Node::start(1, &[]);
    let b = Node::start(2, &[&a.address]);
    let c = Node::start(3, &[&a.address]);
    wait_meshed(&[&a, &b, &c]);
    a.lock().mesh.set_isolated(true);
    assert!(matches!(
        b.wait_down(a.id),
        DownReason::Closed | DownReason::Io(_)
    ));
    c.wait_down(a.id);
    assert_eq!(a.wait_down(b.id), DownReason::Isolated);
    assert_eq!(a.send(b.id, b""), SendOutcome::NotConnected);
    b.lock().mesh.set_isolated(true);
    wait_until("c alone", || c.linked().is_empty());
    std::thread::sleep(Duration::from_millis(300));
    assert!(a.linked().is_empty() && c.linked().is_empty());
    let refused = |e: &MeshEvent| matches!(e, MeshEvent::Refused { .. });
    assert_eq!(
        b.count(refused) + c.count(refused),
        0,
        "an isolated process is not dead"
    );
    a.lock().mesh.set_isolated(false);
    wait_until("a back", || a.linked() == [c.id]);
    b.lock().mesh.set_isolated(false);
    wait_meshed(&[&a, &b, &c]);
}

#[test]
fn an_isolated_node_does_not_call_a_name_that_was_just_looked_up() {
    let b = Node::start(2, &[]);
    let named = HostPort {
        host: "localhost".to_owned(),
        port: b.address.port,
    };
    let (mut mesh, mut poller) = Mesh::bind(config(&[&named]), identity(1)).unwrap();
    let (start, mut ready, mut events) = (Instant::now(), Ready::default(), Vec::new());
    let mut links_within_a_second = |mesh: &mut Mesh| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(1) {
            poller
                .wait(Some(Duration::from_millis(5)), &mut ready)
                .unwrap();
            let now_ms = start.elapsed().as_millis() as u64;
            mesh.handle_ready(&mut ready, now_ms, &mut events);
            mesh.tick(now_ms, &mut events);
            let mut events = events.iter();
            if events.any(|event| matches!(event, MeshEvent::PeerUp { .. })) {
                return true;
            }
        }
        false
    };
    mesh.tick(0, &mut Vec::new()); // requests the look-up
    mesh.set_isolated(true);
    assert!(!links_within_a_second(&mut mesh), "isolated");
    mesh.set_isolated(false);
    assert!(links_within_a_second(&mut mesh), "the name is called again");
}

#[test]
fn a_killed_process_is_refused_and_comes_back_with_a_new_incarnation() {
    let a = Node::start(1, &[]);
    let b = Node::start(2, &[&a.address]);
    wait_meshed(&[&a, &b]);
    // Refusal proves death only where this node has reached the peer by a call of its own; that
    // happens at once for peers that called.
    std::thread::sleep(Duration::from_millis(300));
    let (old, address) = (b.id, b.address.clone());
    b.kill();
    assert!(matches!(
        a.wait_down(old),
        DownReason::Closed | DownReason::Io(_)
    ));
    let refused = a.wait_for("refusal", |e| matches!(e, MeshEvent::Refused { .. }));
    let replica = identity(2).replica;
    assert_eq!(
        refused,
        MeshEvent::Refused {
            address: address.to_string(),
            peer: Some((old, replica))
        }
    );
    let mut config = config(&[]);
    config.listen = address.clone();
    let mut again = identity(2);
    again.incarnation = [22; 16];
    again.listen_addr = address.to_string();
    let b = Node::with(config, again);
    wait_until("found again, without a seed of its own", || {
        a.linked() == [b.id]
    });
}

#[test]
fn two_incarnations_of_one_replica_are_both_told() {
    let a = Node::start(1, &[]);
    let b = Node::start(2, &[&a.address]);
    wait_meshed(&[&a, &b]);
    let mut copy = identity(2);
    copy.incarnation = [3; 16];
    let c = Node::with(config(&[&a.address]), copy);
    let up = a.wait_for(
        "copy",
        |e| matches!(e, MeshEvent::PeerUp { info, .. } if info.incarnation == c.id),
    );
    assert!(matches!(up, MeshEvent::PeerUp { same_replica: Some(other), .. } if other == b.id));
    a.lock()
        .mesh
        .disconnect_peer(c.id, Some("copied data directory"));
    let text = c.wait_rejected(RejectReason::Application);
    assert!(
        text.contains("copied data directory") && text.contains(&a.address.to_string()),
        "{text}"
    );
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(a.linked(), [b.id]);
}

#[test]
fn a_disconnected_peer_reconnects() {
    let a = Node::start(1, &[]);
    let b = Node::start(2, &[&a.address]);
    for _ in 0..3 {
        wait_meshed(&[&a, &b]);
        a.lock().mesh.disconnect_peer(b.id, None);
        a.wait_down(b.id);
        b.wait_down(a.id);
    }
    wait_meshed(&[&a, &b]);
}

#[test]
fn a_full_queue_overflows_once_and_drains() {
    let mut small = config(&[]);
    small.queue_limit_bytes = 1 << 20;
    let a = Node::with(small, identity(1));
    let b = Node::start(2, &[&a.address]);
    wait_meshed(&[&a, &b]);
    let frame = |i: u32| Frame::new(&i.to_le_bytes(), Some(Bytes::from(vec![1; 100_000]))).unwrap();
    let mut queued = 0;
    {
        let _paused = b.lock(); // b's reactor reads nothing
        loop {
            let mut core = a.lock();
            match core.mesh.send(b.id, frame(queued)) {
                SendOutcome::Queued => queued += 1,
                outcome => {
                    assert_eq!(outcome, SendOutcome::Overflow);
                    break;
                }
            }
            core.mesh.flush();
            assert!(queued < 10_000);
        }
        let mut core = a.lock();
        assert!(core.mesh.queued_bytes(b.id) <= 1 << 20);
        assert_eq!(
            core.mesh.send(b.id, Frame::new(b"small", None).unwrap()),
            SendOutcome::Overflow
        );
    }
    a.wait_for("drained", |e| matches!(e, MeshEvent::Drained { .. }));
    assert_eq!(a.send(b.id, b"after the gap"), SendOutcome::Queued);
    for i in 0..queued {
        assert_eq!(b.wait_frame(a.id)[..4], i.to_le_bytes());
    }
    assert_eq!(b.wait_frame(a.id), b"after the gap");
    let down = |e: &MeshEvent| matches!(e, MeshEvent::PeerDown { .. });
    assert_eq!(a.count(down), 0);
}

#[test]
fn closing_sends_what_is_queued() {
    let a = Node::start(1, &[]);
    let b = Node::start(2, &[&a.address]);
    wait_meshed(&[&a, &b]);
    let mut core = b.lock();
    assert_eq!(
        core.mesh.send(a.id, Frame::new(b"leave", None).unwrap()),
        SendOutcome::Queued
    );
    core.mesh.close();
    assert_eq!(
        core.mesh.send(a.id, Frame::new(b"", None).unwrap()),
        SendOutcome::NotConnected
    );
    drop(core);
    assert_eq!(a.wait_frame(b.id), b"leave");
    assert_eq!(a.wait_down(b.id), DownReason::Closed);
}
