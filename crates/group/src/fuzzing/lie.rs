//! Lies of one member in a cluster that another driver runs, such as the simulator.

use bytes::Bytes;

use super::dice::Dice;
use super::liar::Liar;
use crate::configuration::Member;
use crate::entry::Body;
use crate::group::Group;
use crate::message::{Message, WireBody};

/// Changes fields of a message that `me` sends to `to`, or replaces the whole message. None: `to` would ignore the lie.
pub fn lie(dice: &mut Dice, me: &Group, to: &Group, message: &Message) -> Option<Message> {
    let views = [me.log.latest(), to.log.latest(), to.configuration()];
    let members = views.iter().flat_map(|view| view.members.iter());
    let all = members.chain([&me.context.config().me, &to.context.config().me]);
    let known: Vec<Member> = all.cloned().collect();
    let mut lie = message.clone();
    let mut liar = Liar {
        dice,
        me,
        to,
        known: &known,
    };
    liar.change(&mut lie);
    (lie != *message && believes(to, me, &lie)).then_some(lie)
}

/// Changes only the payloads of a message that `me` sends to `to`, by `change`, which knows their format. None: the
/// message has no payload that changes, or `to` would ignore the lie.
pub fn lie_in_payloads(
    me: &Group,
    to: &Group,
    message: &Message,
    mut change: impl FnMut(&Bytes) -> Bytes,
) -> Option<Message> {
    let mut lie = message.clone();
    match &mut lie {
        Message::Submit {
            payload: Some(payload),
            ..
        } => *payload = change(payload),
        Message::Append(append) => {
            for entry in &mut append.entries {
                if let WireBody::Full(Body::Submission { payload, .. }) = &mut entry.body {
                    *payload = change(payload);
                }
            }
        }
        _ => {}
    }
    (lie != *message && believes(to, me, &lie)).then_some(lie)
}

fn believes(to: &Group, me: &Group, lie: &Message) -> bool {
    let from = me.me();
    to.peers.get(from).is_some() && to.accepts(from, lie)
}
