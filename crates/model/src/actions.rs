//! The actions that are possible in a state, and the state after each.

use crate::bound::{BEAT_MS, Bound, WAIT_MS};
use crate::memo::Memo;
use crate::network::{NODES, Phase};
use crate::process::{Input, replica};
use crate::system::System;
use trireme_group::ComponentState;

/// One step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client commits at a node.
    Submit(usize),
    /// The next thing that `from` sent arrives.
    Deliver {
        from: usize,
        to: usize,
    },
    /// A node notices that its connection broke; what is still under way is lost.
    Notice {
        at: usize,
        of: usize,
    },
    /// A node's attempt to reconnect is refused: there is no process.
    Refused {
        at: usize,
        of: usize,
    },
    /// A promise is on disk.
    Persisted(usize),
    /// Time passes at a node: [`WAIT_MS`], enough for its timers.
    Wait(usize),
    /// Time passes at a node: [`BEAT_MS`], enough for a heartbeat.
    Beat(usize),
    Crash(usize),
    Restart(usize),
    /// A connection breaks.
    Break(usize, usize),
    Connect(usize, usize),
}

/// Unordered pairs of nodes.
const PAIRS: [(usize, usize); NODES] = [(0, 1), (0, 2), (1, 2)];

/// Adds all actions that the bound allows in this state.
pub fn possible(system: &System, bound: &Bound, memo: &Memo, actions: &mut Vec<Action>) {
    let spent = &system.spent;
    for to in 0..NODES {
        let Some(process) = &system.nodes[to].process else {
            continue;
        };
        for from in (0..NODES).filter(|from| *from != to) {
            let channel = system.network.channel(from, to);
            if system.network.has_arrivals(from, to) {
                actions.push(Action::Deliver { from, to });
            }
            if channel.phase == Phase::Broken {
                actions.push(Action::Notice { at: to, of: from });
            }
            let other = &system.nodes[from];
            if channel.phase == Phase::Closed && other.process.is_none() {
                let action = Action::Refused { at: to, of: from };
                // A repeated refusal changes nothing in the process.
                let input = input_of(system, action);
                let changes = |input| memo.handle(process, input).process != *process;
                if input.is_some_and(changes) {
                    actions.push(action);
                }
            }
        }
        if process.value.writing.is_some() {
            actions.push(Action::Persisted(to));
        }
        let primary = process.value.group.component_state() == ComponentState::Primary;
        if primary && spent.submissions[to] < bound.submissions[to] {
            actions.push(Action::Submit(to));
        }
        if spent.waits[to] < bound.waits[to] {
            actions.push(Action::Wait(to));
        }
        if spent.beats[to] < bound.beats[to] {
            actions.push(Action::Beat(to));
        }
        if bound.crashes[to] && spent.crashes == 0 {
            actions.push(Action::Crash(to));
        }
    }
    for node in 0..NODES {
        if system.nodes[node].process.is_none() && spent.restarts < bound.restarts {
            actions.push(Action::Restart(node));
        }
    }
    for (a, b) in PAIRS {
        let breakable = bound.breaks.contains(&(a, b)) && spent.breaks < bound.breaks_total;
        if breakable && system.network.is_connected(a, b) {
            actions.push(Action::Break(a, b));
        }
        let run = |node: usize| system.nodes[node].process.is_some();
        if run(a) && run(b) && system.network.may_connect(a, b) {
            actions.push(Action::Connect(a, b));
        }
    }
}

impl Action {
    /// The node whose process or data directory the action changes; None if it changes two or none.
    pub fn node(self) -> Option<usize> {
        match self {
            Action::Submit(node)
            | Action::Deliver { to: node, .. }
            | Action::Notice { at: node, .. }
            | Action::Refused { at: node, .. }
            | Action::Persisted(node)
            | Action::Wait(node)
            | Action::Beat(node)
            | Action::Crash(node)
            | Action::Restart(node) => Some(node),
            Action::Break(..) | Action::Connect(..) => None,
        }
    }
}

/// The action as an input of the node's process; None if it is no input.
pub fn input_of(system: &System, action: Action) -> Option<Input> {
    Some(match action {
        Action::Submit(_) => Input::Submit,
        Action::Deliver { from, to } => {
            let channel = system.network.channel(from, to);
            match channel.bulk_payloads.front().filter(|_| channel.told) {
                None => Input::Up(replica(from as u8), channel.peer),
                Some(bulk) => Input::BulkPayload(channel.peer, bulk.clone()),
            }
        }
        Action::Notice { at, of } => Input::Down(system.network.channel(of, at).peer),
        Action::Refused { of, .. } => Input::Dead(system.last_incarnation(of)),
        Action::Persisted(_) => Input::Persisted,
        Action::Wait(_) => Input::Wait(WAIT_MS),
        Action::Beat(_) => Input::Wait(BEAT_MS),
        Action::Crash(_) | Action::Restart(_) | Action::Break(..) | Action::Connect(..) => {
            return None;
        }
    })
}

/// The state after `action`.
pub fn apply(system: &System, action: Action, bound: &Bound, memo: &Memo) -> System {
    let mut next = system.clone();
    next.seen = Default::default();
    match action {
        Action::Submit(node) => next.spent.submissions[node] += 1,
        Action::Deliver { from, to } => next.network.receive(from, to),
        Action::Notice { at, of } => next.network.close(of, at),
        Action::Refused { .. } | Action::Persisted(_) => {}
        Action::Wait(node) => next.spent.waits[node] += 1,
        Action::Beat(node) => next.spent.beats[node] += 1,
        Action::Crash(node) => {
            next.spent.crashes += 1;
            next.crash(node);
        }
        Action::Restart(node) => {
            next.spent.restarts += 1;
            next.start(node, bound);
        }
        Action::Break(a, b) => {
            next.spent.breaks += 1;
            next.network.break_off(a, b);
        }
        Action::Connect(a, b) => {
            let process = |node: usize| (node, system.last_incarnation(node));
            next.network.connect(process(a), process(b));
        }
    }
    if let (Some(node), Some(input)) = (action.node(), input_of(system, action)) {
        next.input(node, input, memo);
    }
    next
}
