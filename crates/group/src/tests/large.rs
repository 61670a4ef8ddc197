//! Large payloads: held by a majority before they are ordered, whatever is lost on the way.

use bytes::Bytes;

use super::cores::Cores;
use crate::event::{Action, Delivery, Fate};
use crate::message::{BulkPayload, ComponentState, Message, Source, WireBody};

pub(super) const HEAD: &[u8] = b"told at last:";

/// Cores to which everything above 100 bytes is large.
pub(super) fn cores(count: usize) -> Cores {
    make_large(Cores::of(count))
}

pub(super) fn make_large(mut cores: Cores) -> Cores {
    for node in &mut cores.nodes {
        let config = node.group.config_mut();
        (config.large_bytes, config.part_bytes) = (100, 64);
    }
    cores
}

/// A thousand bytes, the first of which come later.
pub(super) fn payload(head: &[u8]) -> Bytes {
    let rest = (head.len()..1000).map(|at| at as u8);
    head.iter().copied().chain(rest).collect()
}

pub(super) fn spread(cores: &mut Cores, node: usize, bulk: u64) {
    let payload = payload(&[0; HEAD.len()]);
    let digest = crc32c::crc32c(&payload[HEAD.len()..]);
    let now = cores.now;
    let group = &mut cores.nodes[node].group;
    group.spread(now, bulk, payload, HEAD.len() as u32, digest);
    cores.settle();
}

pub(super) fn may_submit(cores: &Cores, node: usize, bulk: u64) -> bool {
    let told = |action: &Action| matches!(action, Action::Spread { bulk: p } if *p == bulk);
    cores.nodes[node].actions.iter().any(told)
}

pub(super) fn submit(cores: &mut Cores, node: usize, number: u64, bulk: u64) {
    let (now, head) = (cores.now, Bytes::from_static(HEAD));
    let group = &mut cores.nodes[node].group;
    group.submit_bulk(now, number, bulk, head);
    cores.settle();
}

pub(super) fn payloads(cores: &Cores, node: usize) -> Vec<Bytes> {
    let delivered = cores.nodes[node]
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Deliver {
                delivery: Delivery::Submission { payload, .. },
                ..
            } => Some(payload.clone()),
            _ => None,
        });
    delivered.collect()
}

pub(super) fn parts_to(cores: &Cores, node: usize) -> usize {
    let part =
        |(to, message): &&(usize, Message)| *to == node && matches!(message, Message::Part { .. });
    cores.arrived.iter().filter(part).count()
}

#[test]
fn a_large_payload_is_with_all_before_it_is_submitted() {
    for origin in 0..3 {
        let mut cores = cores(3);
        spread(&mut cores, origin, 1);
        assert!(may_submit(&cores, origin, 1));
        assert_eq!(cores.delivered(0), 0);
        submit(&mut cores, origin, 1, 1);
        for node in 0..3 {
            assert_eq!(payloads(&cores, node), [payload(HEAD)], "from {origin}");
        }
        // Once to each of the others, and never whole.
        let parts: usize = (0..3).map(|node| parts_to(&cores, node)).sum();
        assert_eq!(parts, 2 * 1000_usize.div_ceil(64));
        let whole = |(_, message): &(usize, Message)| match message {
            Message::Append(append) => {
                let mut entries = append.entries.iter();
                entries.any(
                    |e| matches!(&e.body, WireBody::Full(body) if format!("{body:?}").len() > 1000),
                )
            }
            Message::Submit { payload, .. } => payload.as_ref().is_some_and(|p| p.len() > 100),
            _ => false,
        };
        assert!(!cores.arrived.iter().any(whole));
    }
}

#[test]
fn small_ones_pass_a_large_one_that_travels() {
    let mut cores = cores(3);
    for way in [(1, 0), (1, 2), (0, 1), (2, 1)] {
        cores.lines_ms.insert(way, 50);
    }
    spread(&mut cores, 1, 1);
    cores.pass(150);
    assert!(!may_submit(&cores, 1, 1) && parts_to(&cores, 0) > 0);
    // The origin's own as well: a large one has no number before it is held.
    cores.submit(0, 1);
    cores.submit(1, 1);
    cores.pass(100);
    assert_eq!(cores.delivered(0), 2);
    assert!(!may_submit(&cores, 1, 1));
    cores.pass(1_000);
    assert!(may_submit(&cores, 1, 1));
    submit(&mut cores, 1, 2, 1);
    cores.pass(500);
    assert_eq!(payloads(&cores, 2).last(), Some(&payload(HEAD)));
}

#[test]
fn without_a_majority_that_holds_it_nothing_is_submitted() {
    let mut cores = cores(3);
    cores.lost = |message| matches!(message, Message::Held { .. });
    spread(&mut cores, 0, 1);
    cores.pass(3_000);
    assert!(!may_submit(&cores, 0, 1));
    cores.lost = |_| false;
    cores.pass(2_000);
    assert!(may_submit(&cores, 0, 1));
}

#[test]
fn the_leader_is_one_of_those_who_hold_it() {
    let mut cores = cores(3);
    cores.part(&[0], &[1]);
    spread(&mut cores, 1, 1);
    cores.pass(200);
    assert!(parts_to(&cores, 2) > 0 && !may_submit(&cores, 1, 1));
    cores.cut.clear();
    cores.pass(2_000);
    assert!(may_submit(&cores, 1, 1));
}

#[test]
fn lost_parts_are_asked_for_again() {
    let mut cores = cores(2);
    cores.lost = |message| matches!(message, Message::Part { offset: 256, .. });
    spread(&mut cores, 0, 1);
    cores.pass(1_500);
    assert!(!may_submit(&cores, 0, 1));
    cores.lost = |_| false;
    cores.pass(1_500);
    submit(&mut cores, 0, 1, 1);
    assert_eq!(payloads(&cores, 1), [payload(HEAD)]);
}

/// What is damaged is fetched anew.
#[test]
fn a_payload_with_another_digest_is_not_held() {
    let mut cores = cores(2);
    let bulk = BulkPayload {
        number: 1,
        len: 8,
        head: 0,
        digest: crc32c::crc32c(b"good one"),
    };
    let offer = Message::Offer {
        oldest: 1,
        bulk: Some(bulk),
    };
    let part = |bytes| Message::Part {
        source: Source::Offered { bulk: 1 },
        offset: 0,
        bytes: Bytes::from_static(bytes),
    };
    let held = |cores: &Cores| {
        let mut arrived = cores.arrived.iter();
        arrived.any(|(to, message)| *to == 0 && matches!(message, Message::Held { .. }))
    };
    // Its true origin has no such bulk payload: it is forgotten upon its word.
    cores.lost = |message| matches!(message, Message::Part { .. });
    cores.say(0, 1, offer);
    cores.say(0, 1, part(b"evil one"));
    assert!(!held(&cores));
    cores.say(0, 1, part(b"too long for it"));
    cores.say(0, 1, part(b"good one"));
    assert!(held(&cores));
}

/// Two others have it in their logs; the third gets nothing from its origin.
#[test]
fn whoever_has_missed_it_gets_it_from_the_leaders_log() {
    let mut cores = cores(3);
    cores.part(&[2], &[1]);
    spread(&mut cores, 1, 1);
    submit(&mut cores, 1, 1, 1);
    assert_eq!(payloads(&cores, 2), [payload(HEAD)]);
    assert_eq!(cores.nodes[2].group.counters().logged, 1);
}

/// It has begun to get it from the origin, which dies.
#[test]
fn whoever_is_late_turns_to_the_leader_when_the_origin_is_gone() {
    let mut cores = cores(3);
    cores.lines_ms.insert((1, 2), 200);
    spread(&mut cores, 1, 1);
    cores.pass(450);
    submit(&mut cores, 1, 1, 1);
    assert!(parts_to(&cores, 2) > 0);
    assert_eq!((cores.delivered(0), cores.delivered(2)), (1, 0));
    cores.kill(1);
    cores.pass(100);
    assert_eq!(payloads(&cores, 2), [payload(HEAD)]);
}

/// A majority has it, and its origin has it in the log only by the time that the third is half way.
#[test]
fn whoever_is_late_goes_on_where_it_was() {
    let mut cores = cores(3);
    for node in &mut cores.nodes {
        (node.group.config_mut().tail_bytes, node.log.whole_max) = (1, Some(100));
    }
    cores.lines_ms.insert((1, 2), 30);
    spread(&mut cores, 1, 1);
    cores.pass(70);
    submit(&mut cores, 1, 1, 1);
    assert_eq!((cores.delivered(1), cores.delivered(2)), (1, 0));
    for number in 2..5 {
        cores.submit(1, number);
    }
    cores.pass(2_500);
    assert_eq!(payloads(&cores, 2)[0], payload(HEAD));
    assert_eq!(parts_to(&cores, 2), 1_000usize.div_ceil(64));
    assert_eq!(cores.nodes[2].group.counters().logged, 0);
}

/// As a whole it would be read for so long that the leader is taken for dead; whoever comes after it does the same.
#[test]
fn what_is_in_the_log_only_is_never_read_as_a_whole() {
    let mut cores = cores(3);
    for node in &mut cores.nodes {
        (node.group.config_mut().tail_bytes, node.log.whole_max) = (1, Some(100));
    }
    cores.part(&[0, 1], &[2]);
    spread(&mut cores, 1, 1);
    cores.pass(100);
    submit(&mut cores, 1, 1, 1);
    for number in 2..5 {
        cores.submit(1, number);
    }
    // The leader waits no longer for who is gone.
    cores.pass(12_000);
    cores.cut.clear();
    cores.pass(3_000);
    assert_eq!(payloads(&cores, 2)[0], payload(HEAD));
    assert_eq!(cores.delivered(2), 4);
    assert_eq!(cores.nodes[2].group.counters().logged, 1);
    let staged = |action: &Action| matches!(action, Action::Staged { head: 0, .. });
    assert!(cores.nodes[2].actions.iter().any(staged));
}

/// The origin holds leadership, and is alone with it and the one that has it too.
#[test]
fn a_new_leader_has_what_was_acknowledged() {
    let mut cores = cores(3);
    spread(&mut cores, 0, 1);
    submit(&mut cores, 0, 1, 1);
    cores.kill(0);
    cores.refuses(0);
    cores.pass(3_000);
    cores.submit(1, 1);
    cores.pass(500);
    for node in 1..3 {
        assert_eq!(payloads(&cores, node)[0], payload(HEAD));
        assert_eq!(cores.delivered(node), 2);
    }
}

/// Its owner may not know yet that the majority is lost, or not any more.
#[test]
fn without_a_majority_its_submission_fails() {
    let mut cores = cores(2);
    spread_unheard(&mut cores, 0, 1);
    assert!(!may_submit(&cores, 0, 1));
    cores.pass(12_000);
    spread(&mut cores, 0, 2);
    for bulk in [1, 2] {
        assert!(may_submit(&cores, 0, bulk));
        submit(&mut cores, 0, bulk, bulk);
        let failed = |action: &Action| matches!(action, Action::Failed { id, fate: Fate::Withdrawn } if id.number == bulk);
        assert!(cores.nodes[0].actions.iter().any(failed));
    }
}

fn spread_unheard(cores: &mut Cores, node: usize, bulk: u64) {
    cores.part(&[0], &[1]);
    spread(cores, node, bulk);
}

/// Seed 16021361: nobody was told, and what the others held kept the next origin's waiting for ever.
#[test]
fn what_is_given_up_with_the_majority_takes_up_nobodys_room() {
    let mut cores = cores(3);
    spread(&mut cores, 0, 1);
    let len = |cores: &Cores, node: usize| cores.nodes[node].group.bulk_payloads_len();
    assert_eq!((len(&cores, 1), len(&cores, 2)), (1_000, 1_000));
    cores.lost = |message| !matches!(message, Message::Offer { .. });
    cores.pass(12_000);
    assert_ne!(cores.component_state(0), ComponentState::Primary);
    assert_eq!((len(&cores, 1), len(&cores, 2)), (0, 0));
}

#[test]
fn what_is_recalled_is_forgotten_and_the_next_is_offered() {
    let mut cores = cores(3);
    cores.part(&[0], &[1, 2]);
    spread(&mut cores, 0, 1);
    spread(&mut cores, 0, 2);
    cores.nodes[0].group.recall(1);
    cores.cut.clear();
    cores.pass(2_000);
    assert!(!may_submit(&cores, 0, 1) && may_submit(&cores, 0, 2));
    submit(&mut cores, 0, 1, 2);
    assert_eq!(cores.delivered(2), 1);
    assert_eq!(cores.nodes[2].group.bulk_payloads_len(), 0);
}

#[test]
fn bulk_payloads_beyond_the_bound_wait_but_the_first_origins_never() {
    let mut cores = cores(4);
    for node in &mut cores.nodes {
        node.group.config_mut().bulk_bytes = 1_500;
    }
    // Nobody submits what it may.
    for origin in [2, 1, 0] {
        spread(&mut cores, origin, 1);
    }
    cores.pass(3_000);
    assert_eq!(cores.nodes[3].group.bulk_payloads_len(), 3_000);
    let mut reversed = self::cores(4);
    for node in &mut reversed.nodes {
        node.group.config_mut().bulk_bytes = 1_500;
    }
    for origin in [0, 1, 2] {
        spread(&mut reversed, origin, 1);
    }
    reversed.pass(3_000);
    assert_eq!(reversed.nodes[3].group.bulk_payloads_len(), 1_000);
    submit(&mut reversed, 0, 1, 1);
    reversed.pass(3_000);
    submit(&mut reversed, 1, 1, 1);
    reversed.pass(3_000);
    submit(&mut reversed, 2, 1, 1);
    reversed.pass(500);
    assert_eq!(reversed.delivered(3), 3);
}

/// Submitted without an offer that was taken up: what is next in its order is fetched at any rate.
#[test]
fn submitted_bulk_payloads_beyond_the_bound_wait_for_their_turn() {
    let mut cores = cores(2);
    cores.nodes[0].group.config_mut().bulk_bytes = 1_500;
    cores.lost = |_| true;
    for (number, len) in [(5, 1_000), (6, 1_000), (1, 2_000), (7, 2_000)] {
        let bulk = unknown_bulk(number);
        let head = Bytes::from_static(HEAD);
        cores.say(1, 0, Message::SubmitBulk { number, bulk, head });
        assert_eq!(
            cores.nodes[0].group.bulk_payloads_len(),
            len,
            "after {number}"
        );
    }
}

/// A payload of a thousand bytes that nobody has.
fn unknown_bulk(number: u64) -> BulkPayload {
    BulkPayload {
        number,
        len: 1_000,
        head: HEAD.len() as u32,
        digest: 0,
    }
}

/// A peer names one bulk payload after the other for the number that is never kept waiting.
#[test]
fn one_submission_has_one_bulk() {
    let mut cores = cores(2);
    cores.nodes[0].group.config_mut().bulk_bytes = 1_500;
    cores.lost = |_| true;
    for number in 1..=100 {
        let bulk = unknown_bulk(number);
        let head = Bytes::from_static(HEAD);
        let number = 1;
        cores.say(1, 0, Message::SubmitBulk { number, bulk, head });
    }
    assert_eq!(cores.nodes[0].group.bulk_payloads_len(), 1_000);
}

#[test]
fn nobody_else_is_offered_memory() {
    let mut cores = cores(2);
    let stranger = cores.start(super::cores::member(7), Default::default());
    let bulk = BulkPayload {
        number: 1,
        len: 1 << 31,
        head: 0,
        digest: 0,
    };
    let offer = |bulk| Message::Offer {
        oldest: 0,
        bulk: Some(bulk),
    };
    cores.say(stranger, 0, offer(bulk));
    cores.say(1, 0, offer(BulkPayload { len: 0, ..bulk }));
    let beyond = BulkPayload {
        len: u32::MAX,
        ..bulk
    };
    cores.say(1, 0, offer(beyond));
    let long_head = BulkPayload {
        head: 5_000,
        ..bulk
    };
    cores.say(1, 0, offer(long_head));
    assert_eq!(cores.nodes[0].group.bulk_payloads_len(), 0);
}

#[test]
fn who_asks_for_much_is_answered_bit_by_bit() {
    let mut cores = cores(2);
    cores.lost = |message| matches!(message, Message::Fetch { .. });
    let payload = Bytes::from(vec![1; 1 << 20]);
    let digest = crc32c::crc32c(&payload);
    let now = cores.now;
    let group = &mut cores.nodes[0].group;
    group.spread(now, 1, payload, 0, digest);
    cores.settle();
    for _ in 0..10 {
        let fetch = Message::Fetch {
            source: Source::Offered { bulk: 1 },
            offset: 0,
            len: 1 << 20,
        };
        cores.say(1, 0, fetch);
    }
    assert_eq!(parts_to(&cores, 1), 4);
    cores.pass_when_due(&[0, 1], 1);
    assert_eq!(parts_to(&cores, 1), 8);
    cores.pass_when_due(&[0, 1], 1);
    assert_eq!(parts_to(&cores, 1), 10);
}

#[test]
fn who_is_in_no_view_is_given_nothing() {
    let mut cores = cores(2);
    cores.lost = |message| matches!(message, Message::Fetch { .. });
    let stranger = cores.start(super::cores::member(7), Default::default());
    let payload = Bytes::from(vec![1; 1 << 20]);
    let digest = crc32c::crc32c(&payload);
    let now = cores.now;
    cores.nodes[0].group.spread(now, 1, payload, 0, digest);
    let fetch = Message::Fetch {
        source: Source::Offered { bulk: 1 },
        offset: 0,
        len: 1 << 20,
    };
    cores.say(stranger, 0, fetch.clone());
    assert_eq!(parts_to(&cores, stranger), 0);
    cores.say(1, 0, fetch);
    assert_eq!(parts_to(&cores, 1), 1);
}

/// Longer than all that may wait of one origin: the bound on all of them holds for it, too.
#[test]
fn the_longest_payloads_are_no_exception_to_the_bound() {
    let mut cores = cores(2);
    let config = cores.nodes[0].group.config_mut();
    (config.thresholds.pending_bytes, config.bulk_bytes) = (900, 1_500);
    cores.lost = |_| true;
    for number in 1..=3 {
        let (oldest, bulk) = (1, Some(unknown_bulk(number)));
        cores.say(1, 0, Message::Offer { oldest, bulk });
    }
    assert_eq!(cores.nodes[0].group.bulk_payloads_len(), 1_000);
}

/// Node 2 misses the submission of a payload that it holds, and gets the entry from the leader's log.
#[test]
fn what_was_submitted_unheard_takes_up_nobodys_room() {
    let mut cores = cores(3);
    spread(&mut cores, 1, 1);
    cores.cut.insert((1, 2));
    submit(&mut cores, 1, 1, 1);
    cores.pass(3_000);
    assert_eq!(cores.delivered(2), 1);
    assert_eq!(cores.nodes[2].group.bulk_payloads_len(), 1_000);
    cores.cut.clear();
    cores.pass(3_000);
    assert_eq!(cores.nodes[2].group.bulk_payloads_len(), 0);
}
