//! The start state of all explorations: a formed group of three voters, idle.

use trireme_group::ComponentState;

use crate::actions::{Action, apply};
use crate::bound::{Bound, Spent};
use crate::memo::Memo;
use crate::network::NODES;
use crate::process::Input;
use crate::system::System;

/// Limit for the formation: after so many rounds of heartbeats all three processes must be voters.
const ROUNDS: usize = 40;

/// Forms the group with the real cores, in one of many possible orders of events. Err: the group did not form.
pub fn form(bound: &Bound, memo: &Memo) -> Result<System, String> {
    let mut system = System::new();
    for node in 0..NODES {
        system.start(node, bound);
    }
    system.input(0, Input::Bootstrap, memo);
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        system = apply(&system, Action::Connect(a, b), bound, memo);
    }
    for _ in 0..ROUNDS {
        system = settle(system, bound, memo);
        if is_formed(&system) {
            // After these steps each process has heard from all others and knows the commit point.
            system = settle(beat(system, bound, memo), bound, memo);
            system.spent = Spent::default();
            system.seen = Default::default();
            return Ok(system);
        }
        system = beat(system, bound, memo);
    }
    Err(format!(
        "no group of three after {ROUNDS} rounds: {:?}",
        system.breach
    ))
}

fn beat(mut system: System, bound: &Bound, memo: &Memo) -> System {
    for node in 0..NODES {
        system = apply(&system, Action::Beat(node), bound, memo);
    }
    system
}

/// Delivers all messages under way, one channel after the other.
fn settle(mut system: System, bound: &Bound, memo: &Memo) -> System {
    loop {
        let mut busy = false;
        for from in 0..NODES {
            for to in 0..NODES {
                if system.network.has_arrivals(from, to) {
                    system = apply(&system, Action::Deliver { from, to }, bound, memo);
                    busy = true;
                }
            }
            if system.nodes[from]
                .running()
                .is_some_and(|p| p.writing.is_some())
            {
                system = apply(&system, Action::Persisted(from), bound, memo);
                busy = true;
            }
        }
        if !busy {
            return system;
        }
    }
}

fn is_formed(system: &System) -> bool {
    system.nodes.iter().all(|node| {
        node.running().is_some_and(|process| {
            let configuration = process.group.configuration();
            let voters = configuration.members.iter().filter(|m| m.voter).count();
            process.group.component_state() == ComponentState::Primary && voters == NODES
        })
    })
}
