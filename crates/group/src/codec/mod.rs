//! Bytes of messages, entries and checkpoints, as `docs/wire-group.md` describes them.

mod types;
mod wire;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod strategies;
#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};

use crate::checkpoint::Checkpoint;
use crate::entry::{Body, Entry};
use crate::message::{Message, WireBody};
use types::old_checkpoint;
pub(crate) use wire::MAX_LIST;
use wire::Wire;

/// Version of the format, the first byte of everything.
const FORMAT_VERSION: u8 = 1;

/// Kind of an entry in the log.
const ENTRY: u8 = 64;
/// Kind of a checkpoint in the log.
const CHECKPOINT: u8 = 66;
/// Kind of an older checkpoint format, which is still read and no longer written.
const OLD_CHECKPOINT: u8 = 65;

/// Length of a submission's log entry without its payload, which comes last ([`encode_entry_parts`]).
pub const ENTRY_HEAD_BYTES: usize = 2 + 8 + 24 + 1 + 24 + 4;

/// Bytes that are no message (entry, checkpoint) of this format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by another version of the format.
    #[error("format version {0} is not supported (expected {FORMAT_VERSION})")]
    Version(u8),
    /// A kind, flag or other choice that this format does not have.
    #[error("unknown {what}: {value}")]
    Unknown {
        /// Name of the expected choice.
        what: &'static str,
        /// The byte in its place.
        value: u8,
    },
    /// The bytes end within a value.
    #[error("truncated: {needed} bytes needed, {left} left")]
    Truncated {
        /// Bytes that the value takes at least.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// Bytes are left over.
    #[error("{0} bytes too many")]
    Trailing(usize),
    /// A text or a list beyond its limit.
    #[error("{what} of {length} is longer than the limit of {limit}")]
    TooLong {
        /// Text (bytes) or list (items).
        what: &'static str,
        /// Length announced.
        length: usize,
        /// Length allowed.
        limit: usize,
    },
    /// A text that is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// The keys of a map are not strictly ascending.
    #[error("keys are not in ascending order")]
    NotAscending,
    /// An incarnation stands for two replicas.
    #[error("an incarnation belongs to two replicas")]
    Twice,
}

/// The bytes of a message. Texts are cut at 4096 bytes.
///
/// # Panics
/// If a list has more than 65535 items, or a payload more than 4 GiB. Neither happens: the core bounds lists and
/// payloads where they come in (limits, validation) and where it makes them (`SUMMARY_RUNS_SENT`, `NUMBERS_MAX`).
pub fn encode(message: &Message) -> Bytes {
    let mut out = start(payload_bytes(message));
    message.put(&mut out);
    out.freeze()
}

/// The message in these bytes, all of them. Payloads are slices of `bytes`, not copies.
pub fn decode(bytes: Bytes) -> Result<Message, DecodeError> {
    read_all(check_version(bytes)?)
}

/// The bytes of an entry for the log.
pub fn encode_entry(entry: &Entry) -> Bytes {
    let mut out = start(entry.size_bytes());
    ENTRY.put(&mut out);
    entry.put(&mut out);
    out.freeze()
}

/// The bytes of an entry for the log in two pieces: the second is its payload, not a copy.
pub fn encode_entry_parts(entry: &Entry) -> (Bytes, Bytes) {
    let Body::Submission { id, payload } = &entry.body else {
        return (encode_entry(entry), Bytes::new());
    };
    let without = Entry {
        body: Body::Submission {
            id: *id,
            payload: Bytes::new(),
        },
        ..*entry
    };
    // The payload comes last, behind its length.
    let mut out = BytesMut::from(&encode_entry(&without)[..]);
    out.truncate(out.len() - size_of::<u32>());
    (payload.len() as u32).put(&mut out);
    (out.freeze(), payload.clone())
}

/// The entry in these bytes; a payload is a slice of them.
pub fn decode_entry(bytes: Bytes) -> Result<Entry, DecodeError> {
    read_all(check_kind(
        ENTRY,
        "kind of log entry",
        check_version(bytes)?,
    )?)
}

/// Decodes a submission's entry, without its payload, from its first [`ENTRY_HEAD_BYTES`].
pub fn decode_entry_head(head: &[u8]) -> Result<Entry, DecodeError> {
    let mut without = BytesMut::from(head);
    without.truncate(head.len().saturating_sub(size_of::<u32>()));
    0u32.put(&mut without);
    decode_entry(without.freeze())
}

/// The bytes of a checkpoint for the log.
///
/// # Panics
/// As [`encode`].
pub fn encode_checkpoint(checkpoint: &Checkpoint) -> Bytes {
    let mut out = start(0);
    CHECKPOINT.put(&mut out);
    checkpoint.put(&mut out);
    out.freeze()
}

/// The checkpoint in these bytes.
pub fn decode_checkpoint(bytes: Bytes) -> Result<Checkpoint, DecodeError> {
    let mut input = check_version(bytes)?;
    if input.first() == Some(&OLD_CHECKPOINT) {
        u8::get(&mut input)?;
        return read_all_by(old_checkpoint, input);
    }
    read_all(check_kind(CHECKPOINT, "kind of checkpoint", input)?)
}

/// A buffer with the version in it, and room for `size_bytes` and the fixed fields.
fn start(size_bytes: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(size_bytes + 192);
    FORMAT_VERSION.put(&mut out);
    out
}

fn check_version(mut input: Bytes) -> Result<Bytes, DecodeError> {
    match u8::get(&mut input)? {
        FORMAT_VERSION => Ok(input),
        version => Err(DecodeError::Version(version)),
    }
}

fn check_kind(expected: u8, what: &'static str, mut input: Bytes) -> Result<Bytes, DecodeError> {
    match u8::get(&mut input)? {
        kind if kind == expected => Ok(input),
        value => Err(DecodeError::Unknown { what, value }),
    }
}

fn read_all<T: Wire>(input: Bytes) -> Result<T, DecodeError> {
    read_all_by(T::get, input)
}

/// Reads one value; bytes after it are an error.
fn read_all_by<T>(
    get: impl Fn(&mut Bytes) -> Result<T, DecodeError>,
    mut input: Bytes,
) -> Result<T, DecodeError> {
    let value = get(&mut input)?;
    if input.is_empty() {
        Ok(value)
    } else {
        Err(DecodeError::Trailing(input.len()))
    }
}

/// Estimates the size of a message's payloads, so that the buffer of a large message need not grow.
fn payload_bytes(message: &Message) -> usize {
    match message {
        Message::Submit {
            payload: Some(payload),
            ..
        } => payload.len(),
        Message::Append(append) => append
            .entries
            .iter()
            .map(|entry| match &entry.body {
                WireBody::Full(Body::Submission { payload, .. }) => 64 + payload.len(),
                _ => 72,
            })
            .sum(),
        _ => 0,
    }
}
