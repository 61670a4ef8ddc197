//! The simulated network: streams keep their order until they break.

use bytes::Bytes;
use simulator::network::{BulkPayload, Network, Sent};
use simulator::plan::Plan;
use simulator::profiles;

const FAR_FUTURE: u64 = u64::MAX / 2;

fn connected() -> (Network, u64) {
    let mut plan = Plan::new(profiles::named("partitions").expect("exists"), 7);
    (plan.delay_us[0][1], plan.delay_us[1][0]) = (300, 300); // none of them is far away
    let mut network = Network::new(&plan);
    let (id, ..) = network.connect(0, (0, 1), (1, 1));
    assert_eq!(network.set_up(0, 1, id), Some(1));
    assert_eq!(network.set_up(1, 0, id), Some(1));
    (network, id)
}

fn arrival(sent: Sent) -> (BulkPayload, u64) {
    match sent {
        Sent::Arrives(bulk, at, _) => (bulk, at),
        other => panic!("{other:?}"),
    }
}

fn frame(byte: u8) -> Bytes {
    Bytes::copy_from_slice(&[byte])
}

#[test]
fn what_is_sent_later_arrives_later() {
    let (mut network, _) = connected();
    let mut last = 0;
    for round in 0..200 {
        let (bulk, at) = arrival(network.send(round, 0, (1, 1), frame(1)));
        assert!(at >= last && at > round);
        assert_eq!(network.receive(at, 0, 1, &bulk), Some(1));
        last = at;
    }
}

#[test]
fn what_is_on_its_way_when_a_connection_breaks_is_lost_from_some_point_on() {
    let (mut network, id) = connected();
    let bulk_payloads: Vec<_> = (0..50)
        .map(|at| arrival(network.send(at * 1000, 0, (1, 1), frame(1))))
        .collect();
    let (broken, noticed_at, _) = network.break_connection(25_000, 0, 1).expect("it was up");
    assert_eq!(broken, id);
    assert!(noticed_at >= 25_000);
    let through: Vec<bool> = bulk_payloads
        .iter()
        .map(|(bulk, at)| network.receive(*at, 0, 1, bulk).is_some())
        .collect();
    assert!(through[0] && !through[49]);
    assert!(through.windows(2).all(|pair| pair[0] || !pair[1]));
    assert!(matches!(
        network.send(26_000, 0, (1, 1), frame(2)),
        Sent::Dropped
    ));
    assert_eq!(network.set_down(1, 0, id), Some(1));
    assert!(
        network.is_connected(0, 1),
        "the other end does not know yet"
    );
    assert_eq!(network.set_down(0, 1, id), Some(1));
    assert!(!network.is_connected(0, 1));
}

#[test]
fn a_cut_holds_frames_back_until_it_heals_and_a_full_queue_says_so_once() {
    let (mut network, _) = connected();
    network.cut(0, 1);
    let mut held = 0;
    while let Sent::Held = network.send(10, 0, (1, 1), frame(1)) {
        held += 1;
    }
    assert!(held > 0);
    assert!(!network.drained(0, 1), "still cut");
    let healed = network.heal(50, 0, 1);
    assert_eq!(healed.len(), held);
    assert!(healed.iter().all(|(at, _)| *at >= 50));
    assert!(network.drained(0, 1));
    assert!(!network.drained(0, 1));
    let (_, at) = arrival(network.send(FAR_FUTURE, 1, (0, 1), frame(1)));
    assert!(at > FAR_FUTURE, "the other direction was never cut");
}

#[test]
fn a_new_process_does_not_get_what_was_meant_for_the_old_one() {
    let (mut network, _) = connected();
    assert!(matches!(
        network.send(1, 0, (1, 2), frame(1)),
        Sent::Dropped
    ));
}
