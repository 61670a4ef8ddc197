use super::*;
use proptest::prelude::*;
use std::fs;

const UUID: &str = "3b1c0f2e-0102-11ee-8b1c-00ff7f80a5c3";

fn uuid() -> Uuid {
    UUID.parse().unwrap()
}

fn content(dir: &tempfile::TempDir) -> String {
    fs::read_to_string(dir.path().join(FILE_NAME)).unwrap()
}

fn open(dir: &tempfile::TempDir) -> (Grastate, Found) {
    Grastate::open(dir.path()).unwrap()
}

#[test]
fn the_file_is_galeras_to_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, found) = open(&dir);
    assert_eq!(
        (found, state.position(), state.safe_to_bootstrap()),
        (Found::Nothing, Gtid::UNDEFINED, true)
    );
    state.set(uuid(), 77, false).unwrap();
    let golden = format!(
        "# GALERA saved state\nversion: 2.1\nuuid:    {UUID}\nseqno:   77\nsafe_to_bootstrap: 0\n"
    );
    assert_eq!(content(&dir), golden);
    drop(state);
    let (state, found) = open(&dir);
    assert_eq!(
        (found, state.position()),
        (
            Found::State,
            Gtid {
                uuid: uuid(),
                seqno: 77
            }
        )
    );
    assert!(!state.safe_to_bootstrap());
    // Opening alone writes nothing.
    assert_eq!(content(&dir), golden);
}

#[test]
fn a_longer_file_is_padded_and_still_reads_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!(
        "# edited by hand\nuuid: {UUID}\nseqno: 1234567890\nnonsense: 1\n{}\n",
        "#".repeat(100)
    );
    fs::write(dir.path().join(FILE_NAME), &long).unwrap();
    let (mut state, _) = open(&dir);
    assert_eq!(state.position().seqno, 1_234_567_890);
    assert!(state.safe_to_bootstrap());
    state.set(uuid(), -1, true).unwrap();
    let text = content(&dir);
    assert_eq!(text.len(), long.len());
    assert!(text.trim_end().ends_with("safe_to_bootstrap: 1"));
    drop(state);
    assert_eq!(
        open(&dir).0.position(),
        Gtid {
            uuid: uuid(),
            seqno: -1
        }
    );
}

#[test]
fn unsafe_sections_nest_and_hide_the_position() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, _) = open(&dir);
    state.set(uuid(), 5, true).unwrap();
    state.mark_unsafe().unwrap();
    let hidden = content(&dir);
    assert!(hidden.contains("uuid:    00000000-0000-0000-0000-000000000000\nseqno:   -1\n"));
    state.mark_unsafe().unwrap();
    state.set(uuid(), 6, false).unwrap();
    state.mark_safe().unwrap();
    assert_eq!(content(&dir), hidden);
    state.mark_safe().unwrap();
    // Running again: history known, no seqno.
    assert!(content(&dir).contains(&format!(
        "uuid:    {UUID}\nseqno:   -1\nsafe_to_bootstrap: 0"
    )));
    // One `mark_safe` too many must not make the next unsafe section invisible.
    state.mark_safe().unwrap();
    state.mark_unsafe().unwrap();
    assert!(content(&dir).contains("uuid:    0000"));
}

#[test]
fn corruption_lasts_until_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, _) = open(&dir);
    state.set(uuid(), -1, false).unwrap();
    state.mark_unsafe().unwrap();
    state.mark_corrupt().unwrap();
    // The file is in place, so no operator has allowed that the data be replaced.
    assert!(!state.says_nothing());
    state.set(uuid(), 9, true).unwrap();
    state.mark_safe().unwrap();
    assert!(
        content(&dir).contains("uuid:    0000") && content(&dir).contains("safe_to_bootstrap: 0")
    );
    state.mark_uncorrupt();
    assert!(content(&dir).contains("uuid:    0000"));
    state.set(uuid(), 12, false).unwrap();
    assert!(content(&dir).contains(&format!("uuid:    {UUID}\nseqno:   12\n")));
    state.set(uuid(), -1, true).unwrap();
    assert!(
        content(&dir).contains("seqno:   -1") && content(&dir).contains("safe_to_bootstrap: 1")
    );
}

#[test]
fn odd_content_is_read_cautiously() {
    let read = |text: &str| parse(text);
    assert_eq!(read(""), (Gtid::UNDEFINED, true));
    assert_eq!(
        read("uuid: x\nseqno: 7\nsafe_to_bootstrap: yes"),
        (Gtid::UNDEFINED, false)
    );
    assert_eq!(
        read(&format!("uuid: {UUID}\nseqno: 1x\n")).0,
        Gtid {
            uuid: uuid(),
            seqno: -1
        }
    );
    assert_eq!(
        read("uuid:\nseqno:\nsafe_to_bootstrap:"),
        (Gtid::UNDEFINED, false)
    );
    assert_eq!(read("safe_to_bootstrap:  1"), (Gtid::UNDEFINED, true));
}

/// A process forked by a test; it is killed when this is dropped, also after a failed assertion.
struct Child(libc::pid_t);

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: our own child, which nobody else waits for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

#[test]
fn a_file_locked_by_another_process_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let golden = format(
        Gtid {
            uuid: uuid(),
            seqno: 3,
        },
        false,
    );
    fs::write(&path, &golden).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mut pipe = [0; 2];
    // SAFETY: an array of two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the child makes only async-signal-safe calls: fcntl, write, pause, _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let locked = matches!(try_lock(&file), Ok(true));
        // SAFETY: as above; the byte is on the stack.
        unsafe {
            libc::write(pipe[1], [u8::from(locked)].as_ptr().cast(), 1);
            libc::pause();
            libc::_exit(0);
        }
    }
    assert!(child > 0, "fork: {child}");
    let child = Child(child);
    let mut byte = [0_u8];
    // SAFETY: one byte of room.
    assert_eq!(
        unsafe { libc::read(pipe[0], byte.as_mut_ptr().cast(), 1) },
        1
    );
    assert_eq!(byte, [1], "the child could not lock");

    let (mut state, found) = open(&dir);
    assert_eq!(
        (found, state.position()),
        (Found::LockedByOther, Gtid::UNDEFINED)
    );
    state.set(uuid(), 99, true).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), golden);

    drop(child);
    // SAFETY: our own descriptors.
    unsafe {
        libc::close(pipe[0]);
        libc::close(pipe[1]);
    }
    assert_eq!(open(&dir).1, Found::State);
}

#[test]
fn a_missing_directory_is_an_error_that_names_the_file() {
    let error = Grastate::open(Path::new("/nonexistent-dir")).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("state file '/nonexistent-dir/grastate.dat': No such file"));
    assert!(text.contains("check its owner"), "{text}");
}

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn what_is_written_is_read(bytes: [u8; 16], seqno in -1i64.., safe: bool) {
        let position = Gtid { uuid: Uuid { bytes }, seqno };
        prop_assume!(!position.uuid.is_nil());
        prop_assert_eq!(parse(&format(position, safe)), (position, safe));
    }
}

#[test]
fn a_seqno_that_the_database_refutes_is_taken_out() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, _) = open(&dir);
    let at = |seqno| Gtid {
        uuid: uuid(),
        seqno,
    };
    state.set(uuid(), 118, true).unwrap();
    state.refute(at(118)).unwrap();
    state.refute(Gtid::UNDEFINED).unwrap();
    assert_eq!(state.position(), at(118));
    state.refute(at(107)).unwrap();
    drop(state);
    let (state, _) = open(&dir);
    assert_eq!(state.position(), at(-1));
    assert!(state.safe_to_bootstrap(), "that stays");
}
