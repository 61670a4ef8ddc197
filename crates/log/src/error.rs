//! The errors of the log.

use std::io;
use std::path::{Path, PathBuf};

/// The way back into the cluster for a node that cannot use its log.
const JOIN_ANEW: &str = "or, to give up this node's data and join by a full state transfer, move grastate.dat and the \
                         trireme-*.log files away";

/// An error of the log. Its text names the file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system refused an operation; after a failed write the log is poisoned.
    #[error("cannot {action} {} at offset {offset}: {source}; {}", file.display(), remedy(source))]
    Io {
        /// The operation: "read", "write", "flush", ...
        action: &'static str,
        /// The file (or directory).
        file: PathBuf,
        /// Offset in the file, in bytes; 0 where it has no meaning.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// The process had no free descriptor, or no memory, for a read. The stored data is not at fault: the caller may
    /// try the same read again later.
    #[error("cannot read {} now: {source}; it is tried again. {}", file.display(), shortage_remedy(source))]
    Shortage {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No usable segment in the directory: there is no log to open, create one.
    #[error("no write-set log in {}", dir.display())]
    NoLog {
        /// The directory searched.
        dir: PathBuf,
    },
    /// The log belongs to another history (cluster). Nothing was changed.
    #[error(
        "{} belongs at offset 16 to the cluster {}, the database to {}; nothing was changed. Set gcache.dir to this \
         cluster's directory; {JOIN_ANEW}",
        file.display(), uuid_text(found), uuid_text(expected)
    )]
    OtherIdentity {
        /// The segment.
        file: PathBuf,
        /// Uuid in the segment.
        found: [u8; 16],
        /// Expected UUID.
        expected: [u8; 16],
    },
    /// A newer Trireme wrote the log. Nothing was changed.
    #[error(
        "{} was written by a newer version (at offset {offset}: {found}; this one knows {supported}); nothing was \
         changed. Start that version again; {JOIN_ANEW}",
        file.display()
    )]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The unknown part, for instance "format 2" or "record kind 9".
        found: String,
        /// The versions or kinds that this version supports.
        supported: &'static str,
    },
    /// Stored bytes differ from the written ones.
    #[error(
        "{} is damaged at offset {offset}: {reason}; check the disk and the kernel's messages; {JOIN_ANEW}",
        file.display()
    )]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The damage.
        reason: String,
    },
    /// An append skipped or repeated a position: each entry must have the position after the last one.
    #[error("entry at position {got} cannot be appended, the log continues at {expected}")]
    NotContiguous {
        /// The expected position.
        expected: u64,
        /// The position given.
        got: u64,
    },
    /// Something exceeds the limit of the format.
    #[error("a {what} of {bytes} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// The subject: "payload", "snapshot", "state", "position".
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An outcome or a log checkpoint for a position that was not appended.
    #[error("position {position} is not in the log")]
    NoSuchPosition {
        /// The position given.
        position: u64,
    },
    /// An outcome with a seqno that does not grow with its position, or differs from the known one: certification is
    /// not deterministic, or the caller mixed up positions.
    #[error("seqno {seqno} for position {position} contradicts the outcomes known")]
    SeqnoOrder {
        /// The position given.
        position: u64,
        /// The seqno given.
        seqno: i64,
    },
    /// An earlier write failed; the content of the disk is unknown until the log is opened again.
    #[error("the write-set log takes no more writes after: {cause}")]
    Poisoned {
        /// Text of the first error.
        cause: String,
    },
}

impl LogError {
    pub(crate) fn io(action: &'static str, file: PathBuf, offset: u64, source: io::Error) -> Self {
        LogError::Io {
            action,
            file,
            offset,
            source,
        }
    }

    /// Returns the error of a read. Distinguishes a shortage, which passes, from a fault of the file.
    pub(crate) fn of_read(file: PathBuf, offset: u64, source: io::Error) -> Self {
        match is_shortage(&source) {
            true => LogError::Shortage { file, source },
            false => LogError::io("read", file, offset, source),
        }
    }

    /// Returns true if the same read may succeed later.
    pub fn is_shortage(&self) -> bool {
        matches!(self, LogError::Shortage { .. })
    }

    /// Returns true if a flush has failed: bytes that were written before, and not flushed, may be lost.
    pub fn is_of_flush(&self) -> bool {
        matches!(self, LogError::Io { action, .. } if action.starts_with("flush"))
    }

    /// Returns true if the volume may have lost bytes that it had taken: after a failed flush, and after every failed
    /// write except one that lacked room, descriptors or memory.
    pub fn is_of_volume(&self) -> bool {
        match self {
            LogError::Io { source, .. } => self.is_of_flush() || !is_lack(source),
            LogError::Poisoned { .. } => true,
            _ => false,
        }
    }

    /// Returns true if the failed operation would have changed nothing.
    pub fn is_of_read(&self) -> bool {
        let reads = ["read", "open", "list"];
        matches!(self, LogError::Io { action, .. } if reads.iter().any(|r| action.starts_with(r)))
    }

    pub(crate) fn corrupt(file: &Path, offset: u64, reason: impl Into<String>) -> Self {
        LogError::Corrupt {
            file: file.to_path_buf(),
            offset,
            reason: reason.into(),
        }
    }
}

/// `ENFILE` and `EMFILE`, which have no names in [`io::ErrorKind`].
pub(crate) const TOO_MANY_OPEN: [i32; 2] = [23, 24];

/// Returns true if the process or the system lacked, for a moment, something that any file operation needs.
pub(crate) fn is_shortage(source: &io::Error) -> bool {
    let passes = [io::ErrorKind::OutOfMemory, io::ErrorKind::Interrupted];
    is_of_descriptors(source) || passes.contains(&source.kind())
}

/// Returns true if room, descriptors or memory were lacking: bytes that were taken before are not at risk.
pub fn is_lack(source: &io::Error) -> bool {
    let of_room = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    is_shortage(source) || of_room.contains(&source.kind())
}

fn is_of_descriptors(source: &io::Error) -> bool {
    (source.raw_os_error()).is_some_and(|code| TOO_MANY_OPEN.contains(&code))
}

fn shortage_remedy(source: &io::Error) -> &'static str {
    match is_of_descriptors(source) {
        true => "Too many open files: raise open_files_limit (LimitNOFILE of the service)",
        false => "The machine is short of memory",
    }
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there or lower gcache.size, then restart the node"
        }
        io::ErrorKind::UnexpectedEof => {
            "the file is shorter than it was: check the disk, then restart the node"
        }
        io::ErrorKind::NotFound => "was it removed by hand, by log rotation or by a cleaning job?",
        io::ErrorKind::PermissionDenied => "the server's user must be able to read and write there",
        io::ErrorKind::ReadOnlyFilesystem => "remount it writable, then restart the node",
        _ => "check the disk and the kernel's messages, then restart the node",
    }
}

fn uuid_text(id: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in id.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
