//! The log, as its owner writes it: creation and opening, appends, outcomes, log checkpoints, truncation, and the
//! owner's state. Positions have no gap. A failed write or flush poisons the log.

mod reading;
mod segments;
mod writing;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::active::Active;
use crate::config::LogConfig;
use crate::counters::Counters;
use crate::disk::{Disk, DiskFile, OsDisk};
use crate::error::LogError;
use crate::examined::Examined;
use crate::flush::Turns;
use crate::format::{self, SEGMENT_HEADER_BYTES};
use crate::index::Index;
use crate::outcome::Outcome;
use crate::recovery::{self, Recovered};
use crate::scan::SegmentReader;
use crate::state_file::{STATE_NAME, StateFile};

/// The largest segment that may be configured: record offsets are kept in 32 bits.
pub(crate) const SEGMENT_LIMIT_BYTES: u64 = 1 << 30;

/// The write-set log of one history, in one directory, with one owner.
///
/// A failed write or flush poisons the log: later writes fail with [`LogError::Poisoned`], and reads still work. A
/// refused argument (position, seqno, size) or an old segment that cannot be removed does not poison it; such a call
/// has changed nothing.
pub struct Log {
    config: LogConfig,
    disk: Arc<dyn Disk>,
    index: Index,
    /// The last segment's file.
    active: Active,
    /// Files of earlier segments that are kept open, by number: all that are not flushed, and the newest others.
    closed: BTreeMap<u64, Arc<dyn DiskFile>>,
    /// Everything below this address is on stable storage.
    flushed: u64,
    /// Number of changes of file names, and how many of them are on stable storage.
    name_changes: u64,
    name_changes_flushed: u64,
    /// Shared with the flushes that run beside this log.
    turns: Arc<Turns>,
    poisoned: Option<String>,
    keep_from: u64,
    /// Number of files begun for staged payloads, whose place in the log is not known at that time.
    staged: u64,
    /// The segments of the log that this one replaces when it is published; None: it is published.
    replaces: Option<Vec<u64>>,
    counters: Counters,
    state: StateFile,
}

impl Log {
    /// Starts a new, empty log. Segments of this history are removed, and those of another one are set aside, for good:
    /// only the operator removes them. The state of another history is removed. The first entry may have any position.
    pub fn create(config: LogConfig) -> Result<Log, LogError> {
        let disk = Box::new(OsDisk::new(&config.dir));
        Log::create_on(disk, config)
    }

    /// Opens an existing log: reads all segments, cuts off a torn tail, sets damaged parts aside. [`LogError::NoLog`]
    /// if there is none; a log of another identity or a newer format is not changed.
    pub fn open(config: LogConfig) -> Result<(Log, Recovered), LogError> {
        let disk = Box::new(OsDisk::new(&config.dir));
        Log::open_on(disk, config)
    }

    /// Returns the identity of the log in `dir`, for a caller that does not know the history yet. `None`: no log.
    pub fn identity_in(dir: &Path) -> Result<Option<[u8; 16]>, LogError> {
        Log::identity_on(&OsDisk::new(dir))
    }

    /// [`Log::identity_in`] on any [`Disk`].
    pub fn identity_on(disk: &dyn Disk) -> Result<Option<[u8; 16]>, LogError> {
        recovery::identity_on(disk)
    }

    /// [`Log::create`] on any [`Disk`]; `config.dir` is not used.
    pub fn create_on(disk: Box<dyn Disk>, config: LogConfig) -> Result<Log, LogError> {
        let old = recovery::segment_numbers(disk.as_ref())?;
        let number = old.last().map_or(1, |last| last + 1);
        // A log of another cluster is not destroyed, nor one that cannot be read.
        let found = recovery::identity_on(disk.as_ref())?;
        let is_foreign = found.is_some_and(|found| found != config.identity);
        let mut state = StateFile::open(disk.as_ref(), config.identity)?;
        let keeps_state = state.get().is_some();
        if !keeps_state {
            state = StateFile::absent(config.identity);
        }
        let mut log = Log::begin(disk.into(), config, state, number)?;
        log.remove_staged()?;
        if !is_foreign {
            log.remove_segments(&old)?;
        }
        for name in log
            .disk
            .list()
            .map_err(|e| log.directory_error("list", e))?
        {
            let is_removed = match name == STATE_NAME {
                true => !keeps_state,
                false => format::is_damaged_name(&name) && !log.is_of_another(&name),
            };
            if is_removed {
                log.remove_file(&name)?;
            }
        }
        if is_foreign {
            for number in old {
                let (from, to) = (
                    format::segment_name(number),
                    format::damaged_name(number, 0),
                );
                (log.disk.rename(&from, &to)).map_err(|e| log.directory_error("rename in", e))?;
            }
        }
        Ok(log)
    }

    /// Returns the state that the last owner of the log of this identity saved, without opening the log; `None`: none.
    pub fn state_on(disk: &dyn Disk, identity: [u8; 16]) -> Result<Option<Vec<u8>>, LogError> {
        let state = StateFile::open(disk, identity)?;
        Ok(state.get().map(<[u8]>::to_vec))
    }

    /// Saves a state, flushed, for the next owner of the log of this identity, without opening the log.
    pub fn save_state_on(disk: &dyn Disk, identity: [u8; 16], blob: &[u8]) -> Result<(), LogError> {
        let mut state = StateFile::open(disk, identity)?;
        match state.get() == Some(blob) {
            true => Ok(()),
            false => state.save(disk, blob),
        }
    }

    /// [`Log::open`] on any [`Disk`]; `config.dir` is not used.
    pub fn open_on(disk: Box<dyn Disk>, config: LogConfig) -> Result<(Log, Recovered), LogError> {
        Log::examine_on(disk, config)?.open()
    }

    /// Reads an existing log and changes nothing: the first half of [`Log::open_on`], with the same errors.
    pub fn examine_on(disk: Box<dyn Disk>, config: LogConfig) -> Result<Examined, LogError> {
        Examined::new(disk, config)
    }

    /// Returns a log with its first segment, written and flushed.
    fn begin(
        disk: Arc<dyn Disk>,
        config: LogConfig,
        state: StateFile,
        number: u64,
    ) -> Result<Log, LogError> {
        let name = format::segment_name(number);
        let active = disk
            .create(&name)
            .map_err(|e| LogError::io("create", disk.path(&name), 0, e))?;
        let active = Active::new(active.into(), 0, 0);
        let mut log = Log::with(disk, config, state, Index::default(), active, 0);
        log.begin_segment(number, 0);
        log.flush()?;
        Ok(log)
    }

    /// Returns a log that was read from end to end ([`Examined::open`]). `active`: the last segment's file.
    pub(crate) fn opened(
        disk: Arc<dyn Disk>,
        config: LogConfig,
        state: StateFile,
        index: Index,
        active: SegmentReader,
        flushed: u64,
    ) -> Result<Log, LogError> {
        let file_bytes = active.length();
        let written_bytes = index.segments.back().map_or(0, |last| last.len);
        let active = Active::new(active.into_file().into(), written_bytes, file_bytes);
        let mut log = Log::with(disk, config, state, index, active, flushed);
        log.open_closed()?;
        log.remove_staged()?;
        Ok(log)
    }

    fn with(
        disk: Arc<dyn Disk>,
        mut config: LogConfig,
        state: StateFile,
        index: Index,
        active: Active,
        flushed: u64,
    ) -> Log {
        config.segment_bytes = config
            .segment_bytes
            .clamp(SEGMENT_HEADER_BYTES, SEGMENT_LIMIT_BYTES);
        Log {
            config,
            disk,
            index,
            active,
            closed: BTreeMap::new(),
            flushed,
            name_changes: 1,
            name_changes_flushed: 0,
            turns: Arc::default(),
            poisoned: None,
            keep_from: 0,
            staged: 0,
            replaces: None,
            counters: Counters::default(),
            state,
        }
    }

    /// Appends the entry of `position`, its payload given in parts. It is in memory on return (readable, lost with
    /// the process).
    ///
    /// Refused: a position other than the next, a payload above [`MAX_PAYLOAD_BYTES`](crate::MAX_PAYLOAD_BYTES).
    pub fn append(&mut self, position: u64, payload: &[&[u8]]) -> Result<(), LogError> {
        let expected = self.index.next_position.unwrap_or(position);
        if position != expected {
            return Err(LogError::NotContiguous {
                expected,
                got: position,
            });
        }
        if position == u64::MAX {
            return Err(LogError::TooLarge {
                what: "position",
                bytes: position,
                limit: position - 1,
            });
        }
        let (header, offset) = self.put(format::KIND_ENTRY, 0, position, payload)?;
        self.index.push_entry(&header, offset);
        Ok(())
    }

    /// Records the outcome of the entry at `position`. The call may be repeated with other flags. It has no effect for
    /// an entry that retention has dropped.
    ///
    /// Refused: a position that was not appended yet, a seqno that does not grow with positions or differs from the
    /// recorded one.
    pub fn set_outcome(&mut self, position: u64, outcome: Outcome) -> Result<(), LogError> {
        if self.index.next_position.is_none_or(|next| position >= next) {
            return Err(LogError::NoSuchPosition { position });
        }
        if self
            .index
            .first_position()
            .is_none_or(|first| position < first)
        {
            return Ok(());
        }
        if !self.index.outcomes.fits(position, &outcome) {
            return Err(LogError::SeqnoOrder {
                position,
                seqno: outcome.seqno,
            });
        }
        if self.index.outcomes.get(position) != Some(outcome) {
            self.put(
                format::KIND_OUTCOME,
                outcome.flags,
                position,
                &[&outcome.body()],
            )?;
            // The record may have begun a new segment, and retention may then have dropped the entry's segment.
            if self.index.place(position).is_some() {
                self.index.outcomes.set(position, outcome);
            }
        }
        Ok(())
    }

    /// Records the control state after `position`, as a log checkpoint for a replay from there.
    ///
    /// Refused: a position that was not appended yet (except the one before the first entry to come), a size above
    /// [`MAX_PAYLOAD_BYTES`](crate::MAX_PAYLOAD_BYTES).
    pub fn put_snapshot(&mut self, position: u64, state: &[u8]) -> Result<(), LogError> {
        if self
            .index
            .next_position
            .is_some_and(|next| position >= next)
        {
            return Err(LogError::NoSuchPosition { position });
        }
        let (header, offset) = self.put(format::KIND_SNAPSHOT, 0, position, &[state])?;
        self.index.push_snapshot(&header, offset);
        Ok(())
    }

    /// Returns true if it is time for [`Log::put_snapshot`]: the current segment lacks a checkpoint, and the last one
    /// is old enough for its size.
    pub fn wants_snapshot(&self) -> bool {
        self.index.wants_snapshot()
    }

    /// Drops all entries above `position`, with their outcomes and checkpoints; the log continues at `position + 1`.
    /// Written out on return. It needs no flush of its own: no later entry can survive without it.
    pub fn truncate_after(&mut self, position: u64) -> Result<(), LogError> {
        if self
            .index
            .next_position
            .is_none_or(|next| position.saturating_add(1) >= next)
        {
            return Ok(());
        }
        self.put(format::KIND_TRUNCATE, 0, position, &[])?;
        self.index.truncate_after(position);
        self.write_out()
    }

    /// Forgets every entry; the log begins anew at `next_position`, durably. The state stays.
    pub fn reset(&mut self, next_position: u64) -> Result<(), LogError> {
        self.check()?;
        let old = self.index.numbers();
        let number = old.last().map_or(1, |last| last + 1);
        let start = self.index.end();
        let active = self.create_segment(number)?;
        self.active = Active::new(active, 0, 0);
        self.closed.clear();
        self.index = Index::default();
        self.index.next_position = Some(next_position);
        self.flushed = start;
        self.begin_segment(number, start);
        self.flush()?;
        self.remove_segments(&old)
    }

    /// Begins another log at `next_position`, beside this one: until [`Log::publish`], the next process finds this one.
    /// The state stays, and must not be saved meanwhile.
    pub fn begin_beside(self, next_position: u64) -> Result<Log, LogError> {
        let name = format::staged_name(format::STAGED_LOG);
        let file = self.disk.create(&name);
        let file = file.map_err(|e| LogError::io("create", self.disk.path(&name), 0, e))?;
        let (number, start) = (self.active_number() + 1, self.index.end());
        let (old, new) = (self.index.numbers(), Index::default());
        let active = Active::new(file.into(), 0, 0);
        let mut log = Log::with(self.disk, self.config, self.state, new, active, start);
        log.index.next_position = Some(next_position);
        log.replaces = Some(old);
        log.begin_segment(number, start);
        Ok(log)
    }

    /// Returns false between [`Log::begin_beside`] and [`Log::publish`].
    pub fn is_published(&self) -> bool {
        self.replaces.is_none()
    }

    /// Flushes this log. If it was begun beside another one, it takes the place of that one, which is removed, and gets
    /// this state.
    pub fn publish(&mut self, state: &[u8]) -> Result<(), LogError> {
        self.flush()?;
        let Some(old) = self.replaces.clone() else {
            return Ok(());
        };
        let (staged, number) = (
            format::staged_name(format::STAGED_LOG),
            self.active_number(),
        );
        let renamed = self.disk.rename(&staged, &format::segment_name(number));
        self.name_changes += 1;
        self.poison_on_error("rename", number, 0, renamed)?;
        self.flush()?;
        self.replaces = None;
        self.save_state(state)?;
        self.remove_segments(&old)
    }

    /// Replaces the member's own state (promise, session, clean flag, as the caller encodes them; at most
    /// [`MAX_STATE_BYTES`](crate::MAX_STATE_BYTES)). On stable storage on return, in every durability mode; log data is
    /// not flushed with it. Works also after a failure that has poisoned the log: the state is a file of its own.
    pub fn save_state(&mut self, state: &[u8]) -> Result<(), LogError> {
        let result = self.state.save(self.disk.as_ref(), state);
        if let Err(e @ LogError::Io { .. }) = &result {
            self.poisoned = Some(e.to_string());
        }
        result
    }

    /// Returns the last saved state; it outlives [`Log::reset`], and [`Log::create`] with the same identity.
    pub fn state(&self) -> Option<&[u8]> {
        self.state.get()
    }
}
