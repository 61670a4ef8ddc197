//! A connection that breaks off, and is made anew before anybody is missed.

use super::cores::Cores;
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
