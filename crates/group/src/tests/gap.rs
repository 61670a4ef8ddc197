//! A member that comes back fetches the bulk payloads that it has missed from the leader's log.

use super::cores::Cores;
use super::large::{cores, spread, submit};

const MISSED: u64 = 20;

/// Node 2 has missed these payloads of node 0, and hears the others again. Two of them fit into its memory.
fn after_a_gap() -> Cores {
    let mut cores = cores(3);
    for node in &mut cores.nodes {
        node.log.whole_max = Some(100);
        let config = node.group.config_mut();
        (config.tail_bytes, config.thresholds.logged_bytes) = (1, 2_500);
    }
    cores.part(&[2], &[0, 1]);
    for number in 1..=MISSED {
        spread(&mut cores, 0, number);
        submit(&mut cores, 0, number, number);
    }
    assert_eq!((cores.delivered(1), cores.delivered(2)), (MISSED, 0));
    cores.cut.clear();
    cores
}

/// Simulator, seed 7410181124 of `mistakes`: each of them waited for the submission of the offered payload, which has
/// their length.
#[test]
fn an_offered_payload_delays_what_was_missed_once() {
    let mut cores = after_a_gap();
    let begin = cores.now;
    spread(&mut cores, 0, MISSED + 1);
    while cores.delivered(2) < MISSED {
        cores.pass_when_due(&[0, 1, 2], 1);
        assert!(cores.now < begin + 400, "it has {}", cores.delivered(2));
    }
    assert_eq!(cores.nodes[2].group.bulk_payloads_len(), 1_000);
}
