//! A connection that breaks off, and is made anew before anybody is missed.

use super::cores::Cores;
use super::large;
use crate::dissemination::RESEND_AFTER_MS;
use crate::event::Event;
use crate::message::Message;

/// Else a cluster that goes over to TLS commits nothing for most of a second (measured: 0.4 to 0.7 s).
#[test]
fn what_went_with_a_connection_is_submitted_again_with_the_next() {
    let mut cores = Cores::of(3);
    cores.pass(2_000);
    cores.lost = |message| matches!(message, Message::Submit { .. });
    cores.submit(1, 1);
    cores.lost = |_| false;
    assert_eq!(cores.delivered(1), 0);
    cores.reconnect(0, 1);
    cores.pass(200); // what is overdue goes again after a second only
    assert_eq!(cores.delivered(1), 1);
}

/// The next leader's first append drops it from the old leader's log.
#[test]
fn what_an_old_leader_had_in_its_log_only_is_submitted_again_at_once() {
    let mut cores = Cores::of(3);
    cores.step_ms = 10;
    cores.part(&[0], &[1, 2]);
    let (sent_at, end) = (cores.now(), cores.nodes[0].group.end());
    cores.submit(0, 1);
    assert_eq!(cores.nodes[0].group.end(), end + 1);
    let leads = |cores: &Cores| (1..3).any(|node| cores.nodes[node].group.is_leader());
    while !leads(&cores) && cores.now() < sent_at + RESEND_AFTER_MS {
        cores.pass(10);
    }
    cores.cut.clear();
    cores.pass(100);
    assert_eq!(cores.delivered(1), 1);
    assert!(cores.now() < sent_at + RESEND_AFTER_MS, "it is overdue");
}

/// The leader has the payload. The submission must come before the offer, by which the leader drops payloads that are not
/// submitted.
#[test]
fn a_large_payload_whose_submission_was_lost_does_not_travel_again() {
    let mut cores = large::cores(3);
    cores.pass(2_000);
    large::spread(&mut cores, 1, 1);
    cores.lost = |message| matches!(message, Message::SubmitBulk { .. });
    large::submit(&mut cores, 1, 1, 1);
    cores.lost = |_| false;
    assert_eq!(cores.delivered(1), 0);
    cores.arrived.clear();
    cores.reconnect(0, 1);
    cores.pass(200);
    assert_eq!(cores.delivered(1), 1);
    assert_eq!(large::parts_to(&cores, 0), 0);
}

/// It waits for a payload, and there is nobody left to ask.
#[test]
fn a_core_that_is_cut_off_with_a_hole_idles() {
    let mut cores = Cores::of(3);
    cores.cut.insert((2, 1));
    cores.submit(2, 1);
    assert!(cores.nodes[1].group.matching.hole_since().is_some());
    for node in [0, 2] {
        cores.kill(node);
    }
    cores.pass(300);
    cores.event(1, Event::Tick);
    let group = &cores.nodes[1].group;
    assert!(group.matching.hole_since().is_some());
    assert!(group.next_deadline() >= cores.now() + 50);
}
