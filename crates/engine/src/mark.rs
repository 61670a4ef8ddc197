//! The mark: the end of the log at this replica's last acknowledgement, kept outside the log's volume
//! (docs/state-files.md, "The mark"). In: each write of the log, each failure of its volume. Out: whether a log that is
//! found again has lost acknowledged entries in this boot of the machine (rule 4). Only `os` mode has a mark: `disk`
//! mode acknowledges only flushed entries, and in `memory` mode each death of the process loses the log.

use std::io;

use trireme_group::Uuid;
use trireme_log::Durability;
use trireme_mutants::{Mutant, planted};

use crate::session::{self, Session, UNKNOWN_BOOT};

/// Length of the encoded mark.
pub const MARK_BYTES: usize = 64;
const MAGIC: &[u8; 8] = b"TRIRMARK";
const VERSION: u32 = 1;
const FAILED: u32 = 1;

/// Keeps the mark: as quick as memory, on another volume than the log, gone when the machine restarts.
pub trait KeepMark: Send {
    /// Returns the bytes that were stored last; None: there are none.
    fn load(&mut self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces the stored bytes. They outlive the process when this returns.
    fn store(&mut self, bytes: &[u8; MARK_BYTES]) -> io::Result<()>;
    /// Removes the stored bytes.
    fn remove(&mut self) -> io::Result<()>;
    /// Returns the place of the mark, for messages.
    fn place(&self) -> String;
    /// Returns a warning for the operator that arose since the last call, if any.
    fn take_warning(&mut self) -> Option<String> {
        None
    }
}

/// The mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    boot_id: [u8; 16],
    /// Id of the log.
    log: Uuid,
    /// Address up to which the log was written: no entry beyond it was acknowledged.
    end: u64,
    /// The volume may have lost bytes that it had taken.
    failed: bool,
}

impl Mark {
    fn encode(&self) -> [u8; MARK_BYTES] {
        let mut out = [0; MARK_BYTES];
        out[0..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let flags = if self.failed { FAILED } else { 0 };
        out[12..16].copy_from_slice(&flags.to_le_bytes());
        out[16..32].copy_from_slice(&self.boot_id);
        out[32..48].copy_from_slice(&self.log.0);
        out[48..56].copy_from_slice(&self.end.to_le_bytes());
        let crc = crc32c::crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Returns None if the mark is damaged, or of a newer version.
    fn decode(bytes: &[u8]) -> Option<Mark> {
        let bytes: &[u8; MARK_BYTES] = bytes.try_into().ok()?;
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes[at..at + 4].try_into().ok()?));
        let is_whole = u32_at(60)? == crc32c::crc32c(&bytes[..60]);
        if !is_whole || &bytes[..8] != MAGIC || u32_at(8)? != VERSION {
            return None;
        }
        Some(Mark {
            boot_id: bytes[16..32].try_into().ok()?,
            log: Uuid(bytes[32..48].try_into().ok()?),
            end: u64::from_le_bytes(bytes[48..56].try_into().ok()?),
            failed: u32_at(12)? & FAILED != 0,
        })
    }
}

/// The mark of one connection, and where it is kept.
pub(crate) struct Marker {
    /// None: the mark is switched off, or could not be written.
    keeper: Option<Box<dyn KeepMark>>,
    /// The mark as stored; None: nothing was stored yet.
    mark: Option<Mark>,
    /// Messages for the operator.
    notes: Vec<String>,
}

impl Marker {
    pub(crate) fn new(keeper: Option<Box<dyn KeepMark>>) -> Marker {
        Marker {
            keeper,
            mark: None,
            notes: Vec::new(),
        }
    }

    /// Moves the messages that the operator has not got yet to the end of `notes`.
    pub(crate) fn drain_notes(&mut self, notes: &mut Vec<String>) {
        notes.append(&mut self.notes);
    }

    /// Compares the mark of an earlier connection with the log that was found, which ends at address `end`. Err: the
    /// reason why the log may lack entries that this replica has acknowledged.
    pub(crate) fn examine(
        &mut self,
        last: Option<&Session>,
        boot_id: [u8; 16],
        end: u64,
    ) -> Result<(), String> {
        // A clean stop has flushed everything; in another mode, and in another boot, the session decides alone.
        let speaks = |last: &&Session| !last.clean && last.durability == Durability::Os;
        let (Some(last), Some(keeper)) = (last.filter(speaks), &mut self.keeper) else {
            return Ok(());
        };
        let place = keeper.place();
        let stored = match keeper.load() {
            Ok(Some(stored)) => stored,
            Ok(None) => return Ok(()),
            Err(error) => {
                let text =
                    format!("the mark of the write-set log in {place} cannot be read: {error}");
                return Err(text);
            }
        };
        let Some(mark) = Mark::decode(&stored) else {
            return Err(format!(
                "the mark of the write-set log in {place} is damaged, or a newer version wrote it"
            ));
        };
        // A process that takes the log up renews the log's id first, and the mark after that.
        let is_of_log = mark.log == last.log || session::next_log_id(mark.log) == last.log;
        if mark.boot_id != boot_id || boot_id == UNKNOWN_BOOT || !is_of_log {
            return Ok(());
        }
        if mark.failed {
            return Err(
                "the volume of the write-set log has failed in this boot of the machine".to_owned(),
            );
        }
        if end < mark.end {
            let lost = mark.end - end;
            return Err(format!(
                "the write-set log ends {lost} bytes before what this node has acknowledged in this boot of the machine: its \
                 volume has lost them, check it"
            ));
        }
        Ok(())
    }

    /// Begins the mark of this log, which ends at address `end`. The caller has noted the result of earlier marks in
    /// the log.
    pub(crate) fn begin(&mut self, durability: Durability, boot_id: [u8; 16], log: Uuid, end: u64) {
        if durability != Durability::Os {
            return self.end();
        }
        self.store(Mark {
            boot_id,
            log,
            end,
            failed: false,
        });
    }

    /// Notes that the log was written up to this address: the replica may acknowledge up to there.
    pub(crate) fn advance(&mut self, end: u64) {
        let lags = |mark: &&Mark| mark.end < end;
        if let Some(mark) = self.mark.as_ref().filter(lags) {
            let mark = Mark {
                end,
                ..mark.clone()
            };
            if !planted(Mutant::MarkLags) {
                self.store(mark);
            }
        }
    }

    /// Notes that the volume of this log may have lost bytes that it had taken.
    pub(crate) fn fail(&mut self, boot_id: [u8; 16], log: Uuid) {
        let mark = self.mark.clone().unwrap_or(Mark {
            boot_id,
            log,
            end: 0,
            failed: true,
        });
        self.store(Mark {
            failed: true,
            ..mark
        });
    }

    /// Removes the mark: the log needs it no longer.
    pub(crate) fn end(&mut self) {
        self.mark = None;
        let removed = self.keeper.as_mut().map_or(Ok(()), |k| k.remove());
        self.tell(removed);
    }

    fn store(&mut self, mark: Mark) {
        let Some(keeper) = &mut self.keeper else {
            return;
        };
        let stored = keeper.store(&mark.encode());
        self.notes.extend(keeper.take_warning());
        match stored.is_ok() {
            true => self.mark = Some(mark),
            // A mark that lags behind accuses no log.
            false => self.mark = None,
        }
        self.tell(stored);
    }

    /// Reports an error. Without a mark the node goes on, and relies on the session alone.
    fn tell(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            let keeper = self.keeper.take();
            let place = keeper.map_or_else(String::new, |keeper| keeper.place());
            self.notes.push(format!(
                "the mark of the write-set log in {place} cannot be kept: {error}. Should the log's volume fail and be mounted \
                 again before the machine is started anew, this node may not notice what it has lost. Let repl.mark_dir name a \
                 directory in memory that the server's user can write to; an empty one switches marks off"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const BOOT: [u8; 16] = [3; 16];
    const LOG: Uuid = Uuid([7; 16]);

    #[derive(Clone, Default)]
    struct Memory(
        Arc<Mutex<(Option<Vec<u8>>, bool)>>,
        Arc<Mutex<Option<String>>>,
    );

    impl KeepMark for Memory {
        fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
            Ok(self.0.lock().unwrap().0.clone())
        }

        fn store(&mut self, bytes: &[u8; MARK_BYTES]) -> io::Result<()> {
            let mut state = self.0.lock().unwrap();
            if state.1 {
                return Err(io::Error::other("full"));
            }
            state.0 = Some(bytes.to_vec());
            Ok(())
        }

        fn remove(&mut self) -> io::Result<()> {
            self.0.lock().unwrap().0 = None;
            Ok(())
        }

        fn place(&self) -> String {
            "memory".to_owned()
        }

        fn take_warning(&mut self) -> Option<String> {
            self.1.lock().unwrap().take()
        }
    }

    fn session() -> Session {
        Session {
            log: LOG,
            ..Session::new(Durability::Os, BOOT)
        }
    }

    fn marker(memory: &Memory) -> Marker {
        Marker::new(Some(Box::new(memory.clone())))
    }

    #[test]
    fn the_bytes_are_as_documented() {
        let mark = Mark {
            boot_id: BOOT,
            log: LOG,
            end: 0x0102,
            failed: true,
        };
        let golden = [
            &b"TRIRMARK"[..],
            &[1, 0, 0, 0],
            &[1, 0, 0, 0],
            &[3; 16],
            &[7; 16],
            &[2, 1, 0, 0, 0, 0, 0, 0],
            &[0; 4],
            &0x5331_298a_u32.to_le_bytes(),
        ]
        .concat();
        assert_eq!(mark.encode()[..], golden);
        assert_eq!(Mark::decode(&golden), Some(mark));
        for at in 0..MARK_BYTES {
            let mut bytes = golden.clone();
            bytes[at] ^= 4;
            assert_eq!(Mark::decode(&bytes), None, "byte {at}");
        }
        assert_eq!(Mark::decode(&golden[..63]), None);
    }

    #[test]
    fn a_log_that_ends_below_the_mark_has_lost_something() {
        let memory = Memory::default();
        let mut marker = marker(&memory);
        marker.begin(Durability::Os, BOOT, LOG, 100);
        marker.advance(300);
        marker.advance(200);
        let mut examine = |last: &Session, boot, end| marker.examine(Some(last), boot, end);
        assert!(examine(&session(), BOOT, 299).is_err());
        assert_eq!(examine(&session(), BOOT, 300), Ok(()));
        // It says nothing of another boot, another log, a clean stop, another mode.
        let of = |log, durability, clean| Session {
            log,
            durability,
            clean,
            ..session()
        };
        for (last, boot) in [
            (session(), [4; 16]),
            (of(Uuid([8; 16]), Durability::Os, false), BOOT),
            (of(LOG, Durability::Os, true), BOOT),
            (of(LOG, Durability::Disk, false), BOOT),
        ] {
            assert_eq!(examine(&last, boot, 0), Ok(()));
        }
    }

    #[test]
    fn a_failure_is_remembered_until_the_log_is_gone_on_with() {
        let memory = Memory::default();
        marker(&memory).fail(BOOT, LOG);
        assert!(
            marker(&memory)
                .examine(Some(&session()), BOOT, 500)
                .is_err()
        );
        let mut next = marker(&memory);
        next.begin(Durability::Os, BOOT, LOG, 100);
        assert_eq!(next.examine(Some(&session()), BOOT, 100), Ok(()));
        next.fail(BOOT, LOG);
        next.advance(200);
        assert!(next.examine(Some(&session()), BOOT, 200).is_err());
    }

    #[test]
    fn a_mark_that_cannot_be_read_tells_nothing_good() {
        let memory = Memory::default();
        memory.0.lock().unwrap().0 = Some(vec![0; 64]);
        assert!(marker(&memory).examine(Some(&session()), BOOT, 0).is_err());
    }

    #[test]
    fn without_a_place_it_is_said_once_and_the_node_goes_on() {
        let memory = Memory::default();
        let mut marker = marker(&memory);
        marker.begin(Durability::Os, BOOT, LOG, 100);
        memory.0.lock().unwrap().1 = true;
        for end in 200..210 {
            marker.advance(end);
        }
        let mut notes = Vec::new();
        marker.drain_notes(&mut notes);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("repl.mark_dir"), "{}", notes[0]);
        assert_eq!(marker.examine(Some(&session()), BOOT, 0), Ok(()));
    }

    #[test]
    fn what_its_keeper_warns_of_is_for_the_operator() {
        let memory = Memory::default();
        let mut marker = marker(&memory);
        *memory.1.lock().unwrap() = Some("made again".to_owned());
        marker.begin(Durability::Os, BOOT, LOG, 100);
        marker.advance(200);
        let mut notes = Vec::new();
        marker.drain_notes(&mut notes);
        assert_eq!(notes, ["made again"]);
    }

    #[test]
    fn where_nothing_unflushed_is_acknowledged_there_is_none() {
        let memory = Memory::default();
        let mut marker = marker(&memory);
        marker.begin(Durability::Os, BOOT, LOG, 100);
        marker.begin(Durability::Disk, BOOT, LOG, 100);
        marker.advance(300);
        assert_eq!(memory.0.lock().unwrap().0, None);
    }
}
