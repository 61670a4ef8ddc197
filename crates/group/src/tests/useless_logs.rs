//! An override leaves out a log that begins above all that anybody with the cluster's state has (rule 11).

use super::cores::{Cores, member};
use crate::configuration::Member;
use crate::event::{Event, Recovered};
use crate::ids::{Incarnation, Uuid};

/// Nodes 0, 3 and 4 go on without node 2. Node 1 has lost its disk: its process 5 has their log from where it was admitted, and
/// no state. Node 2 was cut off before that if it is `behind`, else after. Then both are alone.
fn joiner_beside_laggard(behind: bool) -> Cores {
    let mut cores = Cores::of(5);
    for node in &mut cores.nodes {
        node.group.config_mut().proof.known = 1;
    }
    if behind {
        cores.part(&[2], &[0, 1, 3, 4, 5]);
    }
    cores.kill(1);
    cores.refuses(1);
    (1..=10).for_each(|number| cores.submit(0, number));
    let again = Member {
        incarnation: Incarnation(Uuid([50; 16])),
        ..member(1)
    };
    cores.start(again, Recovered::default());
    cores.pass(2_000);
    cores.part(&[2], &[0, 1, 3, 4, 5]);
    (11..=20).for_each(|number| cores.submit(0, number));
    assert!(cores.nodes[5].group.end() > cores.nodes[2].group.end());
    cores.part(&[2, 5], &[0, 1, 3, 4]);
    cores.cut.remove(&(2, 5));
    cores.cut.remove(&(5, 2));
    cores.pass(12_000);
    let kept = cores.log_of(2);
    let override_id = Uuid([3; 16]);
    cores.event(2, Event::ForcePrimary { override_id });
    cores.pass(1_000);
    let goes_on = cores.log_of(2).starts_with(&kept);
    assert!(goes_on, "node 2 has dropped its log, and its state");
    cores
}

#[test]
fn a_log_that_nobody_can_go_on_with_does_not_lead() {
    let cores = joiner_beside_laggard(true);
    assert!(
        cores.nodes[2].group.end() < 20,
        "what only node 5 has is left out"
    );
}

#[test]
fn a_log_that_somebody_with_the_state_reaches_leads() {
    let cores = joiner_beside_laggard(false);
    assert!(cores.nodes[2].group.end() > 29, "what node 5 has is kept");
}
