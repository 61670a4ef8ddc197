//! A node joins a cluster whose control state is larger than a send queue (64 MiB): many write-sets with many keys each
//! are certified, and not all members have applied them.

mod common;

use std::time::{Duration, Instant};

use common::Node;
use trireme_certification::{KeySetBuilder, KeyType};
use trireme_group::Uuid;
use trireme_node::{Station, now_ms};
use trireme_replicator::{Event, Task, WriteSetDraft, flags};

const TIMEOUT: Duration = Duration::from_secs(60);
/// 8 bytes each, in the control state.
const KEYS: usize = 20_000;
const WRITE_SETS: u64 = 500;

/// As [`Node::turn`], with a server that applies no write-set.
fn turn(node: &mut Node) {
    node.turn();
    while let Some(work) = node.engine.replicator.take_work() {
        if matches!(work.task, Task::Apply(_)) {
            continue;
        }
        let done = Event::WorkDone {
            work: work.id,
            ok: true,
        };
        node.engine.node(now_ms(), done);
        node.pump();
    }
}

/// A client asks for the commit of a transaction that has changed many rows of its own.
fn certify(node: &mut Node, trx: u64) {
    let mut keys = KeySetBuilder::new();
    for row in 0..KEYS {
        let row = format!("{trx} {row}");
        keys.append(&[b"db", b"t", row.as_bytes()], KeyType::Exclusive);
    }
    let both = flags::TRX_START | flags::TRX_END;
    let draft = WriteSetDraft::new(both, trx, trx, &keys, &[b"x"]);
    let event = Event::Certify {
        ticket: trx,
        trx,
        conn: trx,
        draft,
    };
    node.engine.node(now_ms(), event);
    node.pump();
}

fn certified(node: &Node) -> u64 {
    node.engine.status().cert_index_size
}

fn until(nodes: &mut [&mut Node], what: &str, done: impl Fn(&[&mut Node]) -> bool) {
    let begin = Instant::now();
    while !done(nodes) {
        assert!(begin.elapsed() < TIMEOUT, "{what}");
        nodes.iter_mut().for_each(|node| turn(node));
    }
}

#[test]
#[ignore = "a minute: ten million keys"]
fn a_control_state_larger_than_a_send_queue_reaches_the_joiner() {
    let mut donor = Node::start("gcomm://", Some(Uuid([7; 16])));
    until(&mut [&mut donor], "the donor founds", |nodes| {
        nodes[0].engine.status().last_committed > 0
    });
    for trx in 1..=WRITE_SETS {
        certify(&mut donor, trx);
        turn(&mut donor);
    }
    let keys = WRITE_SETS * KEYS as u64;
    until(&mut [&mut donor], "all is certified", |nodes| {
        certified(nodes[0]) >= keys
    });
    let address = donor.line.mesh.local_addr();
    let mut joiner = Node::start(&format!("gcomm://{address}"), None);
    until(&mut [&mut donor, &mut joiner], "it arrives", |nodes| {
        certified(nodes[1]) >= keys
    });
}
