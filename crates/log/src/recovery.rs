//! Reads a log. In: files. Out: the index, the findings, and the repairs that damage needs (docs/log-format.md, "What
//! `open` does").

use std::path::PathBuf;

use crate::config::{Durability, LogConfig};
use crate::disk::Disk;
use crate::error::LogError;
use crate::format::{self, BadHeader, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::index::Index;
use crate::outcome::Outcome;
use crate::repair::{self, Step};
use crate::scan::{End, SegmentReader};

/// The findings of [`Log::open`](crate::Log::open).
#[derive(Debug)]
pub struct Recovered {
    /// Oldest entry; `None`: the log is empty.
    pub first_position: Option<u64>,
    /// Newest entry; `None`: the log is empty.
    pub last_position: Option<u64>,
    /// Position of the next entry; `None`: any.
    pub next_position: Option<u64>,
    /// Bytes of a torn tail that was cut off: writes that were not finished, or not flushed before a power loss.
    pub dropped_bytes: u64,
    /// Places with bad stored data although valid data followed, oldest first.
    pub damage: Vec<Damage>,
    /// The durability mode that was in force (rule 4: in `memory` mode the process's death loses entries, in `os` mode
    /// the machine's).
    pub durability: Durability,
    /// Everything below this address is known to be on stable storage.
    pub(crate) flushed: u64,
}

impl Recovered {
    /// Returns true if flushed entries at the log's end are lost: then, in any durability mode, this member may lack
    /// entries that it acknowledged.
    pub fn may_have_forgotten(&self) -> bool {
        self.damage
            .iter()
            .any(|damage| damage.lost == Lost::Newer && damage.was_flushed)
    }
}

/// The side of a damaged place that is no longer in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The entries before it and those in its segment.
    Older,
    /// Everything from the place on.
    Newer,
}

/// A place with bad stored data although valid data followed.
#[derive(Debug)]
pub struct Damage {
    /// The segment.
    pub file: PathBuf,
    /// Offset of the bad record, in bytes; 0: the segment's header is bad, or data before the segment is missing.
    pub offset: u64,
    /// The damage.
    pub reason: String,
    /// The lost side.
    pub lost: Lost,
    /// True if the bad bytes had been flushed: the disk has failed. Otherwise a power loss explains them.
    pub was_flushed: bool,
    /// The files that hold the lost parts.
    pub set_aside: Vec<PathBuf>,
}

/// The result of reading, and the repairs that the files need before the log can be written again.
pub(crate) struct Reading {
    pub index: Index,
    /// Number of the segment to append to.
    pub active: u64,
    pub repair: Vec<Step>,
    pub found: Recovered,
}

/// A segment file with its header, or the reason why it has none.
pub(crate) struct Found {
    pub number: u64,
    pub header: Result<SegmentHeader, &'static str>,
}

/// The place where reading stopped.
pub(crate) struct Stop {
    /// Index of the segment among those found.
    pub at: usize,
    pub offset: u64,
    /// The log address of the place.
    pub address: u64,
    pub reason: String,
    /// Index of the first segment that lies wholly behind the place.
    pub after: usize,
}

/// Returns the numbers of the segments in the directory, ascending.
pub(crate) fn segment_numbers(disk: &dyn Disk) -> Result<Vec<u64>, LogError> {
    let names = disk
        .list()
        .map_err(|e| LogError::io("list", disk.path(""), 0, e))?;
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| format::segment_number(name))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the identity in the newest segment with a valid header.
pub(crate) fn identity_on(disk: &dyn Disk) -> Result<Option<[u8; 16]>, LogError> {
    let found = read_headers(disk)?;
    Ok(newest(&found).map(|header| header.identity))
}

/// Reads the log, and changes nothing.
pub(crate) fn read(disk: &dyn Disk, config: &LogConfig) -> Result<Reading, LogError> {
    let mut found = read_headers(disk)?;
    let Some(newest) = newest(&found).cloned() else {
        return Err(LogError::NoLog { dir: disk.path("") });
    };
    let first = found.partition_point(|f| f.number < newest.base);
    let remnants: Vec<Found> = found.drain(..first).collect();
    check_identity(disk, &found, config.identity)?;
    let (mut repair, mut dropped_bytes, mut damage) = (Vec::new(), 0, Vec::new());
    let (index, flushed) = loop {
        let (index, flushed, stop) = scan_all(disk, &found)?;
        let Some(stop) = stop else {
            break (index, flushed);
        };
        let evidence = search_after(disk, &found, &stop)?;
        let was_flushed = evidence.is_some_and(|flushed| flushed > stop.address);
        let file = segment_path(disk, found[stop.at].number);
        let whole = (stop.after..found.len()).find(|i| found[*i].header.is_ok());
        let (lost, steps) = match whole {
            Some(whole) if was_flushed || index.segments.is_empty() => {
                let older = found.drain(..whole).map(|segment| segment.number);
                (Lost::Older, vec![Step::SetAside(older.collect())])
            }
            _ => {
                let keep_rest = evidence.is_some();
                let (steps, bytes) = repair::end_before(disk, &found, &stop, keep_rest)?;
                dropped_bytes += bytes;
                (Lost::Newer, steps)
            }
        };
        if evidence.is_some() {
            let Stop { offset, reason, .. } = stop;
            damage.push(Damage {
                file,
                offset,
                reason,
                lost,
                was_flushed,
                set_aside: steps.iter().flat_map(|step| step.kept_in(disk)).collect(),
            });
        }
        repair.extend(steps);
        if lost == Lost::Newer {
            break (index, flushed);
        }
    };
    repair.extend(repair::end_remnants(&remnants, config.identity));
    let last = index.segments.back();
    let active = last.map_or(newest.number, |last| last.number);
    let found = Recovered {
        first_position: index.first_position(),
        last_position: index.last_position(),
        next_position: index.next_position,
        dropped_bytes,
        damage,
        durability: newest.durability,
        flushed: flushed.min(index.end()),
    };
    Ok(Reading {
        index,
        active,
        repair,
        found,
    })
}

/// Refuses the segments of another history.
fn check_identity(disk: &dyn Disk, found: &[Found], expected: [u8; 16]) -> Result<(), LogError> {
    let mut headers = found
        .iter()
        .filter_map(|f| Some((f.number, f.header.as_ref().ok()?)));
    match headers.find(|(_, header)| header.identity != expected) {
        Some((number, header)) => Err(LogError::OtherIdentity {
            file: segment_path(disk, number),
            found: header.identity,
            expected,
        }),
        None => Ok(()),
    }
}

fn newest(found: &[Found]) -> Option<&SegmentHeader> {
    found.iter().rev().find_map(|f| f.header.as_ref().ok())
}

pub(crate) fn segment_path(disk: &dyn Disk, number: u64) -> PathBuf {
    disk.path(&format::segment_name(number))
}

pub(crate) fn open(disk: &dyn Disk, number: u64) -> Result<SegmentReader, LogError> {
    let file = disk
        .open(&format::segment_name(number))
        .and_then(SegmentReader::new);
    file.map_err(|e| LogError::io("open", segment_path(disk, number), 0, e))
}

fn newer_format(disk: &dyn Disk, number: u64, offset: u64, found: String) -> LogError {
    LogError::NewerFormat {
        file: segment_path(disk, number),
        offset,
        found,
        supported: "format 1",
    }
}

fn read_headers(disk: &dyn Disk) -> Result<Vec<Found>, LogError> {
    let mut found = Vec::new();
    for number in segment_numbers(disk)? {
        let mut reader = open(disk, number)?;
        let bytes = reader.bytes(0, SEGMENT_HEADER_BYTES);
        let bytes = bytes.map_err(|e| LogError::io("read", segment_path(disk, number), 0, e))?;
        let header = match bytes.try_into().map(SegmentHeader::decode) {
            Err(_) => Err("the file is shorter than a segment header"),
            Ok(Ok(header)) if header.number != number => {
                Err("the header is that of another segment")
            }
            Ok(Ok(header)) => Ok(header),
            Ok(Err(BadHeader::Invalid(reason))) => Err(reason),
            Ok(Err(BadHeader::Newer(version))) => {
                return Err(newer_format(disk, number, 8, format!("format {version}")));
            }
        };
        found.push(Found { number, header });
    }
    Ok(found)
}

/// Reads all segments into an index, up to the first bad place. The second value is the highest flushed address noted
/// before that place.
fn scan_all(disk: &dyn Disk, found: &[Found]) -> Result<(Index, u64, Option<Stop>), LogError> {
    let (mut index, mut flushed) = (Index::default(), 0);
    for (at, segment) in found.iter().enumerate() {
        let address = index.end();
        let stop = |reason: String, after| Stop {
            at,
            offset: 0,
            address,
            reason,
            after,
        };
        let header = match &segment.header {
            Ok(header) => header,
            Err(reason) => return Ok((index, flushed, Some(stop(reason.to_string(), at + 1)))),
        };
        if let Some(last) = index.segments.back() {
            // The missing data lies before this segment, which may be whole.
            if (header.number, header.start) != (last.number + 1, last.end()) {
                let reason = format!(
                    "log data from address {address} up to {} is missing",
                    header.start
                );
                return Ok((index, flushed, Some(stop(reason, at))));
            }
            if header.next_position != index.next_position {
                let reason = format!(
                    "the segment continues at position {:?}, not {:?}",
                    header.next_position, index.next_position
                );
                return Ok((index, flushed, Some(stop(reason, at))));
            }
        } else {
            index.next_position = header.next_position;
        }
        index.begin_segment(header.number, header.start);
        flushed = flushed.max(header.flushed);
        let mut newer_kind = None;
        let mut reader = open(disk, segment.number)?;
        let walked = reader.walk(header.start, |record, offset, body| {
            apply(&mut index, record, offset, body, &mut newer_kind)?;
            flushed = flushed.max(record.flushed);
            if let Some(last) = index.segments.back_mut() {
                last.len = offset + record.record_bytes();
            }
            Ok(())
        });
        let (offset, end) =
            walked.map_err(|e| LogError::io("read", segment_path(disk, segment.number), 0, e))?;
        if let Some(kind) = newer_kind {
            return Err(newer_format(
                disk,
                segment.number,
                offset,
                format!("record kind {kind}"),
            ));
        }
        if let End::Bad(reason) = end {
            let stop = Stop {
                at,
                offset,
                address: index.end(),
                reason,
                after: at + 1,
            };
            return Ok((index, flushed, Some(stop)));
        }
    }
    Ok((index, flushed, None))
}

/// Adds a valid record to the index. Err: the reason why the record does not fit.
fn apply(
    index: &mut Index,
    record: &RecordHeader,
    offset: u64,
    body: &[u8],
    newer_kind: &mut Option<u8>,
) -> Result<(), String> {
    let (position, next) = (record.position, index.next_position);
    let does_not_fit = |what: &str| {
        Err(format!(
            "{what} for position {position} while {next:?} is next"
        ))
    };
    match record.kind {
        format::KIND_ENTRY => {
            if next.is_some_and(|next| position != next) || position == u64::MAX {
                return does_not_fit("an entry");
            }
            index.push_entry(record, offset);
        }
        format::KIND_OUTCOME => {
            let body = <&[u8; Outcome::BODY_BYTES as usize]>::try_from(body);
            let outcome = Outcome::decode(
                record.tag,
                body.map_err(|_| "an outcome record of a wrong length")?,
            );
            if next.is_none_or(|next| position >= next) {
                return does_not_fit("an outcome");
            }
            // Retention may have dropped the segment of its entry since.
            if index
                .first_position()
                .is_some_and(|first| position >= first)
            {
                if !index.outcomes.fits(position, &outcome) {
                    return does_not_fit("an outcome whose seqno does not fit");
                }
                index.outcomes.set(position, outcome);
            }
        }
        format::KIND_TRUNCATE => {
            if next.is_none_or(|next| position.saturating_add(1) >= next) {
                return does_not_fit("a truncation");
            }
            index.truncate_after(position);
        }
        format::KIND_SNAPSHOT => {
            if next.is_some_and(|next| position >= next) {
                return does_not_fit("a snapshot");
            }
            index.push_snapshot(record, offset);
        }
        kind if kind >= format::FIRST_SKIPPABLE_KIND => {}
        kind => {
            *newer_kind = Some(kind);
            return does_not_fit("an unknown record");
        }
    }
    Ok(())
}

/// Searches for valid data behind the place where reading stopped. Returns the highest flushed address noted there;
/// `None` if there is no valid data.
fn search_after(disk: &dyn Disk, found: &[Found], stop: &Stop) -> Result<Option<u64>, LogError> {
    let mut evidence = None;
    for (at, segment) in found.iter().enumerate().skip(stop.at) {
        let (start, from) = match &segment.header {
            Ok(header) if at > stop.at || stop.offset == 0 => {
                evidence = evidence.max(Some(header.flushed));
                (header.start, 0)
            }
            // The bad record itself is skipped: a torn record may have a valid header.
            Ok(header) => (header.start, stop.offset + 8),
            // Without a header, only a place right behind the previous segment can be guessed.
            Err(_) if at == stop.at => (stop.address, 0),
            Err(_) => continue,
        };
        let result = open(disk, segment.number)?.search(start, from);
        evidence = evidence.max(
            result
                .map_err(|e| LogError::io("read", segment_path(disk, segment.number), from, e))?,
        );
    }
    Ok(evidence)
}
