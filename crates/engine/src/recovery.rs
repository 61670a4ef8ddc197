//! What a node goes on with after a restart: the log of its earlier process, and the state from which
//! that log is read.

use bytes::{BufMut, Bytes, BytesMut};
use trireme_group::{
    Body, Checkpoint, Configuration, Entry, Position, RecoveredLog, ReplicaId, Uuid,
    decode_checkpoint, decode_entry, encode_checkpoint,
};
use trireme_log::{Damage, Log, LogError, Lost};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::Seqno;

/// So much of the log is read at a time.
const RUN_BYTES: u64 = 4 << 20;

/// The log was begun, and its process ended before the first state was beside it.
pub(crate) const NO_STATE: &str = "it has no snapshot of the cluster's state";

/// The version of a snapshot's first bytes.
const SNAPSHOT_VERSION: u8 = 1;

/// A log that was read back.
pub struct Recovery {
    /// The cluster's uuid.
    pub history: Uuid,
    /// For the group.
    pub log: RecoveredLog,
    /// For the replicator: the control state at the log's checkpoint, or above.
    pub control: Bytes,
    /// Lowest seqno in the log.
    pub first_seqno: Option<Seqno>,
    /// Highest seqno in the log that is known to be committed.
    pub last_seqno: Seqno,
    /// Entries that this replica once acknowledged may be missing (rule 4).
    pub amnesiac: bool,
}

impl Recovery {
    /// True if this is the log of the replica that founded the history without any past, from the first
    /// entry on.
    pub fn was_founded_by(&self, replica: ReplicaId) -> bool {
        let in_log = self
            .log
            .entries
            .iter()
            .filter_map(|entry| match &entry.body {
                Body::Configuration(configuration) => Some(configuration),
                _ => None,
            });
        let mut all = std::iter::once(&self.log.checkpoint.configuration).chain(in_log);
        let alone = |c: &Configuration| {
            c.number == 1
                && c.override_id.is_none()
                && matches!(&c.members[..], [member] if member.replica == replica)
        };
        self.first_seqno == Some(1) && all.any(alone)
    }

    /// True if a database at this seqno can be brought up to date from this log alone.
    pub fn reaches(&self, seqno: Seqno) -> bool {
        let behind = seqno < self.last_seqno;
        let next_is_here = self.first_seqno.is_some_and(|first| first <= seqno + 1);
        seqno == self.last_seqno || behind && next_is_here
    }
}

/// The bytes of a snapshot (docs/log-format.md): the group's state and the replicator's.
pub fn encode_snapshot(checkpoint: &Checkpoint, control: &[u8]) -> Bytes {
    let checkpoint = encode_checkpoint(checkpoint);
    let mut out = BytesMut::with_capacity(5 + checkpoint.len() + control.len());
    out.put_u8(SNAPSHOT_VERSION);
    out.put_u32_le(checkpoint.len() as u32);
    out.extend_from_slice(&checkpoint);
    out.extend_from_slice(control);
    out.freeze()
}

fn decode_snapshot(mut bytes: Bytes) -> Option<(Checkpoint, Bytes)> {
    let (head, _) = bytes.split_first_chunk::<5>()?;
    let [SNAPSHOT_VERSION, length @ ..] = *head else {
        return None;
    };
    let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
    let _head = bytes.split_to(5);
    if length > bytes.len() {
        return None;
    }
    let checkpoint = decode_checkpoint(bytes.split_to(length)).ok()?;
    Some((checkpoint, bytes))
}

/// Entries that are read back one after the other. The payloads of the newest are kept, within a bound: they may have to be
/// sent to others.
struct Entries {
    all: Vec<Entry>,
    held_bytes: usize,
    /// How many are without their payloads.
    left: usize,
}

impl Entries {
    fn push(&mut self, entry: Entry, held_bytes_max: usize) {
        self.held_bytes += entry.payload_bytes();
        self.all.push(entry);
        while self.held_bytes > held_bytes_max && !planted(Mutant::RestartReadsAll) {
            let oldest = &mut self.all[self.left]; // some of them have payloads
            self.held_bytes -= oldest.payload_bytes();
            oldest.drop_payload();
            self.left += 1;
        }
    }
}

/// Reads what the log holds from its newest snapshot on, and of payloads keeps `held_bytes`; Err: why it is of no use.
pub(crate) fn read(
    log: &Log,
    held_bytes: usize,
) -> Result<Result<(RecoveredLog, Bytes), &'static str>, LogError> {
    let Some((position, snapshot)) = log.snapshot_at(u64::MAX)? else {
        return Ok(Err(NO_STATE));
    };
    let Some((checkpoint, control)) = decode_snapshot(Bytes::from(snapshot)) else {
        return Ok(Err("its snapshot of the cluster's state cannot be read"));
    };
    if checkpoint.position != position {
        return Ok(Err("its snapshot is of another position"));
    }
    let mut entries = Entries {
        all: Vec::new(),
        held_bytes: 0,
        left: 0,
    };
    let mut next = position + 1;
    // Not that of the last entry: damage may have left a snapshot alone in a segment that begins far above it.
    let end = log.next_position().map_or(position, |next| next - 1);
    while next <= end {
        let run = log.read_run(next, RUN_BYTES)?;
        let Some(last) = run.last() else {
            return Ok(Err("entries above its snapshot are missing"));
        };
        next = last.position + 1;
        for item in run {
            match decode_entry(Bytes::from(item.payload)) {
                Ok(entry) if entry.position == item.position => entries.push(entry, held_bytes),
                _ => return Ok(Err("an entry cannot be read")),
            }
        }
    }
    let outcome = log
        .last_seqno()
        .and_then(|seqno| log.position_of_seqno(seqno));
    let recovered = RecoveredLog {
        commit: outcome.map_or(position, |at: Position| at.max(position)),
        checkpoint,
        left: position + entries.left as Position,
        entries: entries.all,
    };
    Ok(Ok((recovered, control)))
}

/// A line per damaged place.
pub(crate) fn tell_damage(damage: &Damage) -> String {
    let aside: Vec<_> = (damage.set_aside.iter())
        .map(|file| file.display().to_string())
        .collect();
    let how = match damage.was_flushed {
        true => " (it had been flushed: check the disk)",
        false => "",
    };
    let lost = match damage.lost {
        Lost::Older => "older entries are given up",
        Lost::Newer => "the entries from there on are taken from the other nodes",
    };
    format!(
        "the write-set log is damaged in {} at offset {}: {}{how}; {lost}; what could not be used is in {}, which may be \
         removed",
        damage.file.display(),
        damage.offset,
        damage.reason,
        aside.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use trireme_log::{Durability, LogConfig, MemoryDisk};

    use super::*;

    /// Of 87 to 189, and of what followed, damage has left a snapshot of before (seed 622968).
    #[test]
    fn a_log_that_goes_on_far_above_its_snapshot_is_of_no_use() {
        let config = LogConfig::new("".into(), 1 << 20, [1; 16], Durability::Disk);
        for (next, is_used) in [(87, true), (88, false), (190, false)] {
            let mut log = Log::create_on(Box::new(MemoryDisk::new()), config.clone()).unwrap();
            let checkpoint = Checkpoint {
                position: 86,
                ..Checkpoint::default()
            };
            log.reset(next).unwrap();
            log.put_snapshot(86, &encode_snapshot(&checkpoint, b"control"))
                .unwrap();
            assert_eq!(read(&log, 1 << 20).unwrap().is_ok(), is_used, "{next}");
        }
    }

    #[test]
    fn a_snapshot_comes_back() {
        let checkpoint = Checkpoint {
            position: 77,
            history: Uuid([3; 16]),
            ..Checkpoint::default()
        };
        let bytes = encode_snapshot(&checkpoint, b"control");
        let control = Bytes::from_static(b"control");
        assert_eq!(decode_snapshot(bytes.clone()), Some((checkpoint, control)));
        for length in 0..bytes.len() - 7 {
            assert_eq!(decode_snapshot(bytes.slice(..length)), None, "{length}");
        }
        let newer = [&[2], &bytes[1..]].concat();
        assert_eq!(decode_snapshot(newer.into()), None);
    }
}
