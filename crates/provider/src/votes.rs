//! What a replica must not forget if the cluster is to stay one: its id, the ballot that it promised, its last view.
//!
//! Kept in `trireme.gvwstate.dat`. Galera's own `gvwstate.dat` may lie beside it and is neither read nor touched; the
//! name ends alike because `wsrep_sst_mariabackup` spares what does. The byte format is in docs/state-files.md.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use trireme_wsrep_abi::Uuid;

/// Name of the file, in `base_dir`.
pub const FILE_NAME: &str = "trireme.gvwstate.dat";
/// Largest view that is kept.
pub const MAX_VIEW_BYTES: usize = 256 * 1024;

const VERSION: &str = "1";
const COMMENT: &str = "# Trireme votes. Belongs to this data directory alone: never copy it to another.";
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
    #[error("a view of {0} bytes is larger than the {MAX_VIEW_BYTES} bytes that the votes file keeps")]
    ViewTooLarge(usize),
}

/// A ballot: ordered by number, then by the replica that called for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ballot {
    /// Number, 0 for "none yet".
    pub number: u64,
    /// The replica that called for it.
    pub replica: Uuid,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Votes {
    /// Id of this data directory in votes; made once.
    pub replica: Uuid,
    /// Highest ballot that was promised.
    pub promised: Ballot,
    /// Boot of the operating system in which the file was written ([`current_boot_id`]).
    pub boot_id: Uuid,
    /// Whether the node was stopped cleanly since.
    pub clean: bool,
    /// The last view, in the group's own encoding.
    pub view: Vec<u8>,
}

impl Votes {
    /// Votes of a new replica: a random id (UUID version 4), nothing promised, no view.
    pub fn new_replica(boot_id: Uuid) -> Result<Votes, io::Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let replica = Uuid { bytes };
        Ok(Votes { replica, promised: Ballot::default(), boot_id, clean: false, view: Vec::new() })
    }

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

/// Id of this boot of the operating system: data that was only in the page cache survived since the file was written
/// if, and only if, it is still the same.
pub fn current_boot_id() -> Result<Uuid, io::Error> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().parse().map_err(io::Error::other)
}

/// The votes file of one data directory.
#[derive(Clone, Debug)]
pub struct VotesFile {
    dir: PathBuf,
}

impl VotesFile {
    /// The votes file in `dir`; nothing is opened yet.
    pub fn new(dir: &Path) -> VotesFile {
        VotesFile { dir: dir.to_path_buf() }
    }

    /// Reads the votes. `None` if there is no file: this is a new replica.
    pub fn load(&self) -> Result<Option<Votes>, VotesError> {
        let path = self.path();
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_FILE_BYTES as u64 + 1).read_to_string(&mut text));
        match read {
            Ok(_) => parse(&text, path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(VotesError::Damaged { path, reason: "not text".to_string() })
            }
            Err(source) => Err(VotesError::Io { path, source }),
        }
    }

    /// Replaces the votes, atomically and flushed to disk: when this returns, they will not be forgotten.
    pub fn store(&self, votes: &Votes) -> Result<(), VotesError> {
        if votes.view.len() > MAX_VIEW_BYTES {
            return Err(VotesError::ViewTooLarge(votes.view.len()));
        }
        let path = self.path();
        let new_path = self.dir.join(format!("{FILE_NAME}.tmp"));
        let replace = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o660).open(&new_path)?;
            file.write_all(votes.format().as_bytes())?;
            file.sync_all()?;
            fs::rename(&new_path, &path)?;
            // The new name is durable only once the directory is.
            File::open(&self.dir)?.sync_all()
        };
        replace().map_err(|source| VotesError::Io { path: path.clone(), source })
    }

    fn path(&self) -> PathBuf {
        self.dir.join(FILE_NAME)
    }
}

/// Reads the text of the file. Lines may come in any order and unknown ones are skipped; the last one is the checksum of
/// all before it.
fn parse(text: &str, path: PathBuf) -> Result<Votes, VotesError> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    // The version comes first: a later one may have another checksum.
    match field("version") {
        Some(VERSION) => {}
        Some(version) => return Err(VotesError::Version { path, version: version.chars().take(16).collect() }),
        None => return Err(VotesError::Damaged { path, reason: "no version line".to_string() }),
    }
    let read = || -> Result<Votes, &'static str> {
        let (body, sum) = text.rsplit_once("\ncrc32c: ").ok_or("no checksum line")?;
        let sum = sum.strip_suffix('\n').filter(|sum| sum.len() == 8).ok_or("the checksum line is not whole")?;
        let sum = u32::from_str_radix(sum, 16).map_err(|_| "the checksum is not a number")?;
        if crc32c(&text.as_bytes()[..body.len() + 1]) != sum {
            return Err("the checksum is wrong");
        }
        let uuid = |text: Option<&str>| text?.parse::<Uuid>().ok();
        let (number, caller) = field("promised").and_then(|text| text.split_once(' ')).ok_or("no promised ballot")?;
        Ok(Votes {
            replica: uuid(field("replica")).filter(|id| !id.is_nil()).ok_or("no replica id")?,
            promised: Ballot {
                number: number.parse().map_err(|_| "the ballot number is not a number")?,
                replica: uuid(Some(caller)).ok_or("the ballot's replica is not a UUID")?,
            },
            boot_id: uuid(field("boot")).ok_or("no boot id")?,
            clean: match field("clean") {
                Some("0") => false,
                Some("1") => true,
                _ => return Err("no clean flag"),
            },
            view: field("view").and_then(from_hex).ok_or("no view, or it is not hexadecimal")?,
        })
    };
    read().map_err(|reason| VotesError::Damaged { path, reason: reason.to_string() })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    // Two hexadecimal digits are below 256.
    pairs.map(|pair| Some((digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?) as u8)).collect()
}

/// CRC-32C, bit by bit: the file is small and seldom written.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn votes() -> Votes {
        Votes {
            replica: "3b1c0f2e-0102-41ee-8b1c-00ff7f80a5c3".parse().unwrap(),
            promised: Ballot { number: 17, replica: "11111111-2222-4333-8444-555555555555".parse().unwrap() },
            boot_id: "8a0a22c5-6ed5-4f1b-a3cc-6c2d33b5c0a4".parse().unwrap(),
            clean: true,
            view: vec![0x00, 0x01, 0xfe],
        }
    }

    #[test]
    fn the_checksum_is_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn the_file_is_as_documented() {
        let golden = "# Trireme votes. Belongs to this data directory alone: never copy it to another.\n\
            version: 1\n\
            replica: 3b1c0f2e-0102-41ee-8b1c-00ff7f80a5c3\n\
            promised: 17 11111111-2222-4333-8444-555555555555\n\
            boot: 8a0a22c5-6ed5-4f1b-a3cc-6c2d33b5c0a4\n\
            clean: 1\n\
            view: 0001fe\n\
            crc32c: 39ef3e80\n";
        assert_eq!(votes().format(), golden);
        assert_eq!(parse(golden, PathBuf::new()).unwrap(), votes());
    }

    #[test]
    fn votes_are_stored_and_loaded_beside_galeras_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("gvwstate.dat"), "my_uuid: x\n").unwrap();
        let file = VotesFile::new(dir.path());
        assert_eq!(file.load().unwrap(), None);
        file.store(&votes()).unwrap();
        assert_eq!(file.load().unwrap(), Some(votes()));
        let next = Votes { promised: Ballot { number: 18, ..votes().promised }, clean: false, ..votes() };
        file.store(&next).unwrap();
        assert_eq!(file.load().unwrap(), Some(next));
        assert_eq!(fs::read_to_string(dir.path().join("gvwstate.dat")).unwrap(), "my_uuid: x\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn the_snapshot_script_spares_the_name() {
        // `cpat` of wsrep_sst_mariabackup has `.*gvwstate\.dat$`, matched against the whole path.
        assert!(FILE_NAME.ends_with("gvwstate.dat") && FILE_NAME != "gvwstate.dat");
    }

    #[test]
    fn damage_and_later_versions_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = VotesFile::new(dir.path());
        let load = |content: &[u8]| {
            fs::write(dir.path().join(FILE_NAME), content).unwrap();
            file.load()
        };
        assert!(matches!(load(b"version: 2\n"), Err(VotesError::Version { version, .. }) if version == "2"));
        let good = votes().format();
        for bad in ["", "version: 1\n", "my_uuid: x\n", &good[..good.len() - 1], &good.replace("promised: 17", "promised: 16")] {
            assert!(matches!(load(bad.as_bytes()), Err(VotesError::Damaged { .. })), "{bad}");
        }
        assert!(matches!(load(b"version: 1\n\xff"), Err(VotesError::Damaged { .. })));
        assert!(load(good.as_bytes()).is_ok());
    }

    #[test]
    fn a_view_that_could_not_be_read_back_is_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let file = VotesFile::new(dir.path());
        let largest = Votes { view: vec![0xab; MAX_VIEW_BYTES], ..votes() };
        file.store(&largest).unwrap();
        assert_eq!(file.load().unwrap(), Some(largest.clone()));
        let too_large = Votes { view: vec![0; MAX_VIEW_BYTES + 1], ..votes() };
        assert!(matches!(file.store(&too_large), Err(VotesError::ViewTooLarge(_))));
        assert_eq!(file.load().unwrap(), Some(largest));
    }

    #[test]
    fn new_replicas_differ_and_ballots_are_ordered() {
        let boot_id = current_boot_id().unwrap();
        let (one, two) = (Votes::new_replica(boot_id).unwrap(), Votes::new_replica(boot_id).unwrap());
        assert_ne!(one.replica, two.replica);
        assert_eq!(one.replica.to_string().as_bytes()[14], b'4');
        let ballot = |number, byte| Ballot { number, replica: Uuid { bytes: [byte; 16] } };
        assert!(ballot(1, 9) < ballot(2, 0) && ballot(2, 0) < ballot(2, 1) && Ballot::default() < ballot(1, 0));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            let _ = parse(&text, PathBuf::new());
            let _ = parse(&format!("version: 1\n{text}"), PathBuf::new());
            let _ = from_hex(&text);
        }

        #[test]
        fn any_single_changed_byte_is_noticed(at in 0usize..300, to: u8) {
            let good = votes().format();
            let mut bytes = good.clone().into_bytes();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            // The digits of the checksum may change case without changing its value.
            if let Ok(text) = String::from_utf8(bytes) {
                prop_assert!(parse(&text, PathBuf::new()).map_or(true, |_| text.eq_ignore_ascii_case(&good)));
            }
        }

        #[test]
        fn votes_round_trip(replica: [u8; 16], number: u64, clean: bool, view: Vec<u8>) {
            let replica = Uuid { bytes: replica };
            prop_assume!(!replica.is_nil());
            let votes = Votes { replica, promised: Ballot { number, replica }, boot_id: replica, clean, view };
            prop_assert_eq!(parse(&votes.format(), PathBuf::new()).unwrap(), votes);
        }
    }
}
