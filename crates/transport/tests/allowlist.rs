//! An allowlist that answers late or never, and floods of callers.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::stranger::joining;
use common::*;
use trireme_transport::*;

#[test]
fn links_live_while_the_allowlist_hangs() {
    let hangs = Arc::new(AtomicBool::new(false));
    let hung = Arc::clone(&hangs);
    let mut guarded = config(&[]);
    guarded.allow = Some(allowlist(move |_| {
        while hung.load(Ordering::SeqCst) {
            std::thread::park();
        }
        true
    }));
    let a = Node::with(guarded, identity(1));
    let b = Node::start(2, &[&a.address]);
    wait_meshed(&[&a, &b]);
    hangs.store(true, Ordering::SeqCst);
    // From another address: no verdict holds for it.
    let mut caller = a.call_from(3);
    caller.write_all(&joining(9)).unwrap();
    for round in 0..20u8 {
        let began = Instant::now();
        assert_eq!(a.send(b.id, &[round]), SendOutcome::Queued);
        assert_eq!(b.wait_frame(a.id), [round]);
        assert_eq!(b.send(a.id, &[round]), SendOutcome::Queued);
        // Counted, not taken: the rejection is among the events.
        let heard = |e: &MeshEvent| matches!(e, MeshEvent::Frame { from, .. } if *from == b.id);
        wait_until("answered", || a.count(heard) == usize::from(round) + 1);
        assert!(began.elapsed() < TIMEOUT / 4);
        std::thread::sleep(Duration::from_millis(50));
    }
    // It fails closed, says so, and ends in time.
    let text = a.wait_rejected(RejectReason::AcceptFailed);
    assert!(
        text.contains("127.0.0.3") && text.contains("mysql.wsrep_allowlist"),
        "{text}"
    );
    assert_eq!(read_out(caller), b"");
    assert_eq!(a.linked(), [b.id]);
    let began = Instant::now();
    a.kill();
    assert!(began.elapsed() < TIMEOUT / 2);
}

#[test]
fn a_flood_from_one_address_is_one_question_a_second() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let mut guarded = config(&[]);
    guarded.allow = Some(allowlist(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        true
    }));
    let a = Node::with(guarded, identity(1));
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1_500) {
        let mut caller: TcpStream = a.call();
        caller.write_all(b"nonsense").unwrap();
        let _ = caller.read(&mut [0]);
    }
    let most = 1 + began.elapsed().as_secs() as usize;
    let asked = asked.load(Ordering::SeqCst);
    assert!((1..=most).contains(&asked), "{asked} of {most}");
}
