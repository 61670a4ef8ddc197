//! How the leader feeds who was away, and what it does meanwhile.

use bytes::Bytes;

use super::cores::Cores;
use super::large;
use crate::message::Message;

const PAYLOAD_BYTES: usize = 8 << 10;

/// Node 2 misses so many submissions, which node 0 no longer holds in memory; then it is there again.
fn returned(submissions: u64) -> Cores {
    let mut cores = Cores::of(3);
    cores.step_ms = 1;
    cores.nodes[0].group.config_mut().tail_bytes = 1;
    cores.part(&[2], &[0, 1]);
    for number in 1..=submissions {
        let payload = Bytes::from(vec![number as u8; PAYLOAD_BYTES]);
        cores.submit_bytes(0, number, payload);
    }
    assert_eq!(cores.nodes[1].group.commit(), cores.nodes[0].group.commit());
    cores.cut.clear();
    cores.arrived.clear();
    cores
}

/// Bytes of entries that came to node 2 since this was asked last.
fn fed_bytes(cores: &mut Cores) -> usize {
    let mut bytes = 0;
    for (to, message) in std::mem::take(&mut cores.arrived) {
        if let Message::Append(append) = message {
            let fed = append.entries.len() * PAYLOAD_BYTES;
            bytes += if to == 2 { fed } else { 0 };
        }
    }
    bytes
}

#[test]
fn who_was_away_is_fed_from_the_log_a_slice_at_a_time() {
    const SUBMISSIONS: u64 = 400;
    let mut cores = returned(SUBMISSIONS);
    let end = cores.nodes[0].group.commit();
    let (mut slices, mut most, mut waited_ms) = (0, 0, 0);
    while cores.nodes[2].group.commit() < end {
        cores.pass(1);
        waited_ms += 1;
        assert!(waited_ms < 1_000, "it is fed all the time");
        let bytes = fed_bytes(&mut cores);
        if bytes > 0 {
            slices += 1;
            most = most.max(bytes);
        }
        if slices > 0 && cores.nodes[2].group.commit() < end {
            let due = cores.nodes[0].group.next_deadline();
            assert!(due <= cores.now() + 1, "the next slice waits for nothing");
        }
    }
    // A slice is 128 KiB.
    assert!(most <= 16 * PAYLOAD_BYTES, "{most} bytes at once");
    assert!(slices >= SUBMISSIONS / 16, "{slices}");
    // The last is in memory: nobody is due any more.
    let due = cores.nodes[0].group.next_deadline();
    assert!(due > cores.now() + 1);
}

#[test]
fn who_is_fed_from_a_log_that_cannot_be_read_now_waits_and_keeps_its_own() {
    let mut cores = returned(100);
    let end = cores.nodes[0].group.commit();
    cores.nodes[0].log.busy = true;
    cores.pass(1_000);
    assert!(cores.nodes[2].group.commit() < end);
    let known = [0, 1, 2].map(|node| cores.nodes[node].group.known_commit());
    assert_eq!(known, [Some(end); 3], "it knows how much it lacks");
    let (now, due) = (cores.now(), cores.nodes[0].group.next_deadline());
    assert!(due > now + 1, "it is not tried all the time");
    cores.nodes[0].log.busy = false;
    cores.pass(500);
    assert_eq!(cores.nodes[2].group.commit(), end);
    let anew = |(_, message): &(usize, Message)| matches!(message, Message::Install { .. });
    assert!(!cores.arrived.iter().any(anew), "its log was given up");
}

#[test]
fn no_more_than_the_window_is_sent_ahead_of_acknowledgements() {
    const WINDOW_BYTES: usize = 64 << 10;
    let mut cores = returned(100);
    cores.nodes[0].group.config_mut().window_bytes = WINDOW_BYTES;
    // It acknowledges little by little: each word lets out no more than what it speaks of.
    cores.lines_ms.insert((2, 0), 40);
    let mut ahead = 0_usize;
    let mut acked = cores.nodes[2].group.end();
    let mut most = 0;
    for _ in 0..2_000 {
        cores.pass(1);
        ahead += fed_bytes(&mut cores);
        let now_acked = cores.acked(0, 2);
        ahead = ahead.saturating_sub(now_acked.saturating_sub(acked) as usize * PAYLOAD_BYTES);
        acked = acked.max(now_acked);
        most = most.max(ahead);
    }
    assert_eq!(cores.nodes[2].group.commit(), cores.nodes[0].group.commit());
    // One message more than fits.
    assert!(most <= WINDOW_BYTES + (128 << 10), "{most}");
}

/// Node 2's payloads do not reach node 1: what the leader says of them waits there for the first, as much as there is room
/// for, and the rest is asked for again.
#[test]
fn order_records_beyond_the_bound_are_dropped_and_asked_for_again() {
    let mut cores = Cores::of(3);
    cores.nodes[1]
        .group
        .config_mut()
        .thresholds
        .incoming_records = 4;
    cores.part(&[2], &[1]);
    cores.arrived.clear();
    let now = cores.now();
    for number in 1..=20 {
        let payload = Bytes::from_static(b"x");
        cores.nodes[2].group.submit(now, number, payload);
    }
    cores.settle();
    let end = cores.nodes[0].group.end();
    assert_eq!(cores.nodes[1].group.commit(), end);
    let asks =
        |(to, message): &(usize, Message)| *to == 0 && matches!(message, Message::Summary { .. });
    assert!(cores.arrived.iter().any(asks));
}

/// Rule 2: 420 ms after the last word, not at the next heartbeat; who is missed is not waited for.
#[test]
fn leadership_is_taken_as_soon_as_timeout_ends() {
    let mut cores = Cores::of(3);
    cores.step_ms = 1;
    cores.pass(500);
    let cut_at = cores.now();
    cores.part(&[0], &[1, 2]);
    while !cores.nodes[1].group.is_leader() {
        cores.pass_when_due(&[0, 1, 2], 1);
        assert!(cores.now() < cut_at + 425, "nobody takes it");
    }
    assert!(cores.now() >= cut_at + 300);
    assert!(!cores.nodes[2].group.is_leader());
}

#[test]
fn it_is_known_what_the_others_hold() {
    let mut cores = Cores::of(3);
    cores.part(&[2], &[0, 1]);
    let before = cores.nodes[0].group.commit();
    cores.pass(350);
    assert!(cores.nodes[2].group.known_commit().is_some());
    cores.pass(100);
    assert_eq!(cores.nodes[2].group.known_commit(), None, "it hears nobody");
    for number in 1..=5 {
        cores.submit_bytes(0, number, Bytes::from_static(b"x"));
    }
    let held = |cores: &Cores, node: usize, by: usize| {
        let by = cores.nodes[by].group.me();
        cores.nodes[node].group.held_by(by)
    };
    // Heartbeats tell it beyond the leader.
    cores.pass(1_000);
    let commit = cores.nodes[0].group.commit();
    assert_eq!(commit, before + 5);
    assert_eq!((held(&cores, 0, 1), held(&cores, 1, 0)), (commit, commit));
    assert!(held(&cores, 0, 2) <= before && held(&cores, 1, 2) <= before);
    cores.cut.clear();
    cores.pass(1_000);
    assert_eq!((held(&cores, 0, 2), held(&cores, 1, 2)), (commit, commit));
}

/// The leader's window for it is full. It has lost no order records, and asks for none again.
#[test]
fn who_fetches_a_large_payload_is_sent_each_record_once() {
    let mut cores = large::cores(3);
    for node in &mut cores.nodes {
        node.group.config_mut().window_bytes = 50_000;
    }
    cores.part(&[1], &[2]);
    large::spread(&mut cores, 1, 1);
    cores.lost = |message| matches!(message, Message::Part { .. });
    large::submit(&mut cores, 1, 1, 1);
    for number in 1..=3_000 {
        cores.submit_bytes(0, number, vec![7; 90].into());
    }
    cores.arrived.clear();
    cores.pass(3_000);
    let mut positions = Vec::new();
    for (to, message) in &cores.arrived {
        if let (2, Message::Append(append)) = (to, message) {
            positions.extend(append.entries.iter().map(|entry| entry.position));
        }
    }
    let sent = positions.len();
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(sent, positions.len(), "some records came again");
    cores.lost = |_| false;
    cores.pass(3_000);
    assert_eq!(cores.delivered(2), 3_001);
}
