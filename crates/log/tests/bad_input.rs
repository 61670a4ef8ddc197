//! A directory that is not as it should be: one clear error that names the file, the place and the remedy, and
//! nothing is overwritten; or a log that goes on with what is whole, and says what is not.

mod common;

use std::io;
use std::path::PathBuf;

use trireme_log::{
    Disk, DiskFile, Durability, Log, LogConfig, LogError, Lost, MemoryDisk, Outcome,
};

use common::{change, contents, segments};

const STATE: &str = "trireme-state.log";

fn config(identity: u8) -> LogConfig {
    LogConfig {
        segment_bytes: 1024,
        ..LogConfig::new("".into(), 1 << 20, [identity; 16], Durability::Os)
    }
}

/// Several segments, of cluster 7, and a state that was saved twice.
fn log_on(disk: &MemoryDisk) {
    let mut log = Log::create_on(Box::new(disk.clone()), config(7)).unwrap();
    for position in 1..=40 {
        log.append(position, &[&[position as u8; 100]]).unwrap();
        let outcome = Outcome {
            seqno: position as i64,
            flags: 0,
            depends_on: 0,
        };
        log.set_outcome(position, outcome).unwrap();
        if position % 10 == 0 {
            log.flush().unwrap();
        }
    }
    log.save_state(b"one").unwrap();
    log.save_state(b"two").unwrap();
}

/// A disk on which opening, listing or creating is refused.
#[derive(Clone)]
struct Refusing {
    disk: MemoryDisk,
    what: &'static str,
    kind: io::ErrorKind,
}

impl Refusing {
    fn refuses(&self, what: &str) -> io::Result<()> {
        match what == self.what {
            true => Err(self.kind.into()),
            false => Ok(()),
        }
    }
}

impl Disk for Refusing {
    fn list(&self) -> io::Result<Vec<String>> {
        self.refuses("list")?;
        self.disk.list()
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.refuses("create")?;
        self.disk.create(name)
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.refuses("open")?;
        if name == STATE {
            self.refuses("open the state")?;
        }
        self.disk.open(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.refuses("rename")?;
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }
    fn path(&self, name: &str) -> PathBuf {
        self.disk.path(name)
    }
}

#[test]
fn what_cannot_be_used_is_refused_untouched() {
    type Spoil = fn(&MemoryDisk);
    // What is wrong, and what the error must say.
    let cases: &[(&str, Spoil, &[&str])] = &[
        (
            "of another cluster",
            |disk| {
                let other = MemoryDisk::new();
                let mut log = Log::create_on(Box::new(other.clone()), config(8)).unwrap();
                log.append(1, &[b"theirs"]).unwrap();
                log.flush().unwrap();
                for name in disk.list().unwrap() {
                    disk.remove(&name).unwrap();
                }
                for (name, bytes) in contents(&other) {
                    disk.set_contents(&name, bytes);
                }
            },
            &[
                "trireme-000000000001.log",
                "offset 16",
                "08080808-",
                "07070707-",
                "gcache.dir",
                "grastate.dat",
            ],
        ),
        (
            "of a newer version",
            |disk| change(disk, &segments(disk)[0], |bytes| bytes[8] = 2),
            &[
                "trireme-000000000001.log",
                "offset 8",
                "format 2",
                "newer version",
                "grastate.dat",
            ],
        ),
        (
            "state of a newer version",
            |disk| change(disk, STATE, |bytes| bytes[8] = 2),
            &[STATE, "offset 8", "format 2", "grastate.dat"],
        ),
        (
            "no state is whole",
            |disk| {
                change(disk, STATE, |bytes| {
                    bytes[60] ^= 1;
                    bytes[16384 + 60] ^= 1;
                })
            },
            &[STATE, "damaged", "offset 0", "grastate.dat"],
        ),
        (
            "state of zeros and rubbish",
            |disk| change(disk, STATE, |bytes| bytes.fill(0x5a)),
            &[STATE, "damaged", "grastate.dat"],
        ),
    ];
    for (what, spoil, words) in cases {
        let disk = MemoryDisk::new();
        log_on(&disk);
        spoil(&disk);
        let before = contents(&disk);
        let error = match Log::open_on(Box::new(disk.clone()), config(7)) {
            Ok(_) => panic!("{what}: the log was opened"),
            Err(error) => error.to_string(),
        };
        for word in *words {
            assert!(error.contains(word), "{what}: no '{word}' in: {error}");
        }
        assert_eq!(contents(&disk), before, "{what}: something was changed");
    }
}

#[test]
fn what_cannot_be_opened_is_refused_untouched() {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull};
    let cases: &[(&str, io::ErrorKind, &[&str])] = &[
        (
            "open",
            PermissionDenied,
            &["trireme-000000000001.log", "offset 0", "server's user"],
        ),
        (
            "open",
            ReadOnlyFilesystem,
            &["trireme-000000000001.log", "offset 0", "remount"],
        ),
        (
            "open the state",
            PermissionDenied,
            &[STATE, "server's user"],
        ),
        ("list", PermissionDenied, &["/memory", "server's user"]),
    ];
    for (what, kind, words) in cases {
        let disk = MemoryDisk::new();
        log_on(&disk);
        let before = contents(&disk);
        let refusing = Refusing {
            disk: disk.clone(),
            what,
            kind: *kind,
        };
        let error = match Log::open_on(Box::new(refusing), config(7)) {
            Ok(_) => panic!("{what}, {kind}: the log was opened"),
            Err(error) => error.to_string(),
        };
        for word in *words {
            assert!(
                error.contains(word),
                "{what}, {kind}: no '{word}' in: {error}"
            );
        }
        assert_eq!(
            contents(&disk),
            before,
            "{what}, {kind}: something was changed"
        );
    }
    // A new log that cannot be made destroys nothing of the old one.
    for (what, kind) in [("create", ReadOnlyFilesystem), ("create", StorageFull)] {
        let disk = MemoryDisk::new();
        log_on(&disk);
        let before = contents(&disk);
        let refusing = Refusing {
            disk: disk.clone(),
            what,
            kind,
        };
        assert!(matches!(
            Log::create_on(Box::new(refusing), config(7)),
            Err(LogError::Io { .. })
        ));
        assert_eq!(
            contents(&disk),
            before,
            "{what}, {kind}: something was changed"
        );
    }
}

/// On a disk without room damage is not repaired: the log stays as it was found, and the error says so.
#[test]
fn damage_is_left_alone_on_a_full_disk() {
    let disk = MemoryDisk::new();
    log_on(&disk);
    let name = disk
        .list()
        .unwrap()
        .into_iter()
        .rfind(|n| n.starts_with("trireme-0"))
        .unwrap();
    change(&disk, &name, |bytes| bytes[140] ^= 1);
    disk.set_room(Some(0));
    let before = disk.contents(&name);
    let error = match Log::open_on(Box::new(disk.clone()), config(7)) {
        Ok(_) => panic!("the log was opened"),
        Err(error) => error.to_string(),
    };
    assert!(
        error.contains("trireme-damaged-") && error.contains("free space"),
        "{error}"
    );
    assert_eq!(disk.contents(&name), before);
    disk.set_room(None);
    let (_, found) = Log::open_on(Box::new(disk), config(7)).unwrap();
    assert_eq!(found.damage.len(), 1);
}

/// Damage that can be gone around: what is whole is used, what is not is set aside, and the report names the place.
#[test]
fn damage_is_reported_and_set_aside() {
    type Spoil = fn(&MemoryDisk, &str);
    // What is wrong with the third segment, the offset that is named, and what is lost.
    let cases: &[(&str, Spoil, u64, Lost)] = &[
        (
            "a flipped bit in its header",
            |d, n| change(d, n, |b| b[20] ^= 4),
            0,
            Lost::Older,
        ),
        (
            "a flipped bit in its first record",
            |d, n| change(d, n, |b| b[170] ^= 4),
            128,
            Lost::Older,
        ),
        (
            "cut in the middle",
            |d, n| change(d, n, |b| b.truncate(500)),
            496,
            Lost::Older,
        ),
        ("gone", |d, n| d.remove(n).unwrap(), 0, Lost::Older),
        ("empty", |d, n| change(d, n, Vec::clear), 0, Lost::Older),
    ];
    for (what, spoil, offset, lost) in cases {
        let disk = MemoryDisk::new();
        log_on(&disk);
        let third = disk
            .list()
            .unwrap()
            .into_iter()
            .filter(|n| n.starts_with("trireme-0"))
            .nth(2)
            .unwrap();
        spoil(&disk, &third);
        let (log, found) = Log::open_on(Box::new(disk.clone()), config(7)).unwrap();
        let [damage] = &found.damage[..] else {
            panic!("{what}: {:?}", found.damage);
        };
        assert_eq!(
            (damage.lost, damage.offset),
            (*lost, *offset),
            "{what}: {damage:?}"
        );
        assert!(
            damage
                .file
                .to_str()
                .unwrap()
                .contains("trireme-00000000000"),
            "{what}: {damage:?}"
        );
        assert!(
            damage.was_flushed && !found.may_have_forgotten(),
            "{what}: {damage:?}"
        );
        assert!(!damage.set_aside.is_empty(), "{what}: {damage:?}");
        for file in &damage.set_aside {
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(disk.contents(name).is_some(), "{what}: {name} is not there");
        }
        assert_eq!(log.last_position(), Some(40), "{what}");
        assert_eq!(log.read(40).unwrap().unwrap(), [40; 100], "{what}");
    }
}

/// A new log in the directory of another cluster's: that one is set aside, not destroyed.
#[test]
fn the_log_of_another_cluster_is_set_aside() {
    let disk = MemoryDisk::new();
    log_on(&disk);
    let theirs: Vec<Vec<u8>> = contents(&disk)
        .into_iter()
        .filter(|(name, _)| name.starts_with("trireme-0"))
        .map(|(_, bytes)| bytes)
        .collect();
    drop(Log::create_on(Box::new(disk.clone()), config(9)).unwrap());
    let aside: Vec<Vec<u8>> = contents(&disk)
        .into_iter()
        .filter(|(name, _)| name.starts_with("trireme-damaged-"))
        .map(|(_, bytes)| bytes)
        .collect();
    assert_eq!(aside, theirs);
    let (log, found) = Log::open_on(Box::new(disk), config(9)).unwrap();
    assert_eq!((log.last_position(), found.damage.len()), (None, 0));
}
