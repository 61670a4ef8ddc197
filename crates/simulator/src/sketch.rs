//! The outputs of a core as numbers: fixed numbers for kinds, positions, ids, and hashes of payloads. A sketch has no
//! Debug text, no text for people and no encoded bytes, so it stays equal when names, texts and formats change.

use std::hash::{Hash, Hasher};

use trireme_engine::HostAction;
use trireme_group::{Body, Delivery, Entry, Message, Source, WireBody};
use trireme_replicator::{Answer, Level};

use crate::seen::Seen;

/// A hash that is the same in every run (FNV-1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sketch(u64);

impl Sketch {
    /// An empty sketch of this kind.
    pub fn of(kind: u64) -> Sketch {
        Sketch(0xcbf2_9ce4_8422_2325).and(&kind)
    }

    /// Adds a part: a number, an id, a payload, or a plain record of them.
    pub fn and(mut self, part: &impl Hash) -> Sketch {
        part.hash(&mut self);
        self
    }

    /// The number of the whole sketch.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl Hasher for Sketch {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A message from group to group.
pub fn message(message: &Message) -> Sketch {
    match message {
        Message::Status(s) => Sketch::of(1)
            .and(&(s.term, s.leader, s.component_state as u8, s.history))
            .and(&(&s.overrides, s.configuration_number, &s.members))
            .and(&(s.ack, s.end, s.commit))
            .and(&(
                s.outlook.preference as u8,
                s.outlook.able,
                s.outlook.stamp_ms,
            ))
            .and(&s.outlook.links),
        Message::Submit { number, payload } => Sketch::of(2).and(&(number, payload)),
        Message::Append(a) => {
            let head = (a.term, a.prev_position, a.prev_term, a.ack, a.commit);
            let sketch = Sketch::of(3).and(&head).and(&a.entries.len());
            a.entries.iter().fold(sketch, |sketch, entry| {
                let body = match &entry.body {
                    WireBody::Full(full) => body(full),
                    WireBody::Reference { id, len, digest } => {
                        Sketch::of(5).and(&(id, len, digest))
                    }
                };
                sketch.and(&(entry.position, entry.term, body.number()))
            })
        }
        Message::Ack {
            term,
            position,
            commit,
        } => Sketch::of(4).and(&(term, position, commit)),
        Message::Summary { term, summary } => Sketch::of(5).and(&(term, summary)),
        Message::Install {
            term,
            checkpoint,
            intact_at,
        } => Sketch::of(6).and(&(term, checkpoint, intact_at)),
        Message::PreVote { term } => Sketch::of(7).and(term),
        Message::PreVoteReply { term, granted } => Sketch::of(8).and(&(term, granted)),
        Message::Prepare { term, forced } => Sketch::of(9).and(&(term, forced)),
        Message::Promise(promise) => Sketch::of(10).and(promise),
        Message::Refuse { promised } => Sketch::of(11).and(promised),
        Message::TakeLeadership { number, forced } => Sketch::of(12).and(&(number, forced)),
        Message::Join(join) => Sketch::of(13).and(join),
        Message::JoinRefused { .. } => Sketch::of(14),
        Message::Leave => Sketch::of(15),
        Message::Weight { weight } => Sketch::of(16).and(weight),
        Message::Expects { nodes, promised } => Sketch::of(17).and(&(nodes, promised)),
        Message::LogEnd { round } => Sketch::of(18).and(round),
        Message::LogEndReply { round, term, end } => Sketch::of(19).and(&(round, term, end)),
        Message::Offer { oldest, bulk } => Sketch::of(20).and(&(oldest, bulk)),
        Message::Fetch {
            source: from,
            offset,
            len,
        } => source(21, from).and(&(offset, len)),
        Message::Part {
            source: from,
            offset,
            bytes,
        } => source(22, from).and(&(offset, bytes)),
        Message::Held { bulk } => Sketch::of(23).and(bulk),
        Message::SubmitBulk { number, bulk, head } => Sketch::of(24).and(&(number, bulk, head)),
    }
}

fn source(kind: u64, source: &Source) -> Sketch {
    match source {
        Source::Offered { bulk } => Sketch::of(kind).and(&(1u8, bulk)),
        Source::Logged { position, id } => Sketch::of(kind).and(&(2u8, position, id)),
    }
}

fn body(body: &Body) -> Sketch {
    match body {
        Body::TermStart => Sketch::of(1),
        Body::Configuration(configuration) => Sketch::of(2).and(configuration),
        Body::Submission { id, payload } => Sketch::of(3).and(&(id, payload)),
        Body::Voided { id } => Sketch::of(4).and(id),
    }
}

/// An entry that goes into the log.
pub fn entry(entry: &Entry) -> Sketch {
    body(&entry.body).and(&(entry.position, entry.term))
}

/// A delivery of the group to the replicator.
pub fn delivery(position: u64, delivery: &Delivery) -> Sketch {
    match delivery {
        Delivery::Submission { id, payload } => Sketch::of(1).and(&(position, id, payload)),
        Delivery::Configuration(configuration) => Sketch::of(2).and(&(position, configuration)),
    }
}

/// An action of the replicator for its host.
pub fn action(action: &HostAction) -> Sketch {
    match action {
        HostAction::Answer { ticket, answer } => {
            let Answer {
                code,
                gtid,
                depends_on,
                replay,
                lives_on,
                loss: _,
            } = answer;
            let replay = replay.as_ref().map(|a| (a.gtid.seqno, a.flags, &a.data));
            Sketch::of(1)
                .and(&(ticket, *code as i32, gtid.uuid, gtid.seqno))
                .and(&(depends_on, lives_on, replay))
        }
        HostAction::WakeAppliers { n } => Sketch::of(2).and(n),
        HostAction::SaveState {
            gtid,
            safe_to_bootstrap,
        } => Sketch::of(3).and(&(gtid.uuid, gtid.seqno, safe_to_bootstrap)),
        HostAction::MarkUnsafe => Sketch::of(4),
        HostAction::MarkSafe => Sketch::of(5),
        HostAction::MarkCorrupt => Sketch::of(6),
        HostAction::MarkUncorrupt => Sketch::of(7),
        HostAction::Admitted => Sketch::of(8),
        HostAction::Closed => Sketch::of(9),
        HostAction::Log { level, .. } => Sketch::of(10).and(&match level {
            Level::Error => 1u8,
            Level::Warn => 2,
            Level::Info => 3,
            Level::Debug => 4,
        }),
        HostAction::Fatal { .. } => Sketch::of(11),
    }
}

/// An event that the server's database or its clients got from a node. None: another sketch covers it.
pub fn seen(seen: &Seen) -> Option<Sketch> {
    Some(match seen {
        Seen::Ordered {
            history,
            seqno,
            writer,
            view,
            writes,
            applied,
        } => Sketch::of(101).and(&(history, seqno, writer, view, writes, applied)),
        Seen::Database {
            history,
            seqno,
            digest,
        } => Sketch::of(102).and(&(history, seqno, digest)),
        Seen::Snapshot {
            history,
            seqno,
            digest,
            donor: _,
        } => Sketch::of(103).and(&(history, seqno, digest)),
        Seen::Read {
            trx,
            key,
            len,
            digest,
            ..
        } => Sketch::of(104).and(&(trx, key, len, digest)),
        Seen::Ended {
            trx,
            code,
            seqno,
            certain,
            ..
        } => Sketch::of(105).and(&(trx, *code as i32, seqno, certain)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trireme_group::{Incarnation, SubmissionId, Term};

    use super::*;

    #[test]
    fn texts_for_people_do_not_count_and_numbers_do() {
        let refused = |reason: &str| {
            let reason = reason.to_owned();
            message(&Message::JoinRefused { reason })
        };
        assert_eq!(refused("one"), refused("another"));
        let ack = |position| Message::Ack {
            term: Term::default(),
            position,
            commit: 0,
        };
        assert_ne!(message(&ack(1)), message(&ack(2)));
        let submission = |payload: &'static [u8]| {
            let body = Body::Submission {
                id: SubmissionId {
                    incarnation: Incarnation::default(),
                    number: 1,
                },
                payload: Bytes::from_static(payload),
            };
            let (position, term) = (1, Term::default());
            entry(&Entry {
                position,
                term,
                body,
            })
        };
        assert_ne!(submission(b"a"), submission(b"b"));
    }

    #[test]
    fn a_sketch_is_the_same_for_ever() {
        assert_eq!(message(&Message::Leave).number(), 0x43ad_db5f_5ec6_ac6a);
    }
}
