use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use proptest::prelude::*;
use trireme_tls::{is_of_a_key, replica_of};

const NOW: SystemTime = UNIX_EPOCH;

fn record() -> Record {
    let key = IdentityKey::from_seed(&[7; 32]).unwrap();
    Record {
        birth: Birth {
            replica: Uuid(replica_of(key.public())),
            seed: [7; 32],
            made_ms: 1_800_000_000_000,
        },
        promised: Term {
            number: 17,
            replica: ReplicaId("11111111-2222-4333-8444-555555555555".parse().unwrap()),
        },
        log: Uuid::NIL,
    }
}

fn term(number: u64, replica: u8) -> Term {
    Term {
        number,
        replica: ReplicaId(Uuid([replica; 16])),
    }
}

/// As version 1 had it, with the three lines that say nothing.
const WITHOUT_KEY: &str = "# Trireme votes. Belongs to this data directory alone: never copy it to another.\n\
    version: 1\n\
    replica: 3b1c0f2e-0102-41ee-8b1c-00ff7f80a5c3\n\
    promised: 17 11111111-2222-4333-8444-555555555555\n\
    boot: 8a0a22c5-6ed5-4f1b-a3cc-6c2d33b5c0a4\n\
    clean: 1\n\
    view: 0001fe\n\
    crc32c: 39ef3e80\n";

#[test]
fn the_file_is_as_documented() {
    let golden = "# Trireme votes. Belongs to this data directory alone: never copy it to another.\n\
        version: 2\n\
        replica: fe812c12-f3ab-8ce6-ac5d-b69ac352f906\n\
        key: 0707070707070707070707070707070707070707070707070707070707070707\n\
        made: 1800000000000\n\
        promised: 17 11111111-2222-4333-8444-555555555555\n\
        crc32c: f33e3490\n";
    assert_eq!(record().format(), golden);
    assert_eq!(parse(golden, PathBuf::new()).unwrap(), record());
}

/// Promises count by the id: it stays, and gets a key.
#[test]
fn a_data_directory_from_before_keys_keeps_its_id_and_its_promises() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE_NAME);
    fs::write(&file, WITHOUT_KEY).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
    let mut votes = Votes::open(dir.path(), NOW).unwrap();
    let id = "3b1c0f2e-0102-41ee-8b1c-00ff7f80a5c3".parse().unwrap();
    assert_eq!((votes.replica(), votes.promised()), (id, record().promised));
    assert_eq!(votes.place(), id.0[..8], "its place among the members");
    let key = *votes.key().unwrap().public();
    votes.promise(term(18, 1)).unwrap();
    let again = Votes::open(dir.path(), NOW).unwrap();
    assert_eq!((again.replica(), again.promised()), (id, term(18, 1)));
    assert_eq!(*again.key().unwrap().public(), key, "made once");
    for file in [file, dir.path().join("trireme.gvwstate.dat.tmp")] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn a_new_data_directory_has_an_id_of_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let votes = Votes::open(dir.path(), NOW).unwrap();
    let key = votes.key().unwrap();
    assert_eq!(votes.replica().0, replica_of(key.public()));
    assert!(is_of_a_key(&votes.replica().0));
    assert!(!format!("{votes:?}").contains(&hex(&votes.record.birth.seed)));
}

#[test]
fn an_older_data_directory_comes_first() {
    let at = |ms| Birth::at(UNIX_EPOCH + Duration::from_millis(ms)).unwrap();
    let places = [1, 255, 256, 1_800_000_000_000, 1_800_000_000_001].map(|ms| at(ms).place());
    assert!(places.is_sorted());
    // Ids from before keys begin with the same milliseconds.
    let old = Birth::adopted("01a3185c-5000-7000-8000-000000000000".parse().unwrap());
    let old = old.unwrap().place();
    assert!(places[2] < old && old[..6] == places[3][..6] && old < places[4]);
    let before_1970 = Birth::at(UNIX_EPOCH - Duration::from_millis(1)).unwrap();
    assert!(before_1970.place() < places[1]);
}

#[test]
fn the_log_is_named_once_there_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut votes = Votes::open(dir.path(), NOW).unwrap();
    assert_eq!(votes.log(), Uuid::NIL);
    votes.set_log(Uuid([8; 16])).unwrap();
    votes.promise(term(3, 1)).unwrap();
    let text = fs::read_to_string(dir.path().join(FILE_NAME)).unwrap();
    let line = "\nlog: 08080808-0808-0808-0808-080808080808\ncrc32c: ";
    assert!(text.contains(line), "{text}");
    let votes = Votes::open(dir.path(), NOW).unwrap();
    assert_eq!((votes.log(), votes.promised()), (Uuid([8; 16]), term(3, 1)));
    // A line that names none is damage, one that is missing is not.
    let named = Record {
        log: Uuid([8; 16]),
        ..record()
    };
    let body = named.format().replace("log: 08", "log: x8");
    let (body, _) = body.split_once("crc32c").unwrap();
    let text = format!("{body}crc32c: {:08x}\n", crc32c(body.as_bytes()));
    assert!(matches!(
        parse(&text, PathBuf::new()),
        Err(VotesError::Damaged { .. })
    ));
}

#[test]
fn votes_are_remembered_beside_galeras_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("gvwstate.dat"), "my_uuid: x\n").unwrap();
    let mut votes = Votes::open(dir.path(), NOW).unwrap();
    let fresh = votes.replica();
    assert_eq!(votes.promised(), Term::default());
    votes.promise(term(18, 1)).unwrap();

    // The next start has the same id.
    let mut votes = Votes::open(dir.path(), NOW).unwrap();
    assert_eq!((votes.replica(), votes.promised()), (fresh, term(18, 1)));
    votes.promise(term(17, 9)).unwrap();
    assert_eq!(
        votes.promised(),
        term(18, 1),
        "promises are never taken back"
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("gvwstate.dat")).unwrap(),
        "my_uuid: x\n"
    );
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        3,
        "Galera's, ours, and the one that is written next"
    );
}

#[test]
fn both_files_are_their_owners_alone_and_no_link_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [
        dir.path().join("trireme.gvwstate.dat"),
        dir.path().join("trireme.gvwstate.dat.tmp"),
    ];
    let assert_private = |what: &str| {
        for path in &paths {
            let about = fs::symlink_metadata(path).unwrap();
            assert!(
                about.is_file() && about.mode() & 0o777 == 0o600,
                "{what}: {path:?}"
            );
        }
    };
    drop(Votes::open(dir.path(), NOW).unwrap());
    assert_private("made anew");
    fs::set_permissions(&paths[0], fs::Permissions::from_mode(0o660)).unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::remove_file(&paths[1]).unwrap();
    symlink(&victim, &paths[1]).unwrap();
    let mut votes = Votes::open(dir.path(), NOW).unwrap();
    votes.promise(term(1, 1)).unwrap();
    assert_private("of an earlier version");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

/// A snapshot script clears the directory: what lies under the spare file's name is not ours any more.
#[test]
fn a_spare_file_that_was_removed_or_replaced_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut votes = Votes::open(dir.path(), NOW).unwrap();
    let spare = dir.path().join("trireme.gvwstate.dat.tmp");
    for number in 1..=6 {
        match number % 3 {
            0 => fs::remove_file(&spare).unwrap(),
            1 => {
                fs::remove_file(&spare).unwrap();
                fs::write(&spare, "something else").unwrap();
            }
            _ => {}
        }
        votes.promise(term(number, 1)).unwrap();
        let read = Votes::open(dir.path(), NOW).unwrap();
        assert_eq!(read.promised(), term(number, 1));
    }
}

#[test]
fn a_promise_that_cannot_be_stored_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut votes = Votes::open(dir.path(), NOW).unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    let error = votes.promise(term(1, 1)).unwrap_err();
    assert!(matches!(error, VotesError::Io { .. }));
    assert!(error.to_string().contains("check its owner"), "{error}");
    assert_eq!(votes.promised(), Term::default());
}

#[test]
fn the_snapshot_script_spares_the_name() {
    // `cpat` of wsrep_sst_mariabackup has `.*gvwstate\.dat$`, matched against the whole path.
    assert!(FILE_NAME.ends_with("gvwstate.dat") && FILE_NAME != "gvwstate.dat");
}

#[test]
fn damage_and_later_versions_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let open = |content: &[u8]| {
        fs::write(dir.path().join(FILE_NAME), content).unwrap();
        Votes::open(dir.path(), NOW).map(|votes| votes.record)
    };
    assert!(
        matches!(open(b"version: 3\n"), Err(VotesError::Version { version, .. }) if version == "3")
    );
    let good = record().format();
    let edited = good.replace("promised: 17", "promised: 16");
    let mut endless = record();
    endless.promised.number = u64::MAX;
    let endless = endless.format();
    let mut foreign = record();
    foreign.birth.seed = [8; 32];
    let foreign = foreign.format();
    for bad in [
        "",
        "version: 1\n",
        "version: 2\n",
        "my_uuid: x\n",
        &good[..good.len() - 1],
        &edited,
        &endless,
        &foreign,
    ] {
        assert!(
            matches!(open(bad.as_bytes()), Err(VotesError::Damaged { .. })),
            "{bad}"
        );
    }
    assert!(matches!(
        open(b"version: 1\n\xff"),
        Err(VotesError::Damaged { .. })
    ));
    assert_eq!(open(good.as_bytes()).unwrap(), record());
}

#[test]
fn terms_are_ordered() {
    assert!(term(1, 9) < term(2, 0) && term(2, 0) < term(2, 1) && Term::default() < term(1, 0));
}

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _ = parse(&text, PathBuf::new());
        let _ = parse(&format!("version: 1\n{text}"), PathBuf::new());
        let _ = parse(&format!("version: 2\n{text}"), PathBuf::new());
    }

    #[test]
    fn any_single_changed_byte_is_noticed(at in 0usize..400, to: u8) {
        let good = record().format();
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
    fn records_round_trip(seed: [u8; 32], made_ms: u64, number in 0..1u64 << 63, log: [u8; 16]) {
        let log = Uuid(log);
        let key = IdentityKey::from_seed(&seed).unwrap();
        let replica = Uuid(replica_of(key.public()));
        let promised = Term { number, replica: ReplicaId(replica) };
        let record = Record { birth: Birth { replica, seed, made_ms }, promised, log };
        prop_assert_eq!(parse(&record.format(), PathBuf::new()).unwrap(), record);
    }
}
