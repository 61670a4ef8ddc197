//! Staging: large payloads are written into files of the log while they come in, before they are entries. In: pieces of
//! payloads. Out: jobs that write them, on a thread of their own where there is one ([`crate::Start::flushes_apart`]),
//! so that nothing else waits; and entries whose staged bytes are not written again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use trireme_group::{BulkId, ENTRY_HEAD_BYTES, Incarnation, Position, SubmissionId};
use trireme_log::{Log, LogError, Staged, StagedWriter};
use trireme_mutants::{Mutant, planted};

/// A payload that comes in piece by piece.
struct Piecewise {
    staged: Staged,
    /// Distinguishes it from an earlier payload of the same name, also in another log.
    token: Arc<()>,
    /// Number of bytes that were taken in.
    taken: u64,
    /// Pieces that no job writes yet.
    waiting: Vec<Bytes>,
    /// A job is writing other pieces.
    in_work: bool,
}

/// A staged payload that was submitted.
struct Submitted {
    staged: Staged,
    /// Number of bytes at its start that differ from the staged ones.
    head: usize,
    digest: u32,
}

/// A job: pieces of a payload that are to be written. Bring its result to [`crate::Engine::staged`].
pub struct StageJob {
    writer: StagedWriter,
    bulk: BulkId,
    token: Arc<()>,
    offset: u64,
    pieces: Vec<Bytes>,
    /// Number of bytes after which the job flushes.
    flush_bytes: u64,
}

/// The result of a [`StageJob`].
pub struct StageDone {
    pub(crate) bulk: BulkId,
    token: Arc<()>,
    bytes: u64,
    result: Result<(), LogError>,
}

impl StageJob {
    /// Writes the pieces, and flushes after every `flush_bytes`.
    pub fn run(self) -> StageDone {
        let bytes = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        StageDone {
            bulk: self.bulk,
            token: self.token.clone(),
            bytes,
            result: self.write(self.offset + bytes),
        }
    }

    fn write(&self, until: u64) -> Result<(), LogError> {
        let mut offset = self.offset;
        for piece in &self.pieces {
            self.writer.write(offset, piece)?;
            offset += piece.len() as u64;
        }
        match self.offset / self.flush_bytes < until / self.flush_bytes {
            true => self.writer.flush(),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for StageJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StageJob from {} of {:?}", self.offset, self.bulk)
    }
}

impl fmt::Debug for StageDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StageDone of {:?}: {:?}", self.bulk, self.result)
    }
}

/// The staged payloads of one log.
#[derive(Default)]
pub(crate) struct Staging {
    bulk_payloads: BTreeMap<BulkId, Piecewise>,
    submitted: BTreeMap<SubmissionId, Submitted>,
}

impl Staging {
    /// Takes in the next piece. False, or an error: the payload will not be staged, its entry is appended as usual.
    pub(crate) fn take_in(
        &mut self,
        log: &mut Log,
        bulk: BulkId,
        offset: u32,
        bytes: Bytes,
    ) -> Result<bool, LogError> {
        if offset == 0 {
            self.bulk_payloads.remove(&bulk);
            let begun = Piecewise {
                staged: log.stage(ENTRY_HEAD_BYTES)?,
                token: Arc::default(),
                taken: 0,
                waiting: Vec::new(),
                in_work: false,
            };
            self.bulk_payloads.insert(bulk, begun);
        }
        let next = |piecewise: &&mut Piecewise| piecewise.taken == u64::from(offset);
        let Some(piecewise) = self.bulk_payloads.get_mut(&bulk).filter(next) else {
            self.bulk_payloads.remove(&bulk);
            return Ok(false);
        };
        piecewise.taken += bytes.len() as u64;
        piecewise.waiting.push(bytes);
        Ok(true)
    }

    /// Returns the next job of a payload, unless one is running or no piece waits.
    pub(crate) fn next_job(&mut self, bulk: BulkId, flush_bytes: u64) -> Option<StageJob> {
        let piecewise = self.bulk_payloads.get_mut(&bulk)?;
        if piecewise.in_work || piecewise.waiting.is_empty() {
            return None;
        }
        piecewise.in_work = true;
        Some(StageJob {
            writer: piecewise.staged.writer(),
            bulk,
            token: piecewise.token.clone(),
            offset: piecewise.staged.written_bytes(),
            pieces: std::mem::take(&mut piecewise.waiting),
            flush_bytes: flush_bytes.max(1),
        })
    }

    /// Takes in the result of a job. Returns how far the payload is staged; None: the job was one of an earlier
    /// payload. Err: the payload will not be staged.
    pub(crate) fn wrote(&mut self, done: StageDone) -> Option<Result<u32, LogError>> {
        let piecewise = self.bulk_payloads.get_mut(&done.bulk)?;
        if !Arc::ptr_eq(&piecewise.token, &done.token) {
            return None;
        }
        if let Err(error) = done.result {
            self.bulk_payloads.remove(&done.bulk);
            return Some(Err(error));
        }
        piecewise.in_work = false;
        piecewise.staged.wrote(done.bytes);
        // A payload is shorter than 4 GiB.
        Some(Ok(piecewise.staged.written_bytes() as u32))
    }

    pub(crate) fn drop_bulk(&mut self, bulk: BulkId) {
        self.bulk_payloads.remove(&bulk);
    }

    /// Notes that a bulk payload is the payload of this submission. One that is still being written is appended as
    /// usual.
    pub(crate) fn submit(&mut self, bulk: BulkId, id: SubmissionId, head: u32, digest: u32) {
        let bulk = self.bulk_payloads.remove(&bulk);
        if let Some(Piecewise { staged, .. }) = bulk.filter(|p| !p.in_work) {
            let submitted = Submitted {
                staged,
                head: head as usize,
                digest,
            };
            self.submitted.insert(id, submitted);
        }
    }

    /// Keeps only the payloads of these origins: others will append nothing more. Returns the bulk payloads that will
    /// not be staged.
    pub(crate) fn keep(&mut self, origins: &[Incarnation]) -> Vec<BulkId> {
        self.submitted
            .retain(|id, _| origins.contains(&id.incarnation));
        let is_other = |bulk: &&BulkId| !origins.contains(&bulk.origin);
        let dropped: Vec<_> = self
            .bulk_payloads
            .keys()
            .filter(is_other)
            .copied()
            .collect();
        self.bulk_payloads.retain(|bulk, _| !dropped.contains(bulk));
        dropped
    }

    /// Returns the ids of the bulk payloads that come in.
    pub(crate) fn bulk_payloads(&self) -> Vec<BulkId> {
        self.bulk_payloads.keys().copied().collect()
    }

    /// Takes the staged payload of a submission. Drops the earlier ones of its origin: submissions of an origin are
    /// ordered in turn.
    fn take(&mut self, id: SubmissionId) -> Option<Submitted> {
        let staged = self.submitted.remove(&id);
        self.submitted
            .retain(|other, _| other.incarnation != id.incarnation || other.number > id.number);
        staged
    }

    /// Appends a submission, without writing its staged bytes again.
    pub(crate) fn append(
        &mut self,
        log: &mut Log,
        position: Position,
        id: Option<SubmissionId>,
        head: &Bytes,
        payload: &Bytes,
    ) -> Result<(), LogError> {
        let staged = id.and_then(|id| self.take(id));
        match staged.filter(|submitted| submitted.head <= payload.len()) {
            Some(Submitted {
                staged,
                head: first,
                digest,
            }) => {
                let first = match planted(Mutant::StagedHeadKept) {
                    true => 0,
                    false => first,
                };
                log.append_staged(position, head, first, payload, digest, staged)
            }
            None => log.append(position, &[head, payload]),
        }
    }
}

#[cfg(test)]
mod tests {
    use trireme_log::{Durability, LogConfig, MemoryDisk};

    use super::*;

    const FLUSH_BYTES: u64 = 1 << 20;
    const BULK: BulkId = BulkId {
        origin: Incarnation(trireme_group::Uuid([1; 16])),
        number: 1,
    };

    fn log(disk: &MemoryDisk) -> Log {
        let config = LogConfig::new("".into(), 1 << 20, [7; 16], Durability::Os);
        let mut log = Log::create_on(Box::new(disk.clone()), config).expect("created");
        log.append(1, &[b"one"]).expect("appended");
        log
    }

    fn piece(byte: u8) -> Bytes {
        Bytes::from(vec![byte; 100])
    }

    fn take(staging: &mut Staging, log: &mut Log, offset: u32, bytes: Bytes) -> bool {
        let taken = staging.take_in(log, BULK, offset, bytes);
        taken.expect("a file was made")
    }

    fn submission(number: u64) -> SubmissionId {
        SubmissionId {
            incarnation: BULK.origin,
            number,
        }
    }

    #[test]
    fn what_comes_while_pieces_are_written_is_written_next_and_becomes_the_entry() {
        let disk = MemoryDisk::new();
        let (mut log, mut staging) = (log(&disk), Staging::default());
        assert!(take(&mut staging, &mut log, 0, piece(1)));
        let first = staging.next_job(BULK, FLUSH_BYTES).expect("it is due");
        for (offset, byte) in [(100, 2), (200, 3)] {
            assert!(take(&mut staging, &mut log, offset, piece(byte)));
            assert!(
                staging.next_job(BULK, FLUSH_BYTES).is_none(),
                "one at a time"
            );
        }
        assert!(matches!(staging.wrote(first.run()), Some(Ok(100))));
        let rest = staging.next_job(BULK, FLUSH_BYTES).expect("it is due");
        assert!(matches!(staging.wrote(rest.run()), Some(Ok(300))));
        assert!(staging.next_job(BULK, FLUSH_BYTES).is_none());
        let payload = [piece(1), piece(2), piece(3)].concat();
        staging.submit(BULK, submission(1), 0, crc32c::crc32c(&payload));
        let head = Bytes::from(vec![9; ENTRY_HEAD_BYTES]);
        let appended = staging.append(
            &mut log,
            2,
            Some(submission(1)),
            &head,
            &payload.clone().into(),
        );
        appended.expect("appended");
        let whole = [&head[..], &payload].concat();
        assert_eq!(log.read(2).expect("read"), Some(whole));
    }

    #[test]
    fn what_was_begun_anew_hears_nothing_of_what_it_was_before() {
        let (mut log, mut staging) = (log(&MemoryDisk::new()), Staging::default());
        assert!(take(&mut staging, &mut log, 0, piece(1)));
        let earlier = staging.next_job(BULK, FLUSH_BYTES).expect("it is due");
        assert!(take(&mut staging, &mut log, 0, piece(2)));
        let later = staging.next_job(BULK, FLUSH_BYTES).expect("it is due");
        assert!(staging.wrote(earlier.run()).is_none());
        assert!(matches!(staging.wrote(later.run()), Some(Ok(100))));
        // Nor does another log.
        let mut other = Staging::default();
        assert!(take(&mut staging, &mut log, 100, piece(3)));
        let job = staging.next_job(BULK, FLUSH_BYTES).expect("it is due");
        assert!(take(
            &mut other,
            &mut self::log(&MemoryDisk::new()),
            0,
            piece(4)
        ));
        assert!(other.wrote(job.run()).is_none());
    }

    #[test]
    fn what_cannot_be_written_is_not_staged() {
        let disk = MemoryDisk::new();
        let (mut log, mut staging) = (log(&disk), Staging::default());
        assert!(take(&mut staging, &mut log, 0, piece(1)));
        let job = staging.next_job(BULK, FLUSH_BYTES).expect("it is due");
        disk.set_room(Some(0));
        assert!(matches!(staging.wrote(job.run()), Some(Err(_))));
        assert!(!take(&mut staging, &mut log, 100, piece(2)));
        disk.set_room(None);
        assert!(
            !take(&mut staging, &mut log, 200, piece(3)),
            "not without a gap"
        );
        assert!(take(&mut staging, &mut log, 0, piece(1)));
        assert_eq!(staging.keep(&[]), [BULK]);
        assert!(staging.next_job(BULK, FLUSH_BYTES).is_none());
    }

    #[test]
    fn it_is_flushed_a_piece_at_a_time() {
        let disk = MemoryDisk::new();
        let (mut log, mut staging) = (log(&disk), Staging::default());
        disk.set_fail_syncs(true);
        assert!(take(&mut staging, &mut log, 0, piece(1)));
        let small = staging.next_job(BULK, FLUSH_BYTES).expect("it is due");
        assert!(matches!(staging.wrote(small.run()), Some(Ok(100))));
        let large = Bytes::from(vec![1; FLUSH_BYTES as usize]);
        assert!(take(&mut staging, &mut log, 100, large));
        let large = staging.next_job(BULK, FLUSH_BYTES).expect("it is due");
        assert!(matches!(staging.wrote(large.run()), Some(Err(_))));
    }
}
