//! Short histories for the invariants' tests: they begin with a correct history of three nodes.

use bytes::Bytes;
use trireme_group::{
    Body, Checkpoint, ComponentState, Configuration, Delivery, Entry, Incarnation, Member,
    Position, ReplicaId, SubmissionId, Term, Uuid,
};
use trireme_replicator::{Code, Seqno};

use super::all;
use crate::seen::{ClientTrx, NodeId, Seen, Sight, roll};

/// The history of the stories.
pub const HISTORY: Uuid = Uuid([7; 16]);
/// The position of an empty database, in no history.
pub const NOWHERE: (Uuid, Seqno) = (Uuid::NIL, -1);

/// The events so far.
#[derive(Clone, Default)]
pub struct Story {
    sights: Vec<Sight>,
}

/// A term of n1.
pub fn term(number: u64) -> Term {
    Term {
        number,
        replica: ReplicaId(Uuid([1; 16])),
    }
}

pub fn incarnation(node: NodeId) -> Incarnation {
    Incarnation(Uuid([0x10 + node as u8; 16]))
}

/// A view with these nodes as members.
pub fn view(number: u64, nodes: &[NodeId]) -> Configuration {
    let member = |node: &NodeId| Member {
        incarnation: incarnation(*node),
        weight: 1,
        ..Member::default()
    };
    Configuration {
        number,
        members: nodes.iter().map(member).collect(),
        override_id: None,
        fork_after: 0,
    }
}

pub fn entry(position: Position, term: Term, body: Body) -> Entry {
    Entry {
        position,
        term,
        body,
    }
}

/// A submission of `node`.
pub fn submission(node: NodeId, number: u64, text: &'static str) -> Body {
    Body::Submission {
        id: SubmissionId {
            incarnation: incarnation(node),
            number,
        },
        payload: Bytes::from_static(text.as_bytes()),
    }
}

/// The delivery of this entry.
pub fn delivery(body: &Body) -> Delivery {
    match body.clone() {
        Body::Configuration(configuration) => Delivery::Configuration(configuration),
        Body::Submission { id, payload } => Delivery::Submission { id, payload },
        other => panic!("{other:?} is not delivered"),
    }
}

impl Story {
    /// A story of three nodes without logs and databases.
    pub fn new() -> Story {
        let mut story = Story::default();
        for node in 0..3 {
            story.see(node, Seen::Started { database: NOWHERE });
        }
        story
    }

    /// A story with logs: n1 founds (1, 2), all three are in view 2 (3), a submission of n2 (4) and of n3 (5).
    pub fn logs() -> Story {
        let mut story = Story::new();
        story.founds(0, 0);
        story.append(0, entry(1, term(1), Body::TermStart));
        story.commit_body(&[0], 2, Body::Configuration(view(1, &[0])));
        story.stands(0, ComponentState::Primary, 1);
        for node in [1, 2] {
            story.begins_anew(node, 2, 1, view(1, &[0]));
        }
        story.commit_body(&[0, 1, 2], 3, Body::Configuration(view(2, &[0, 1, 2])));
        for node in 0..3 {
            story.stands(node, ComponentState::Primary, 2);
        }
        story.commit_body(&[0, 1, 2], 4, submission(1, 1, "a"));
        story.commit_body(&[0, 1, 2], 5, submission(2, 1, "b"));
        story
    }

    /// A story with databases: n1 founds (1), view (2), transactions 100 (3) and 101 (4) write row 1; n2 and n3 got
    /// SSTs at 2.
    pub fn databases() -> Story {
        let mut story = Story::new();
        story.founds(0, 0);
        story.append(0, entry(1, term(1), Body::TermStart));
        story.commit_body(&[0], 2, Body::Configuration(view(1, &[0])));
        story.ordered_view(0, 1, 11).ordered_view(0, 2, 12);
        story.database(0, 2, 2000);
        for node in [1, 2] {
            story.snapshot(node, 2, 2000, 0);
        }
        story.write(0, 3, 100, &[1]).write(0, 4, 101, &[1]);
        for node in [1, 2] {
            story.ordered(node, 3, 100, &[1]).database(node, 3, 3000);
            story.ordered(node, 4, 101, &[1]).database(node, 4, 4000);
        }
        story
    }

    pub fn see(&mut self, node: NodeId, what: Seen) -> &mut Story {
        let at_us = self.sights.len() as u64;
        self.sights.push(Sight { at_us, node, what });
        self
    }

    pub fn append(&mut self, node: NodeId, entry: Entry) -> &mut Story {
        self.see(node, Seen::Appended { entry })
    }

    pub fn deliver(&mut self, node: NodeId, position: Position, body: &Body) -> &mut Story {
        let delivery = delivery(body);
        self.see(node, Seen::Delivered { position, delivery })
    }

    /// Appends an entry, and delivers it on these nodes, in term 1.
    pub fn commit_body(&mut self, nodes: &[NodeId], at: Position, body: Body) -> &mut Story {
        self.commit_in(1, nodes, at, body)
    }

    pub fn commit_in(
        &mut self,
        number: u64,
        nodes: &[NodeId],
        at: Position,
        body: Body,
    ) -> &mut Story {
        for node in nodes {
            self.append(*node, entry(at, term(number), body.clone()));
        }
        for node in nodes {
            self.deliver(*node, at, &body);
        }
        self
    }

    pub fn stands(
        &mut self,
        node: NodeId,
        component_state: ComponentState,
        view: u64,
    ) -> &mut Story {
        let history = HISTORY;
        self.see(
            node,
            Seen::ComponentState {
                component_state,
                view,
                history,
            },
        )
    }

    pub fn begins_anew(
        &mut self,
        node: NodeId,
        position: Position,
        number: u64,
        configuration: Configuration,
    ) -> &mut Story {
        let checkpoint = Checkpoint {
            position,
            term: term(number),
            history: HISTORY,
            configuration,
            ..Checkpoint::default()
        };
        self.see(node, Seen::BeganAnew { checkpoint })
    }

    /// A node bootstraps above `seqno`.
    pub fn founds(&mut self, node: NodeId, seqno: Seqno) -> &mut Story {
        let history = HISTORY;
        self.see(node, Seen::Founded { history, seqno })
    }

    /// A node crashes and restarts with its database at `seqno`.
    pub fn restart(&mut self, node: NodeId, seqno: Seqno) -> &mut Story {
        let database = (HISTORY, seqno);
        self.see(node, Seen::Stopped { clean: false });
        self.see(node, Seen::Started { database })
    }

    pub fn ordered_view(&mut self, node: NodeId, seqno: Seqno, view: u64) -> &mut Story {
        self.order(node, seqno, (None, Some(view)), &[])
    }

    pub fn ordered(
        &mut self,
        node: NodeId,
        seqno: Seqno,
        writer: ClientTrx,
        writes: &[u32],
    ) -> &mut Story {
        self.order(node, seqno, (Some(writer), None), writes)
    }

    pub fn order(
        &mut self,
        node: NodeId,
        seqno: Seqno,
        what: (Option<ClientTrx>, Option<u64>),
        writes: &[u32],
    ) -> &mut Story {
        let what = Seen::Ordered {
            history: HISTORY,
            seqno,
            writer: what.0,
            view: what.1,
            writes: writes.to_vec(),
            applied: false,
        };
        self.see(node, what)
    }

    pub fn database(&mut self, node: NodeId, seqno: Seqno, digest: u64) -> &mut Story {
        let history = HISTORY;
        self.see(
            node,
            Seen::Database {
                history,
                seqno,
                digest,
            },
        )
    }

    pub fn snapshot(
        &mut self,
        node: NodeId,
        seqno: Seqno,
        digest: u64,
        donor: NodeId,
    ) -> &mut Story {
        let history = HISTORY;
        self.see(
            node,
            Seen::Snapshot {
                history,
                seqno,
                digest,
                donor,
            },
        )
    }

    pub fn began(&mut self, node: NodeId, trx: ClientTrx, current: bool) -> &mut Story {
        self.see(node, Seen::Began { trx, current })
    }

    /// A client reads a list of these writers.
    pub fn read(
        &mut self,
        node: NodeId,
        trx: ClientTrx,
        key: u32,
        list: &[ClientTrx],
    ) -> &mut Story {
        let what = Seen::Read {
            trx,
            key,
            len: list.len() as u32,
            digest: list.iter().fold(0, |digest, writer| roll(digest, *writer)),
            last: list.last().copied(),
        };
        self.see(node, what)
    }

    pub fn ended(&mut self, node: NodeId, trx: ClientTrx, code: Code, certain: bool) -> &mut Story {
        let what = Seen::Ended {
            trx,
            code,
            seqno: None,
            writes: vec![1],
            certain,
        };
        self.see(node, what)
    }

    pub fn acknowledged(
        &mut self,
        node: NodeId,
        trx: ClientTrx,
        seqno: Seqno,
        writes: &[u32],
    ) -> &mut Story {
        let what = Seen::Ended {
            trx,
            code: Code::Ok,
            seqno: Some(seqno),
            writes: writes.to_vec(),
            certain: true,
        };
        self.see(node, what)
    }

    /// A transaction from begin to end on its own node.
    pub fn write(
        &mut self,
        node: NodeId,
        seqno: Seqno,
        trx: ClientTrx,
        writes: &[u32],
    ) -> &mut Story {
        self.began(node, trx, false);
        self.ordered(node, seqno, trx, writes);
        self.database(node, seqno, seqno as u64 * 1000);
        self.acknowledged(node, trx, seqno, writes)
    }

    /// An operator makes n2 and n3 primary by an override, while n1 goes on: the history may fork, once.
    pub fn overridden(&mut self) -> &mut Story {
        self.commit_body(&[0], 3, submission(0, 1, "left behind"));
        let override_id = Uuid([9; 16]);
        self.see(1, Seen::Overridden { override_id });
        let configuration = Configuration {
            override_id: Some(override_id),
            fork_after: 2,
            ..view(2, &[1, 2])
        };
        for node in [1, 2] {
            self.begins_anew(node, 2, 1, view(1, &[0]));
            self.append(node, entry(3, term(9), Body::TermStart));
        }
        self.commit_in(9, &[1, 2], 4, Body::Configuration(configuration))
    }

    /// A founder's log begins, in this term.
    pub fn begins_log(&mut self, node: NodeId, number: u64) -> &mut Story {
        self.commit_in(number, &[node], 1, Body::Configuration(view(1, &[node])))
    }

    /// The first violation of any invariant.
    fn verdict(&self) -> Option<(&'static str, String)> {
        let mut invariants = all();
        self.sights.iter().find_map(|sight| {
            let mut verdicts = invariants.iter_mut();
            verdicts.find_map(|i| i.see(sight).err().map(|text| (i.name(), text)))
        })
    }

    /// The result of this invariant at the end of the run.
    pub fn at_end(&self, name: &str) -> Result<(), String> {
        let mut invariants = all();
        for sight in &self.sights {
            for invariant in &mut invariants {
                invariant.see(sight)?;
            }
        }
        let mut named = invariants.iter_mut().filter(|i| i.name() == name);
        named.next().expect("there is such an invariant").end()
    }

    /// Asserts that no invariant is violated.
    #[track_caller]
    pub fn is_clean(&self) {
        assert_eq!(self.verdict(), None);
    }

    /// Asserts that the last event violates this invariant, and that no earlier event violates any.
    #[track_caller]
    pub fn violates(&self, name: &str) {
        let mut before = self.clone();
        before.sights.pop();
        before.is_clean();
        let verdict = self.verdict();
        assert_eq!(verdict.as_ref().map(|v| v.0), Some(name), "{verdict:?}");
    }
}
