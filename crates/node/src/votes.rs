//! What a replica must not forget if the cluster is to stay one: its id, the ballot that it promised, its last view.
//!
//! Kept in `trireme.gvwstate.dat`. Galera's own `gvwstate.dat` may lie beside it and is neither read nor touched; the
//! name ends alike because `wsrep_sst_mariabackup` spares what does. The byte format is in docs/state-files.md.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use trireme_group::{Ballot, ReplicaId, Uuid};

/// Name of the file, in `base_dir`.
pub const FILE_NAME: &str = "trireme.gvwstate.dat";
/// Largest view that is kept.
pub const MAX_VIEW_BYTES: usize = 256 * 1024;

const VERSION: &str = "1";
const COMMENT: &str =
    "# Trireme votes. Belongs to this data directory alone: never copy it to another.";
/// The view in hexadecimal and ample room for the rest.
const MAX_FILE_BYTES: usize = 2 * MAX_VIEW_BYTES + 4096;

/// Why votes could not be loaded or stored.
#[derive(Debug, thiserror::Error)]
pub enum VotesError {
    /// The operating system refused.
    #[error("votes file '{}': {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
    /// The file is damaged. Its promises are lost: the replica must not vote as if it had made none.
    #[error("votes file '{}' is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file was written by a later version of Trireme.
    #[error("votes file '{}' has version '{version}', this Trireme reads version {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// The view is too large to keep.
    #[error(
        "a view of {0} bytes is larger than the {MAX_VIEW_BYTES} bytes that the votes file keeps"
    )]
    ViewTooLarge(usize),
    /// A new replica was given no id.
    #[error("a replica's id must not be nil")]
    NilReplica,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Id of this data directory in votes; made once.
    pub replica: Uuid,
    /// Highest ballot that was promised.
    pub promised: Ballot,
    /// Boot of the operating system ([`current_boot_id`]) in which the member was last intact; nil at first.
    ///
    /// Leave it alone while the member may have forgotten entries: once it says "this boot", the next start believes
    /// that nothing was lost.
    pub boot_id: Uuid,
    /// Whether the node was stopped cleanly since.
    pub clean: bool,
    /// The last view, in the group's own encoding.
    pub view: Vec<u8>,
}

impl Record {
    fn format(&self) -> String {
        let mut text = format!(
            "{COMMENT}\nversion: {VERSION}\nreplica: {}\npromised: {} {}\nboot: {}\nclean: {}\nview: ",
            self.replica,
            self.promised.number,
            self.promised.replica,
            self.boot_id,
            u8::from(self.clean)
        );
        for byte in &self.view {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
        let sum = crc32c(text.as_bytes());
        let _ = writeln!(text, "crc32c: {sum:08x}");
        text
    }
}

/// Id of this boot of the operating system: what was only in the page cache is lost when it changes.
pub fn current_boot_id() -> Result<Uuid, io::Error> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .parse()
        .map_err(io::Error::other)
}

/// The votes of one data directory, in memory and on disk.
#[derive(Debug)]
pub struct Votes {
    dir: PathBuf,
    record: Record,
    is_new: bool,
}

impl Votes {
    /// Reads the votes in `dir`. Without a file this is a new replica: it gets the random id `fresh`, which is on disk
    /// when this returns.
    pub fn open(dir: &Path, fresh: Uuid) -> Result<Votes, VotesError> {
        let loaded = load(dir.join(FILE_NAME))?;
        let is_new = loaded.is_none();
        let record = loaded.unwrap_or_else(|| Record {
            replica: fresh,
            promised: Ballot::default(),
            boot_id: Uuid::NIL,
            clean: false,
            view: Vec::new(),
        });
        let votes = Votes {
            dir: dir.to_path_buf(),
            record,
            is_new,
        };
        if is_new {
            votes.store(&votes.record)?;
        }
        Ok(votes)
    }

    /// All that is remembered.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Id of this data directory in votes.
    pub fn replica(&self) -> Uuid {
        self.record.replica
    }

    /// Highest ballot that was promised.
    pub fn promised(&self) -> Ballot {
        self.record.promised
    }

    /// Whether there was no file: this replica has no past.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Remembers a promise; a lower one than before changes nothing. When this returns, the promise may be sent.
    pub fn promise(&mut self, ballot: Ballot) -> Result<(), VotesError> {
        self.update(|record| record.promised = record.promised.max(ballot))
    }

    /// Changes what is remembered: on disk when this returns, not at all if it fails. An unchanged record costs nothing.
    pub fn update(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), VotesError> {
        let mut next = self.record.clone();
        change(&mut next);
        if next != self.record {
            self.store(&next)?;
            self.record = next;
        }
        Ok(())
    }

    /// Replaces the file, atomically and flushed.
    fn store(&self, record: &Record) -> Result<(), VotesError> {
        if record.replica.is_nil() {
            return Err(VotesError::NilReplica);
        }
        if record.view.len() > MAX_VIEW_BYTES {
            return Err(VotesError::ViewTooLarge(record.view.len()));
        }
        let path = self.dir.join(FILE_NAME);
        let new_path = self.dir.join(format!("{FILE_NAME}.tmp"));
        let replace = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o660)
                .open(&new_path)?;
            file.write_all(record.format().as_bytes())?;
            file.sync_all()?;
            fs::rename(&new_path, &path)?;
            // The new name is durable only once the directory is.
            File::open(&self.dir)?.sync_all()
        };
        replace().map_err(|source| VotesError::Io {
            path: path.clone(),
            source,
        })
    }
}

/// Reads the file; `None` if there is none.
fn load(path: PathBuf) -> Result<Option<Record>, VotesError> {
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| {
        file.take(MAX_FILE_BYTES as u64 + 1)
            .read_to_string(&mut text)
    });
    match read {
        Ok(_) => parse(&text, path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(VotesError::Damaged {
            path,
            reason: "not text".to_string(),
        }),
        Err(source) => Err(VotesError::Io { path, source }),
    }
}

/// Reads the text of the file. Lines may come in any order and unknown ones are skipped; the last one is the checksum of
/// all before it.
fn parse(text: &str, path: PathBuf) -> Result<Record, VotesError> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    // The version comes first: a later one may have another checksum.
    match field("version") {
        Some(VERSION) => {}
        Some(version) => {
            return Err(VotesError::Version {
                path,
                version: version.chars().take(16).collect(),
            });
        }
        None => {
            return Err(VotesError::Damaged {
                path,
                reason: "no version line".to_string(),
            });
        }
    }
    let read = || -> Result<Record, &'static str> {
        let (body, sum) = text.rsplit_once("\ncrc32c: ").ok_or("no checksum line")?;
        let sum = sum
            .strip_suffix('\n')
            .filter(|sum| sum.len() == 8)
            .ok_or("the checksum line is not whole")?;
        let sum = u32::from_str_radix(sum, 16).map_err(|_| "the checksum is not a number")?;
        if crc32c(&text.as_bytes()[..body.len() + 1]) != sum {
            return Err("the checksum is wrong");
        }
        let uuid = |text: Option<&str>| text?.parse::<Uuid>().ok();
        let (number, caller) = field("promised")
            .and_then(|text| text.split_once(' '))
            .ok_or("no promised ballot")?;
        Ok(Record {
            replica: uuid(field("replica"))
                .filter(|id| !id.is_nil())
                .ok_or("no replica id")?,
            promised: Ballot {
                number: number
                    .parse()
                    .map_err(|_| "the ballot number is not a number")?,
                replica: uuid(Some(caller))
                    .map(ReplicaId)
                    .ok_or("the ballot's replica is not a UUID")?,
            },
            boot_id: uuid(field("boot")).ok_or("no boot id")?,
            clean: match field("clean") {
                Some("0") => false,
                Some("1") => true,
                _ => return Err("no clean flag"),
            },
            view: field("view")
                .and_then(from_hex)
                .ok_or("no view, or it is not hexadecimal")?,
        })
    };
    read().map_err(|reason| VotesError::Damaged {
        path,
        reason: reason.to_string(),
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    // Two hexadecimal digits are below 256.
    pairs
        .map(|pair| Some((digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?) as u8))
        .collect()
}

/// CRC-32C, bit by bit: the file is small and seldom written.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests;
