//! The messages of a lying member: changed a little, or made up to fit the recipient's state.

mod change;

use bytes::Bytes;

use super::dice::Dice;
use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Member};
use crate::entry::Body;
use crate::group::Group;
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId, Term};
use crate::membership::own_status;
use crate::message::{
    Append, BulkPayload, ComponentState, DatabaseProof, Join, Link, Message, Outlook, Preference,
    Promise, Proof, Source, Status, Summary, WireBody, WireEntry,
};

/// A liar and the recipient, with the bytes that decide the lies.
pub(super) struct Liar<'a, 'b> {
    pub dice: &'a mut Dice<'b>,
    pub me: &'a Group,
    pub to: &'a Group,
    /// All processes that run, or ran earlier.
    pub known: &'a [Member],
}

impl Liar<'_, '_> {
    fn member(&mut self) -> Member {
        let mut member = self.dice.pick(self.known).cloned().unwrap_or_default();
        match self.dice.below(12) {
            0 => member.replica = ReplicaId(self.dice.uuid()),
            1 => member.incarnation = Incarnation(self.dice.uuid()),
            2 => member.weight = self.dice.byte(),
            3 => member.full_weight = self.dice.byte(),
            4 => member.voter = !member.voter,
            5 => member.arbitrator = !member.arbitrator,
            6 => member.name = "n".repeat(self.dice.below(9)),
            _ => {}
        }
        member
    }

    fn incarnation(&mut self) -> Incarnation {
        match self.dice.below(8) {
            0 => Incarnation(self.dice.uuid()),
            _ => self.member().incarnation,
        }
    }

    fn position(&mut self) -> Position {
        let (me, to) = (self.me, self.to);
        let near = [
            to.end(),
            to.commit(),
            me.end(),
            me.commit(),
            to.matching.agreed(),
        ];
        let near = near[self.dice.below(near.len())];
        self.dice.near(near)
    }

    /// A term, most often of the liar's replica and one that the recipient would obey.
    fn term(&mut self) -> Term {
        let promised = self.to.vote.promised();
        let number = match self.dice.below(4) {
            0 => self.dice.near(promised.number),
            1 if promised.replica == self.me.my_replica() => promised.number,
            _ => promised.number + 1,
        };
        let replica = match self.dice.below(8) {
            0 => self.member().replica,
            _ => self.me.my_replica(),
        };
        Term { number, replica }
    }

    fn id(&mut self) -> SubmissionId {
        let incarnation = self.incarnation();
        let numbers = &self.to.log.committed().numbers;
        let replica = self.known.iter().find(|m| m.incarnation == incarnation);
        let last = replica.and_then(|m| numbers.last(m.replica, incarnation));
        let number = self.dice.near(last.unwrap_or(0) + 1);
        SubmissionId {
            incarnation,
            number,
        }
    }

    fn payload(&mut self) -> Bytes {
        let len = match self.dice.below(4) {
            0 => 100 + self.dice.below(400),
            _ => self.dice.below(20),
        };
        vec![self.dice.byte(); len].into()
    }

    fn configuration(&mut self) -> Configuration {
        let mut configuration = match self.dice.below(3) {
            0 => self.to.configuration().clone(),
            _ => self.to.log.latest().clone(),
        };
        for _ in 0..self.dice.below(4) {
            let index = self.dice.below(configuration.members.len());
            match self.dice.below(8) {
                0 if !configuration.members.is_empty() => {
                    configuration.members.remove(index);
                }
                1 | 2 => {
                    let member = self.member();
                    configuration.members.push(member);
                }
                3 => configuration.number = self.dice.near(configuration.number),
                4 => {
                    configuration.override_id = Some(self.dice.uuid());
                    configuration.fork_after = self.position();
                }
                5 => configuration.override_id = None,
                _ => {
                    if let Some(member) = configuration.members.get_mut(index) {
                        member.weight = self.dice.byte() % 3;
                    }
                }
            }
        }
        if self.dice.one_in(2) {
            configuration.sort();
        }
        configuration
    }

    fn wire_body(&mut self) -> WireBody {
        WireBody::Full(match self.dice.below(8) {
            0 => Body::TermStart,
            1 | 2 => Body::Configuration(self.configuration()),
            3 => Body::Voided { id: self.id() },
            4..=6 => Body::Submission {
                id: self.id(),
                payload: self.payload(),
            },
            _ => {
                let (id, payload) = (self.id(), self.payload());
                let digest = crc32c::crc32c(&payload);
                let len = match self.dice.below(6) {
                    0 => self.dice.number() as u32,
                    _ => payload.len() as u32,
                };
                return WireBody::Reference { id, len, digest };
            }
        })
    }

    fn append(&mut self) -> Append {
        let term = self.term();
        let prev_position = match self.dice.below(4) {
            0 => self.position(),
            1 => self.to.commit(),
            _ => self.to.end(),
        };
        let known = self.to.log.tail().term_at(prev_position);
        let incoming = self.to.matching.incoming().back();
        let (prev_position, prev_term) = match incoming.filter(|_| self.dice.one_in(2)) {
            Some(last) => (last.position, last.term),
            None => (prev_position, known.unwrap_or(self.to.vote.promised())),
        };
        let mut append = Append {
            term,
            prev_position,
            prev_term,
            entries: Vec::new(),
            ack: self.position(),
            commit: self.position(),
        };
        let mut last = (prev_position, prev_term);
        for _ in 0..self.dice.below(6) {
            last.0 = last.0.saturating_add(1);
            if self.dice.one_in(4) {
                last.1 = last.1.max(term);
            }
            append.entries.push(WireEntry {
                position: last.0,
                term: last.1,
                body: self.wire_body(),
            });
        }
        append
    }

    fn summary(&mut self) -> Summary {
        let from = match self.dice.below(2) {
            0 => self.to,
            _ => self.me,
        };
        let mut summary = from.log.tail().summary(from.commit());
        match self.dice.below(8) {
            0 => summary.commit = self.position(),
            1 => summary.end = self.position(),
            2 => summary.end_term = self.term(),
            3 => {
                let run = (self.term(), self.position(), self.position());
                summary.runs.push(run);
            }
            4 => {
                summary.runs.pop();
            }
            5 => summary = Summary::default(),
            _ => {}
        }
        summary
    }

    fn status(&mut self) -> Status {
        let me = self.me;
        let mut status = own_status(me.branches(), &me.vote, &me.matching, &me.role);
        for _ in 0..=self.dice.below(4) {
            match self.dice.below(12) {
                0 => status.term = self.term(),
                1 => (status.leader, status.term) = (true, self.term()),
                2 => status.component_state = self.component_state(),
                3 => status.history = self.dice.uuid(),
                4 => status.overrides.push(self.dice.uuid()),
                5 => {
                    status.overrides.pop();
                }
                6 => status.configuration_number = self.dice.near(status.configuration_number),
                7 => {
                    status.members = vec![self.incarnation(), self.to.me()];
                }
                8 => status.ack = self.position(),
                9 => status.end = self.position(),
                10 => status.commit = self.position(),
                _ => status.outlook = self.outlook(),
            }
        }
        status
    }

    fn component_state(&mut self) -> ComponentState {
        [
            ComponentState::Outside,
            ComponentState::Primary,
            ComponentState::NonPrimary,
        ][self.dice.below(3)]
    }

    fn outlook(&mut self) -> Outlook {
        let now = self.to.context.now();
        let links = 0..self.dice.below(4);
        let links = links.map(|_| Link {
            peer: self.incarnation(),
            echo_ms: self.dice.near(now),
            held_ms: self.dice.number() as u32 >> self.dice.below(32),
            round_trip_us: self.dice.number() as u32 >> self.dice.below(32),
        });
        let links = links.collect();
        Outlook {
            preference: [Preference::Auto, Preference::Prefer, Preference::Never]
                [self.dice.below(3)],
            able: self.dice.one_in(2),
            stamp_ms: self.dice.near(now),
            links,
        }
    }

    fn checkpoint(&mut self) -> Checkpoint {
        let mut checkpoint = match self.dice.below(2) {
            0 => self.to.log.committed().clone(),
            _ => self.me.log.committed().clone(),
        };
        match self.dice.below(8) {
            0..=3 => checkpoint.position = self.position(),
            4 => checkpoint.term = self.term(),
            5 => checkpoint.configuration = self.configuration(),
            6 => checkpoint.overrides.push(self.dice.uuid()),
            _ => checkpoint.numbers = Default::default(),
        }
        checkpoint
    }

    fn promise(&mut self) -> Promise {
        let configurations = 0..self.dice.below(3);
        let configurations = configurations.map(|_| (self.position(), self.configuration()));
        Promise {
            configurations: configurations.collect(),
            term: match self.dice.below(4) {
                0 => self.term(),
                _ => self.to.vote.promised(),
            },
            summary: self.summary(),
            amnesiac: self.dice.one_in(4),
            lost_views: self.dice.one_in(4),
            proof: self.proof(),
            withdrawn: match self.dice.below(3) {
                0 => vec![SubmissionId {
                    incarnation: match self.dice.one_in(2) {
                        true => self.me.me(),
                        false => self.incarnation(),
                    },
                    number: self.dice.near(1),
                }],
                _ => Vec::new(),
            },
        }
    }

    fn proof(&mut self) -> Proof {
        let seqno = self.dice.number();
        Proof {
            known: self.dice.number(),
            database: match self.dice.below(3) {
                0 => DatabaseProof::Nothing,
                1 => DatabaseProof::UpTo { seqno },
                _ => DatabaseProof::Unclear,
            },
        }
    }

    fn bulk(&mut self) -> BulkPayload {
        BulkPayload {
            number: self.dice.near(1),
            len: match self.dice.below(8) {
                0 => self.dice.number() as u32,
                _ => 1 + self.dice.below(400) as u32,
            },
            head: self.dice.below(20) as u32,
            digest: crc32c::crc32c(&[0; 300]),
        }
    }

    fn source(&mut self) -> Source {
        match self.dice.below(2) {
            0 => Source::Offered {
                bulk: self.dice.near(1),
            },
            _ => Source::Logged {
                position: self.position(),
                id: self.id(),
            },
        }
    }

    /// Makes any message that the recipient may believe.
    pub fn make(&mut self) -> Message {
        let forced = self.dice.one_in(8).then_some(crate::ids::Uuid([9; 16]));
        match self.dice.below(40) {
            kind @ 0..=26 => self.about_the_log(kind, forced),
            kind => self.about_members_and_payloads(kind),
        }
    }

    fn about_the_log(&mut self, kind: usize, forced: Option<crate::ids::Uuid>) -> Message {
        match kind {
            0..=7 => Message::Append(self.append()),
            8..=11 => Message::Status(self.status()),
            12 | 13 => Message::Ack {
                term: self.to.vote.promised(),
                position: self.position(),
                commit: self.position(),
            },
            14 => Message::Ack {
                term: self.term(),
                position: self.position(),
                commit: self.position(),
            },
            15 | 16 => Message::Summary {
                term: self.to.vote.promised(),
                summary: self.summary(),
            },
            17 => Message::Summary {
                term: self.term(),
                summary: self.summary(),
            },
            18 => Message::Install {
                term: self.term(),
                checkpoint: self.checkpoint(),
                intact_at: self.position(),
            },
            19 => Message::PreVote { term: self.term() },
            20 => Message::PreVoteReply {
                term: Term {
                    number: self.to.vote.promised().number + 1,
                    replica: self.to.my_replica(),
                },
                granted: true,
            },
            21 => Message::Prepare {
                term: self.term(),
                forced,
            },
            22..=24 => Message::Promise(self.promise()),
            25 => Message::Refuse {
                promised: self.term(),
            },
            _ => Message::TakeLeadership {
                number: self.dice.near(self.to.vote.promised().number),
                forced,
            },
        }
    }

    fn about_members_and_payloads(&mut self, kind: usize) -> Message {
        match kind {
            27 => Message::Join(Join {
                member: match self.dice.below(2) {
                    0 => self.member(),
                    _ => self.me.context.config().me.clone(),
                },
                history: self.to.history(),
                known_number: self.dice.near(self.to.log.latest().number),
                overrides: self.to.log.committed().overrides.clone(),
            }),
            28 => Message::Leave,
            29 => Message::Weight {
                weight: self.dice.byte() % 4,
            },
            30 => Message::Expects {
                nodes: 3,
                promised: self.term(),
            },
            31 => Message::LogEnd {
                round: self.dice.number(),
            },
            32 => Message::LogEndReply {
                round: self.dice.near(1),
                term: self.to.vote.promised(),
                end: self.position(),
            },
            33 => Message::Offer {
                oldest: self.dice.near(1),
                bulk: self.dice.one_in(2).then_some(self.bulk()),
            },
            34 => Message::Fetch {
                source: self.source(),
                offset: self.dice.near(64) as u32,
                len: self.dice.near(64) as u32,
            },
            35 => Message::Part {
                source: self.source(),
                offset: self.dice.near(64) as u32,
                bytes: self.payload(),
            },
            36 => Message::Held {
                bulk: self.dice.near(1),
            },
            37 => {
                let bulk = self.bulk();
                Message::SubmitBulk {
                    number: self.id().number,
                    bulk,
                    head: vec![1; bulk.head as usize].into(),
                }
            }
            38 => Message::Submit {
                number: self.id().number,
                payload: self.dice.one_in(2).then(|| vec![2; 7].into()),
            },
            _ => Message::JoinRefused {
                reason: "no".into(),
            },
        }
    }
}
