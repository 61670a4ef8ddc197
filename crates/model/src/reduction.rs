//! Selects the actions of a state that must be explored (a persistent set).
//!
//! Actions of two processes commute: each action changes its own process and appends to that process's outgoing
//! channels. If no action of the others, now or later, can give a process a new choice, the exploration lets this
//! process go first, with each of its own actions. Every other order leads to the same state, and [`crate::truth`]
//! judges all orders alike. The condition holds while each open channel to the process has a message under way: new
//! messages queue behind that message.
//!
//! The exploration cannot put off a process for ever, because it has no cycles: every action uses up a message or a
//! part of the bound.

use crate::actions::{Action, input_of};
use crate::bound::Bound;
use crate::memo::Memo;
use crate::network::{NODES, Phase};
use crate::system::System;

/// Removes the actions that need not be explored from the list of possible ones.
pub fn reduce(system: &System, bound: &Bound, memo: &Memo, actions: &mut Vec<Action>) {
    let count = |node: usize| {
        actions
            .iter()
            .filter(|action| action.node() == Some(node))
            .count()
    };
    let first = (0..NODES)
        .filter(|node| count(*node) > 0 && goes_first(system, bound, *node, actions))
        .filter(|node| stays_within(system, bound, memo, *node, actions))
        .min_by_key(|node| count(*node));
    if let Some(first) = first {
        actions.retain(|action| action.node() == Some(first));
    }
}

/// True if no action of another node can give `node` a new choice before `node` itself has acted.
fn goes_first(system: &System, bound: &Bound, node: usize, actions: &[Action]) -> bool {
    if system.nodes[node].process.is_none() {
        return false;
    }
    let spent = &system.spent;
    let may_crash = |other: usize| {
        bound.crashes[other] && spent.crashes == 0 && system.nodes[other].process.is_some()
    };
    let may_break = |other: usize| {
        let pair = (node.min(other), node.max(other));
        bound.breaks.contains(&pair) && spent.breaks < bound.breaks_total
    };
    let may_restart = spent.restarts < bound.restarts;
    // A crash of either node uses up the one crash of the bound.
    let crash_is_open = actions.contains(&Action::Crash(node));
    (0..NODES).filter(|other| *other != node).all(|other| {
        if may_break(other) || (crash_is_open && may_crash(other)) {
            return false;
        }
        match system.network.channel(other, node).phase {
            Phase::Open => system.network.has_arrivals(other, node) && !may_crash(other),
            Phase::Broken => true,
            Phase::Closed => system.nodes[other].process.is_none() && !may_restart,
        }
    })
}

/// True if all actions of the node stay within the bound. The exploration does not follow a path out of the bound.
fn stays_within(
    system: &System,
    bound: &Bound,
    memo: &Memo,
    node: usize,
    actions: &[Action],
) -> bool {
    let process = system.nodes[node].process.as_ref();
    let own = actions.iter().filter(|action| action.node() == Some(node));
    own.filter_map(|action| input_of(system, *action))
        .all(|input| {
            process
                .is_some_and(|process| bound.includes(&memo.handle(process, input).process.value))
        })
}
