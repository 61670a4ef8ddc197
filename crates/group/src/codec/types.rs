//! Layouts of the compound types, as `docs/wire-group.md` lists them.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};

use super::DecodeError;
use super::wire::{Wire, wire_enum, wire_struct};
use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Member};
use crate::entry::{Body, Entry};
use crate::ids::{Incarnation, ReplicaId, SubmissionId, Term, Uuid};
use crate::message::{
    Append, BulkPayload, ComponentState, DatabaseProof, Join, Link, Message, Outlook, Preference,
    Promise, Proof, Source, Status, Summary, WireBody, WireEntry,
};
use crate::numbers::{Counted, Numbers};

wire_enum!(Message, "kind of message" {
    1 => Status(status),
    2 => Submit { number, payload },
    3 => Append(append),
    4 => Ack { term, position, commit },
    5 => Summary { term, summary },
    7 => PreVote { term },
    8 => PreVoteReply { term, granted },
    9 => Prepare { term, forced },
    10 => Promise(promise),
    11 => Refuse { promised },
    12 => TakeLeadership { number, forced },
    13 => Join(join),
    14 => JoinRefused { reason },
    15 => Leave,
    16 => Weight { weight },
    17 => LogEnd { round },
    18 => LogEndReply { round, term, end },
    19 => Offer { oldest, bulk },
    20 => Fetch { source, offset, len },
    21 => Part { source, offset, bytes },
    22 => Held { bulk },
    23 => SubmitBulk { number, bulk, head },
    24 => Expects { nodes, promised },
    // Kind 6 was an install without the positions at which replicas left.
    25 => Install { term, checkpoint, intact_at },
});
wire_enum!(Source, "source of a payload" {
    0 => Offered { bulk },
    1 => Logged { position, id },
});
wire_enum!(ComponentState, "component state" {
    0 => Outside,
    1 => Primary,
    2 => NonPrimary,
});
wire_enum!(Preference, "preference for leadership" {
    0 => Auto,
    1 => Prefer,
    2 => Never,
});
wire_enum!(DatabaseProof, "proof of a database" {
    0 => Nothing,
    1 => UpTo { seqno },
    2 => Unclear,
});
wire_enum!(Body, "kind of entry" {
    0 => TermStart,
    1 => Configuration(configuration),
    2 => Submission { id, payload },
    3 => Voided { id },
});
// The replicator's `wire.rs` has a second layout of these two, in another order.
wire_struct!(Member {
    replica: ReplicaId,
    incarnation: Incarnation,
    weight: u8,
    full_weight: u8,
    voter: bool,
    name: String,
    incoming: String,
    address: String,
    segment: u8,
    arbitrator: bool,
    never_donor: bool,
    app_protocol: i32,
});
wire_struct!(Configuration {
    number: u64,
    members: Vec<Member>,
    override_id: Option<Uuid>,
    fork_after: u64,
});
wire_struct!(Entry {
    position: u64,
    term: Term,
    body: Body
});
wire_struct!(WireEntry {
    position: u64,
    term: Term,
    body: WireBody
});
wire_struct!(Checkpoint {
    position: u64,
    term: Term,
    history: Uuid,
    overrides: Vec<Uuid>,
    configuration: Configuration,
    numbers: Numbers,
});
wire_struct!(Status {
    term: Term,
    leader: bool,
    component_state: ComponentState,
    history: Uuid,
    overrides: Vec<Uuid>,
    configuration_number: u64,
    members: Vec<Incarnation>,
    ack: u64,
    end: u64,
    commit: u64,
    outlook: Outlook,
});
wire_struct!(Outlook { preference: Preference, able: bool, stamp_ms: u64, links: Vec<Link> });
wire_struct!(Link {
    peer: Incarnation,
    echo_ms: u64,
    held_ms: u32,
    round_trip_us: u32,
});
wire_struct!(Append {
    term: Term,
    prev_position: u64,
    prev_term: Term,
    entries: Vec<WireEntry>,
    ack: u64,
    commit: u64,
});
wire_struct!(Summary { commit: u64, end: u64, end_term: Term, runs: Vec<(Term, u64, u64)> });
wire_struct!(Promise {
    term: Term,
    summary: Summary,
    configurations: Vec<(u64, Configuration)>,
    amnesiac: bool,
    lost_views: bool,
    proof: Proof,
    withdrawn: Vec<SubmissionId>,
});
wire_struct!(Proof {
    known: u64,
    database: DatabaseProof
});
wire_struct!(BulkPayload {
    number: u64,
    len: u32,
    head: u32,
    digest: u32
});
wire_struct!(Join { member: Member, history: Uuid, known_number: u64, overrides: Vec<Uuid> });

/// The kind that [`WireBody`] adds to the kinds of [`Body`].
const REFERENCE: u8 = 4;

impl Wire for WireBody {
    const MIN_BYTES: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        match self {
            WireBody::Full(body) => body.put(out),
            WireBody::Reference { id, len, digest } => {
                REFERENCE.put(out);
                id.put(out);
                len.put(out);
                digest.put(out);
            }
        }
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.first() != Some(&REFERENCE) {
            return Ok(WireBody::Full(Wire::get(input)?));
        }
        u8::get(input)?;
        Ok(WireBody::Reference {
            id: Wire::get(input)?,
            len: Wire::get(input)?,
            digest: Wire::get(input)?,
        })
    }
}

wire_struct!(Counted {
    incarnation: Incarnation,
    number: u64,
    left_at: u64,
});

impl Wire for Numbers {
    const MIN_BYTES: usize = <BTreeMap<ReplicaId, Counted> as Wire>::MIN_BYTES;

    fn put(&self, out: &mut BytesMut) {
        self.replicas().put(out);
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        collect(Wire::get(input)?)
    }
}

/// Fails if one incarnation stands for two replicas.
fn collect(replicas: BTreeMap<ReplicaId, Counted>) -> Result<Numbers, DecodeError> {
    let count = replicas.len();
    let mut numbers = Numbers::default();
    for (replica, counted) in replicas {
        numbers.remember(replica, counted);
    }
    match numbers.len() == count {
        true => Ok(numbers),
        false => Err(DecodeError::Twice),
    }
}

/// Decodes a checkpoint of the older format (kind 65): its numbers lack the positions at which replicas left. It reads
/// the present [`Configuration`]: a new layout of that needs a type for the old one here.
pub(super) fn old_checkpoint(input: &mut Bytes) -> Result<Checkpoint, DecodeError> {
    let (position, term, history) = Wire::get(input)?;
    let (overrides, configuration): (Vec<Uuid>, Configuration) = Wire::get(input)?;
    let numbers: BTreeMap<ReplicaId, (Incarnation, u64)> = Wire::get(input)?;
    let counted = |(replica, (incarnation, number))| {
        // The older format does not say which of two absent replicas left first.
        let left_at = u64::from(configuration.replica(replica).is_none());
        let counted = Counted {
            incarnation,
            number,
            left_at,
        };
        (replica, counted)
    };
    let numbers = collect(numbers.into_iter().map(counted).collect())?;
    Ok(Checkpoint {
        position,
        term,
        history,
        overrides,
        configuration,
        numbers,
    })
}
