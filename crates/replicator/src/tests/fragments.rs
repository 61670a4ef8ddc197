//! Fragments of streaming transactions, for the tests of what becomes of them.

use trireme_certification::{KeySetBuilder, KeyType, Seqno};
use trireme_group::Fate;

use super::driver::*;
use crate::{Answer, Apply, Code, Event, Owner, Task, TrxId, WriteSetDraft, flags};

pub const FIRST: u32 = flags::TRX_START;
pub const MIDDLE: u32 = 0;
pub const LAST: u32 = flags::TRX_END | flags::PA_UNSAFE;
pub const ROLLBACK: u32 = flags::ROLLBACK | flags::PA_UNSAFE;
pub const DUMMY: u32 = flags::TRX_START | flags::TRX_END | flags::ROLLBACK;
pub const TRX: TrxId = 70;

/// Nodes whose appliers the test moves itself.
pub fn cluster_of(count: usize) -> Cluster {
    let mut cluster = Cluster::of(count);
    cluster.nodes.iter_mut().for_each(|node| node.threads = 0);
    cluster
}

/// Sends a fragment; the ticket of its certify().
pub fn send(cluster: &mut Cluster, node: usize, trx: TrxId, flags: u32, key: &str) -> u64 {
    let mut keys = KeySetBuilder::new();
    keys.append(&[b"db", b"t", key.as_bytes()], KeyType::Exclusive);
    let draft = WriteSetDraft::new(flags, trx, 1, &keys, &[key.as_bytes()]);
    let ticket = cluster.nodes[node].server.ticket();
    let certify = Event::Certify {
        ticket,
        trx,
        conn: 1,
        draft,
    };
    cluster.event(node, certify);
    ticket
}

pub fn answer(cluster: &mut Cluster, node: usize, ticket: u64) -> Option<Answer> {
    cluster.nodes[node].server.take(ticket)
}

pub fn deliver_all(cluster: &mut Cluster) {
    for node in 0..cluster.nodes.len() {
        while cluster.deliver(node) {}
    }
}

/// Sends a fragment and has it ordered.
pub fn certify(cluster: &mut Cluster, node: usize, flags: u32, key: &str) -> Answer {
    let ticket = send(cluster, node, TRX, flags, key);
    deliver_all(cluster);
    answer(cluster, node, ticket).expect("ordered")
}

pub fn enter(cluster: &mut Cluster, node: usize) -> Option<Answer> {
    let owner = Owner::Trx(TRX);
    cluster.call(node, |ticket| Event::CommitOrderEnter { ticket, owner })
}

pub fn leave(cluster: &mut Cluster, node: usize) {
    let owner = Owner::Trx(TRX);
    let leave = |ticket| Event::CommitOrderLeave {
        ticket,
        owner,
        error: None,
    };
    assert_eq!(cluster.call(node, leave).unwrap().code, Code::Ok);
}

pub fn release(cluster: &mut Cluster, node: usize) -> Answer {
    cluster
        .call(node, |ticket| Event::Release { ticket, trx: TRX })
        .unwrap()
}

pub fn rollback(cluster: &mut Cluster, node: usize) -> Code {
    let rollback = |ticket| Event::Rollback { ticket, trx: TRX };
    cluster.call(node, rollback).expect("at once").code
}

/// A fragment from certify() to release().
pub fn fragment(cluster: &mut Cluster, node: usize, flags: u32, key: &str) -> Seqno {
    let certified = certify(cluster, node, flags, key);
    assert_eq!(certified.code, Code::Ok);
    assert_eq!(enter(cluster, node).unwrap().code, Code::Ok);
    leave(cluster, node);
    let released = release(cluster, node);
    let goes_on = flags & flags::TRX_END == 0;
    assert_eq!((released.code, released.lives_on), (Code::Ok, goes_on));
    certified.gtid.seqno
}

/// Applies what can be applied.
pub fn apply_all(cluster: &mut Cluster, node: usize) -> Vec<Apply> {
    let mut applied = Vec::new();
    while let Some(work) = cluster.nodes[node].replicator.take_work() {
        if let Task::Apply(apply) = work.task {
            let owner = Owner::Applied(apply.gtid.seqno);
            cluster
                .call(node, |ticket| Event::CommitOrderEnter { ticket, owner })
                .expect("alone");
            let error = None;
            cluster.call(node, |ticket| Event::CommitOrderLeave {
                ticket,
                owner,
                error,
            });
            applied.push(*apply);
        }
        let done = Event::WorkDone {
            work: work.id,
            ok: true,
        };
        cluster.event(node, done);
    }
    applied
}

pub fn seen(applied: &[Apply]) -> Vec<(u32, &[u8])> {
    applied.iter().map(|a| (a.flags, &a.data[..])).collect()
}

pub fn last_fails(cluster: &mut Cluster, node: usize) {
    let id = cluster.last_submission(node);
    let fate = Fate::Unknown;
    cluster.event(node, Event::Failed { id, fate });
}
