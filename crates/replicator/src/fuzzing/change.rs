//! Changes a correct node's messages as a liar does: some fields change, and the recipient can still read the message.

use bytes::Bytes;
use trireme_certification::{Certification, Seqno};
use trireme_group::fuzzing::Dice;
use trireme_group::{Delivery, Incarnation};

use crate::control::Control;
use crate::flags;
use crate::history::Recorded;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::peer_message::PeerMessage;
use crate::replicator::Replicator;
use crate::writeset::{CONN_AT, EPOCH_AT, FLAGS_AT, KEYS_AT, LAST_SEEN_AT, PREVIOUS_AT, TRX_AT};

/// Combinations of write-set flags that the replicator distinguishes.
pub(crate) const FLAGS: [u32; 8] = [
    flags::TRX_START | flags::TRX_END,
    flags::TRX_START,
    0,
    flags::TRX_END,
    flags::ROLLBACK,
    flags::ISOLATION | flags::TRX_START | flags::TRX_END,
    flags::TRX_START | flags::TRX_END | flags::IMPLICIT_DEPS | flags::PA_UNSAFE,
    flags::MASK,
];

/// Changes the payload of a submission.
pub fn payload(dice: &mut Dice, payload: &Bytes) -> Bytes {
    let lie = match Message::decode(payload) {
        Ok(Message::WriteSet(_)) => return write_set(dice, payload),
        Ok(message) => match dice.one_in(4) {
            true => other(dice),
            false => ordered(dice, message),
        },
        Err(_) => other(dice),
    };
    lie.encode()
}

/// Changes a peer message of the replicator `me`.
pub fn peer_message(dice: &mut Dice, me: &Replicator, bytes: &Bytes) -> Bytes {
    let Ok(mut message) = PeerMessage::decode(bytes.clone()) else {
        return bytes.clone();
    };
    match &mut message {
        PeerMessage::SnapshotRequest { round, at_least } => match dice.below(2) {
            0 => *round = dice.near(*round),
            _ => *at_least = dice.near(*at_least),
        },
        PeerMessage::SnapshotChunk(chunk) => {
            let whole = me
                .context()
                .control()
                .cloned()
                .filter(|_| chunk.offset == 0);
            match (dice.below(4), whole) {
                (0..=2, Some(mut whole)) => {
                    control(dice, &mut whole);
                    chunk.part = whole.encode();
                    chunk.total = chunk.part.len() as u64;
                }
                (0, None) => chunk.round = dice.near(chunk.round),
                (1, None) => chunk.offset = dice.near(chunk.offset),
                (2, None) => chunk.part = chunk.part.slice(..chunk.part.len() / 2),
                _ => chunk.total = dice.near(chunk.total),
            }
        }
        PeerMessage::SnapshotRefused { round } => *round = dice.near(*round),
        PeerMessage::IstPull { from } => *from = seqno(dice, *from),
        PeerMessage::IstChunk { from, records } => {
            let index = dice.below(records.len());
            match (dice.below(6), records.get_mut(index)) {
                (0, _) => *from = seqno(dice, *from),
                (1, _) => drop(records.pop()),
                (_, Some(known)) => record(dice, known),
                (_, None) => *from = seqno(dice, *from),
            }
        }
        PeerMessage::IstPullPart { from, offset } => match dice.below(2) {
            0 => *from = seqno(dice, *from),
            _ => *offset = dice.near(u64::from(*offset)) as u32,
        },
        PeerMessage::IstPart(part) => match dice.below(5) {
            0 => part.len = dice.near(u64::from(part.len)) as u32,
            1 => part.offset = dice.near(u64::from(part.offset)) as u32,
            2 => part.digest = dice.number() as u32,
            3 => part.bytes = part.bytes.slice(..part.bytes.len() / 2),
            _ => record(dice, &mut part.record),
        },
        PeerMessage::FlowStop | PeerMessage::FlowContinue | PeerMessage::FlowPace { .. } => {
            let per_second = 1 + (dice.number() as u32 >> dice.below(32)) / 2;
            let all = [
                PeerMessage::FlowStop,
                PeerMessage::FlowContinue,
                PeerMessage::FlowPace { per_second },
            ];
            let [stop, go_on, pace] = all;
            message = match dice.below(3) {
                0 => stop,
                1 => go_on,
                _ => pace,
            };
        }
    }
    message.encode()
}

/// Changes some fields of a control state.
pub(crate) fn control(dice: &mut Dice, control: &mut Control) {
    for _ in 0..=dice.below(2) {
        let near = seqno(dice, control.seqno());
        match dice.below(9) {
            0 => control.position = dice.near(control.position),
            1 => {
                let length = 1 + dice.below(50) as i64;
                control.certification = Certification::new(near.max(0), length);
            }
            2 => control.forks.add_override(dice.uuid(), near),
            3 => control.members.tampered().1.clear(),
            4 => {
                let (_, states, _) = control.members.tampered();
                states.values_mut().for_each(|m| m.applied = near);
            }
            5 => {
                let state = [NodeState::Joiner, NodeState::Synced][dice.below(2)];
                let (_, states, _) = control.members.tampered();
                states.values_mut().for_each(|m| m.state = state);
            }
            6 => control.members.tampered().0.members.clear(),
            7 => control.history = dice.uuid(),
            _ => control.views = Default::default(),
        }
    }
}

/// Changes a field of an entry that a joiner pulls.
pub(crate) fn record(dice: &mut Dice, record: &mut Recorded) {
    match (dice.below(5), &mut record.delivery) {
        (0, _) => record.seqno = seqno(dice, record.seqno),
        (1, _) => record.depends_on = seqno(dice, record.depends_on),
        (2, _) => record.failed = !record.failed,
        (3, _) => record.position = dice.near(record.position),
        (_, Delivery::Submission { payload: known, .. }) => *known = payload(dice, known),
        (_, Delivery::Configuration(configuration)) => {
            configuration.number = dice.near(configuration.number);
        }
    }
}

/// Returns a seqno near this one, or at a limit.
pub(crate) fn seqno(dice: &mut Dice, near: Seqno) -> Seqno {
    match dice.below(12) {
        0 => i64::MIN,
        1 => i64::MAX - dice.below(3) as i64,
        2 => (1 << 62) - 1 - dice.below(3) as i64,
        3 => -1 - dice.below(3) as i64,
        4 => dice.number() as i64,
        5 => 0,
        _ => near.saturating_add(dice.below(5) as i64 - 2),
    }
}

/// Changes a field of a write-set, but not the server's own bytes, which no node understands.
fn write_set(dice: &mut Dice, payload: &Bytes) -> Bytes {
    let mut bytes = payload.to_vec();
    let mut put = |at: usize, number: u64| bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    let number_at = |at: usize| {
        let bytes = payload[at..at + 8]
            .try_into()
            .expect("8 bytes of the header");
        u64::from_le_bytes(bytes)
    };
    match dice.below(8) {
        0 | 1 => {
            let flags = FLAGS[dice.below(FLAGS.len())];
            bytes[FLAGS_AT..LAST_SEEN_AT].copy_from_slice(&flags.to_le_bytes());
        }
        2 => put(
            LAST_SEEN_AT,
            seqno(dice, number_at(LAST_SEEN_AT) as i64) as u64,
        ),
        3 => put(
            PREVIOUS_AT,
            seqno(dice, number_at(PREVIOUS_AT) as i64) as u64,
        ),
        4 => put(EPOCH_AT, dice.near(number_at(EPOCH_AT))),
        5 => put(TRX_AT, dice.near(number_at(TRX_AT))),
        6 => put(CONN_AT, dice.near(number_at(CONN_AT))),
        _ => {
            let at = KEYS_AT + dice.below(bytes.len() - KEYS_AT);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = byte.wrapping_add(1);
            }
        }
    }
    Bytes::from(bytes)
}

fn ordered(dice: &mut Dice, message: Message) -> Message {
    match message {
        Message::StateRequest {
            request,
            mut local,
            preference,
            mut bypass,
        } => {
            match dice.below(3) {
                0 => bypass = !bypass,
                1 => local.uuid = dice.uuid(),
                _ => local.seqno = seqno(dice, local.seqno),
            }
            Message::StateRequest {
                request,
                local,
                preference,
                bypass,
            }
        }
        Message::Donated { rcode } => Message::Donated {
            rcode: dice.below(3) as i32 - 1 - rcode,
        },
        Message::Applied(at) => Message::Applied(seqno(dice, at)),
        Message::InDoubt(at) => Message::InDoubt(seqno(dice, at)),
        Message::Vote {
            seqno: at,
            ballot,
            policy,
            text,
        } => Message::Vote {
            seqno: seqno(dice, at),
            ballot: dice.near(ballot),
            policy: policy ^ (dice.byte() % 4),
            text,
        },
        _ => other(dice),
    }
}

/// Returns another message that a member may submit.
fn other(dice: &mut Dice) -> Message {
    match dice.below(9) {
        0 => Message::Joined,
        1 => Message::Synced,
        2 => Message::Donated {
            rcode: dice.below(3) as i32 - 1,
        },
        3 => Message::Desync,
        4 => Message::Resync,
        5 => Message::CaughtUp,
        6 => Message::LeaveOut(Incarnation(dice.uuid())),
        7 => Message::Applied(seqno(dice, 10)),
        _ => Message::Vote {
            seqno: seqno(dice, 10),
            ballot: dice.below(3) as u64,
            policy: dice.byte(),
            text: "x".repeat(dice.below(100)),
        },
    }
}
