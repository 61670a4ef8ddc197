//! The facts that a replica must never forget, or the cluster could split: its id and key, the term that it has
//! promised, and the id of the log with which it acknowledges.
//!
//! They are kept in `trireme.gvwstate.dat`. Galera's own `gvwstate.dat` may lie beside it; this module neither reads
//! nor changes that file. The name has the same end because `wsrep_sst_mariabackup` keeps files with this end. The byte
//! format is in docs/state-files.md.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crc32c::crc32c;
use trireme_engine::NotKept;
use trireme_group::{Counting, ReplicaId, Term, Uuid};
use trireme_log::is_lack;
use trireme_tls::{IdentityKey, LibraryError};

use birth::Birth;
use files::Files;

/// Name of the file, in `base_dir`.
pub const FILE_NAME: &str = "trireme.gvwstate.dat";

const VERSION: &str = "2";
/// The version of files without a key.
const VERSION_WITHOUT_KEY: &str = "1";
const COMMENT: &str =
    "# Trireme votes. Belongs to this data directory alone: never copy it to another.";
/// Limit of the file, above any valid size: a larger one is damaged.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The reason why votes could not be loaded or stored.
#[derive(Debug, thiserror::Error)]
pub enum VotesError {
    /// The operating system refused.
    #[error("votes file '{}': {source}; check its owner and mode, and the free space there", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is damaged. Its promises are lost: the replica must not vote as if it had made none.
    #[error(
        "votes file '{}' is damaged: {reason}; while other nodes have the data, move this node's trireme* files and \
         grastate.dat away: it then joins as a new one, with a full state transfer",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
    /// The file was written by a later version of Trireme.
    #[error(
        "votes file '{}' has version '{version}', this Trireme reads versions {VERSION_WITHOUT_KEY} and {VERSION}: load the newer libtrireme.so again",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// The system gave no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(#[from] getrandom::Error),
    /// The key could not be used.
    #[error("OpenSSL fails: {0}; check the installation of libssl and openssl.cnf")]
    Key(#[from] LibraryError),
}

impl From<VotesError> for NotKept {
    fn from(error: VotesError) -> NotKept {
        let is_lack = matches!(&error, VotesError::Io { source, .. } if is_lack(source));
        NotKept {
            text: error.to_string(),
            is_lack,
        }
    }
}

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    birth: Birth,
    promised: Term,
    /// Id of the log; nil: none yet.
    log: Uuid,
}

impl Record {
    fn format(&self) -> String {
        let log = match self.log.is_nil() {
            true => String::new(),
            false => format!("log: {}\n", self.log),
        };
        let mut text = format!(
            "{COMMENT}\nversion: {VERSION}\nreplica: {}\nkey: {}\nmade: {}\npromised: {} {}\n{log}",
            self.birth.replica,
            hex(&self.birth.seed),
            self.birth.made_ms,
            self.promised.number,
            self.promised.replica,
        );
        let sum = crc32c(text.as_bytes());
        text.push_str(&format!("crc32c: {sum:08x}\n"));
        text
    }
}

/// The votes of one data directory, in memory and on disk.
#[derive(Debug)]
pub struct Votes {
    dir: PathBuf,
    files: Files,
    record: Record,
}

impl Votes {
    /// Reads the votes in `dir`. Without a file this is a new replica, made `now`. The votes are on disk when this
    /// returns.
    pub fn open(dir: &Path, now: SystemTime) -> Result<Votes, VotesError> {
        let record = match load(dir.join(FILE_NAME))? {
            Some(record) => record,
            None => Record {
                birth: Birth::at(now)?,
                promised: Term::default(),
                log: Uuid::NIL,
            },
        };
        let files = Files::open(dir).map_err(|source| VotesError::Io {
            path: dir.to_path_buf(),
            source,
        })?;
        let mut votes = Votes {
            dir: dir.to_path_buf(),
            files,
            record,
        };
        // Store again, even if the file was found: the process that wrote it may have died because its write did not
        // reach the disk.
        votes.store(&record)?;
        Ok(votes)
    }

    /// Returns the replica id of this data directory; made once.
    pub fn replica(&self) -> Uuid {
        self.record.birth.replica
    }

    /// Returns the key with which this data directory proves its identity to others.
    pub fn key(&self) -> Result<IdentityKey, VotesError> {
        self.record.birth.key()
    }

    /// Returns the first bytes of the ids of this directory's processes.
    pub fn place(&self) -> [u8; 8] {
        self.record.birth.place()
    }

    /// Returns the highest term that was promised.
    pub fn promised(&self) -> Term {
        self.record.promised
    }

    /// Remembers a promise; a lower one than before changes nothing. When this returns, the promise may be sent. If it
    /// fails, nothing has changed.
    pub fn promise(&mut self, term: Term) -> Result<(), VotesError> {
        if term > self.record.promised {
            let next = Record {
                promised: term,
                ..self.record
            };
            self.store(&next)?;
            self.record = next;
        }
        Ok(())
    }

    /// Returns the log with which this replica acknowledged last; nil: none, or unknown.
    pub fn log(&self) -> Uuid {
        self.record.log
    }

    /// Remembers the log with which this replica acknowledges from here on. If it fails, nothing has changed.
    pub fn set_log(&mut self, log: Uuid) -> Result<(), VotesError> {
        if log != self.record.log {
            let next = Record { log, ..self.record };
            self.store(&next)?;
            self.record = next;
        }
        Ok(())
    }

    /// Replaces the file, atomically and flushed.
    fn store(&mut self, record: &Record) -> Result<(), VotesError> {
        let stored = self.files.replace(record.format().as_bytes());
        stored.map_err(|source| VotesError::Io {
            path: self.dir.join(FILE_NAME),
            source,
        })
    }
}

/// Reads the file; `None` if there is none.
fn load(path: PathBuf) -> Result<Option<Record>, VotesError> {
    let mut text = String::new();
    let read =
        File::open(&path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text));
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

/// Reads the text of the file. Lines may come in any order, and unknown ones are skipped; the last line is the checksum
/// of all lines before it.
fn parse(text: &str, path: PathBuf) -> Result<Record, VotesError> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    // The version is checked first: a later version may have another checksum.
    let has_key = match field("version") {
        Some(VERSION) => true,
        Some(VERSION_WITHOUT_KEY) => false,
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
    };
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
            .ok_or("no promised term")?;
        let replica = uuid(field("replica"))
            .filter(|id| !id.is_nil())
            .ok_or("no replica id")?;
        let birth = match has_key {
            false => {
                Birth::adopted(replica).map_err(|_| "there is no key, and none can be made")?
            }
            true => Birth {
                replica,
                seed: field("key").and_then(unhex).ok_or("no key")?,
                made_ms: field("made")
                    .and_then(|text| text.parse().ok())
                    .ok_or("no time at which it was made")?,
            },
        };
        if !birth.is_whole() {
            return Err("the key is not that of the replica id");
        }
        Ok(Record {
            birth,
            promised: Term {
                number: number
                    .parse()
                    .ok()
                    .filter(|number| Counting::OF_OWN_FILES.reaches(*number))
                    .ok_or("the term number is no number that counting reaches")?,
                replica: uuid(Some(caller))
                    .map(ReplicaId)
                    .ok_or("the term's replica is not a UUID")?,
            },
            log: match field("log") {
                Some(text) => uuid(Some(text)).ok_or("the log's id is not a UUID")?,
                None => Uuid::NIL,
            },
        })
    };
    read().map_err(|reason| VotesError::Damaged {
        path,
        reason: reason.to_string(),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let is_hex = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    is_hex.then_some(bytes)
}

mod birth;
mod files;

#[cfg(test)]
mod tests;
