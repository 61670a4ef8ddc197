//! Prints a path of actions for a reader.

use std::fmt::Write;

use trireme_group::{
    Append, Body, Configuration, Incarnation, Message, Position, ReplicaId, Status, Term, Uuid,
    WireBody,
};

use crate::actions::Action;
use crate::network::NODES;
use crate::system::System;

/// One line for each action, with the state after it.
pub fn path(steps: Vec<(System, Option<Action>)>) -> String {
    let mut text = String::new();
    for (number, pair) in steps.windows(2).enumerate() {
        let ((before, Some(action)), (after, _)) = (&pair[0], &pair[1]) else {
            continue;
        };
        let what = action_in_words(before, *action);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>3} {what:<90} {}", number + 1, processes(after));
    }
    if let Some(breach) = steps.last().and_then(|(system, _)| system.breach.as_ref()) {
        let _ = writeln!(text, "    {}: {}", breach.property, breach.text);
    }
    text
}

fn action_in_words(system: &System, action: Action) -> String {
    let name = |node: usize| letter(0xa0 + node as u8);
    match action {
        Action::Submit(node) => format!("{} submits", name(node)),
        Action::Deliver { from, to } => {
            let channel = system.network.channel(from, to);
            let bulk = channel.bulk_payloads.front().filter(|_| channel.told);
            let what = bulk.map_or("connected".into(), |bulk| {
                let each: Vec<_> = bulk.value.iter().map(in_words).collect();
                each.join("; ")
            });
            format!("{} -> {}: {what}", name(from), name(to))
        }
        Action::Notice { at, of } => format!("{} loses its connection to {}", name(at), name(of)),
        Action::Refused { at, of } => format!("{} sees that {} does not run", name(at), name(of)),
        Action::Persisted(node) => format!("{} has its promise on disk", name(node)),
        Action::Wait(node) => format!("{} waits", name(node)),
        Action::Beat(node) => format!("{} has a heartbeat due", name(node)),
        Action::Crash(node) => format!("{} crashes", name(node)),
        Action::Restart(node) => format!("{} starts again", name(node)),
        Action::Break(a, b) => format!("{} - {} breaks", name(a), name(b)),
        Action::Connect(a, b) => format!("{} - {} connects", name(a), name(b)),
    }
}

/// For each process: role, term, component state, commit point and log end.
fn processes(system: &System) -> String {
    let each = (0..NODES).map(|node| match system.nodes[node].running() {
        None => "-".into(),
        Some(process) => {
            let group = &process.group;
            let leadership = if group.is_leader() { "*" } else { "" };
            let (component_state, term) = (group.component_state(), term(group.term()));
            let name = incarnation(process.incarnation);
            let component_state = &format!("{component_state:?}")[..1];
            format!(
                "{name}{leadership} {term} {component_state} {}/{}",
                group.commit(),
                group.end()
            )
        }
    });
    each.collect::<Vec<_>>().join(" | ")
}

fn letter(byte: u8) -> String {
    char::from(b'A' + (byte & 0x0f)).to_string()
}

fn uuid(uuid: Uuid) -> String {
    letter(uuid.0[0])
}

fn replica(replica: ReplicaId) -> String {
    uuid(replica.0)
}

fn incarnation(incarnation: Incarnation) -> String {
    format!("{}{}", uuid(incarnation.0), incarnation.0.0[1])
}

fn term(term: Term) -> String {
    format!("{}{}", term.number, replica(term.replica))
}

fn members(configuration: &Configuration) -> String {
    let each = configuration.members.iter().map(|m| {
        let vote = if m.voter { "" } else { "(learner)" };
        format!("{}{vote}", incarnation(m.incarnation))
    });
    format!(
        "view {} [{}]",
        configuration.number,
        each.collect::<Vec<_>>().join(" ")
    )
}

fn body(body: &Body) -> String {
    match body {
        Body::TermStart => "start".into(),
        Body::Configuration(configuration) => members(configuration),
        Body::Submission { id, .. } => format!("{}/{}", incarnation(id.incarnation), id.number),
        Body::Voided { id } => format!("void {}/{}", incarnation(id.incarnation), id.number),
    }
}

fn append(append: &Append) -> String {
    let entry =
        |position: Position, at: Term, what: String| format!("{position}@{}={what}", term(at));
    let entries = append.entries.iter().map(|e| match &e.body {
        WireBody::Full(full) => entry(e.position, e.term, body(full)),
        WireBody::Reference { id, .. } => {
            let what = format!("ref {}/{}", incarnation(id.incarnation), id.number);
            entry(e.position, e.term, what)
        }
    });
    let entries: Vec<_> = entries.collect();
    format!(
        "append {} after {}@{}: [{}] ack {} commit {}",
        term(append.term),
        append.prev_position,
        term(append.prev_term),
        entries.join(", "),
        append.ack,
        append.commit
    )
}

fn status(status: &Status) -> String {
    let leadership = if status.leader { "leader " } else { "" };
    format!(
        "status {leadership}{} {:?} view {} ack {} end {} commit {}",
        term(status.term),
        status.component_state,
        status.configuration_number,
        status.ack,
        status.end,
        status.commit
    )
}

fn in_words(message: &Message) -> String {
    match message {
        Message::Status(s) => status(s),
        Message::Submit { number, payload } => {
            format!(
                "submit {number}{}",
                if payload.is_some() { "" } else { " void" }
            )
        }
        Message::Append(a) => append(a),
        Message::Ack {
            term: b,
            position,
            commit,
        } => format!("ack {} {position} commit {commit}", term(*b)),
        Message::Summary { term: b, summary } => {
            format!(
                "summary {} end {} commit {}",
                term(*b),
                summary.end,
                summary.commit
            )
        }
        Message::Install {
            term: b,
            checkpoint,
            intact_at,
        } => format!(
            "install {} at {} intact at {intact_at}",
            term(*b),
            checkpoint.position
        ),
        Message::PreVote { term: b } => format!("pre-vote {}?", term(*b)),
        Message::PreVoteReply { term: b, granted } => {
            format!("pre-vote {} {granted}", term(*b))
        }
        Message::Prepare { term: b, .. } => format!("prepare {}", term(*b)),
        Message::Promise(promise) => format!(
            "promise {} end {}@{} commit {}{}",
            term(promise.term),
            promise.summary.end,
            term(promise.summary.end_term),
            promise.summary.commit,
            if promise.amnesiac { " amnesiac" } else { "" }
        ),
        Message::Refuse { promised } => format!("refuse, promised {}", term(*promised)),
        Message::Join(join) => format!("join, knows view {}", join.known_number),
        other => format!("{other:?}"),
    }
}
