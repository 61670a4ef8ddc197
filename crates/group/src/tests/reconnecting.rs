//! A connection that breaks off, and is made anew before anybody is missed.

use super::cores::Cores;
use crate::dissemination::RESEND_AFTER_MS;
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
