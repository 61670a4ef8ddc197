use std::fs;

use super::*;
use proptest::prelude::*;

fn record() -> Record {
    Record {
        replica: "3b1c0f2e-0102-41ee-8b1c-00ff7f80a5c3".parse().unwrap(),
        promised: Ballot {
            number: 17,
            replica: ReplicaId("11111111-2222-4333-8444-555555555555".parse().unwrap()),
        },
        log: Uuid::NIL,
    }
}

fn ballot(number: u64, replica: u8) -> Ballot {
    Ballot {
        number,
        replica: ReplicaId(Uuid([replica; 16])),
    }
}

/// The file with these three lines, and its checksum.
fn golden(boot: &str, clean: u8, view: &str, crc32c: &str) -> String {
    format!(
        "# Trireme votes. Belongs to this data directory alone: never copy it to another.\n\
        version: 1\n\
        replica: 3b1c0f2e-0102-41ee-8b1c-00ff7f80a5c3\n\
        promised: 17 11111111-2222-4333-8444-555555555555\n\
        boot: {boot}\n\
        clean: {clean}\n\
        view: {view}\n\
        crc32c: {crc32c}\n"
    )
}

#[test]
fn the_file_is_as_documented() {
    let golden = golden(&Uuid::NIL.to_string(), 0, "", "efb614bb");
    assert_eq!(record().format(), golden);
    assert_eq!(parse(&golden, PathBuf::new()).unwrap(), record());
}

#[test]
fn the_log_is_named_once_there_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut votes = Votes::open(dir.path(), Uuid([7; 16])).unwrap();
    assert_eq!(votes.log(), Uuid::NIL);
    votes.set_log(Uuid([8; 16])).unwrap();
    votes.promise(ballot(3, 1)).unwrap();
    let text = fs::read_to_string(dir.path().join(FILE_NAME)).unwrap();
    let line = "\nlog: 08080808-0808-0808-0808-080808080808\nboot: ";
    assert!(text.contains(line), "{text}");
    let votes = Votes::open(dir.path(), Uuid([9; 16])).unwrap();
    assert_eq!(
        (votes.log(), votes.promised()),
        (Uuid([8; 16]), ballot(3, 1))
    );
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
fn lines_without_a_meaning_may_say_anything() {
    let boot = "8a0a22c5-6ed5-4f1b-a3cc-6c2d33b5c0a4";
    let text = golden(boot, 1, "0001fe", "39ef3e80");
    assert_eq!(parse(&text, PathBuf::new()).unwrap(), record());
}

#[test]
fn votes_are_remembered_beside_galeras_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("gvwstate.dat"), "my_uuid: x\n").unwrap();
    assert!(matches!(
        Votes::open(dir.path(), Uuid::NIL),
        Err(VotesError::NilReplica)
    ));
    let fresh = Uuid([7; 16]);
    let mut votes = Votes::open(dir.path(), fresh).unwrap();
    assert_eq!(
        (votes.replica(), votes.promised()),
        (fresh, Ballot::default())
    );
    votes.promise(ballot(18, 1)).unwrap();

    // The next start has the same id, whatever fresh one it brings.
    let mut votes = Votes::open(dir.path(), Uuid([8; 16])).unwrap();
    assert_eq!((votes.replica(), votes.promised()), (fresh, ballot(18, 1)));
    votes.promise(ballot(17, 9)).unwrap();
    assert_eq!(
        votes.promised(),
        ballot(18, 1),
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

/// A snapshot script clears the directory: what lies under the spare file's name is not ours any more.
#[test]
fn a_spare_file_that_was_removed_or_replaced_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut votes = Votes::open(dir.path(), Uuid([7; 16])).unwrap();
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
        votes.promise(ballot(number, 1)).unwrap();
        let read = Votes::open(dir.path(), Uuid([8; 16])).unwrap();
        assert_eq!(read.promised(), ballot(number, 1));
    }
}

#[test]
fn a_promise_that_cannot_be_stored_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut votes = Votes::open(dir.path(), Uuid([7; 16])).unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    assert!(matches!(
        votes.promise(ballot(1, 1)),
        Err(VotesError::Io { .. })
    ));
    assert_eq!(votes.promised(), Ballot::default());
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
        Votes::open(dir.path(), Uuid([7; 16])).map(|votes| votes.record)
    };
    assert!(
        matches!(open(b"version: 2\n"), Err(VotesError::Version { version, .. }) if version == "2")
    );
    let good = record().format();
    let edited = good.replace("promised: 17", "promised: 16");
    let mut endless = record();
    endless.promised.number = u64::MAX;
    let endless = endless.format();
    for bad in [
        "",
        "version: 1\n",
        "my_uuid: x\n",
        &good[..good.len() - 1],
        &edited,
        &endless,
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
fn ballots_are_ordered() {
    assert!(
        ballot(1, 9) < ballot(2, 0)
            && ballot(2, 0) < ballot(2, 1)
            && Ballot::default() < ballot(1, 0)
    );
}

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _ = parse(&text, PathBuf::new());
        let _ = parse(&format!("version: 1\n{text}"), PathBuf::new());
    }

    #[test]
    fn any_single_changed_byte_is_noticed(at in 0usize..300, to: u8) {
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
    fn records_round_trip(replica: [u8; 16], number in 0..1u64 << 63, log: [u8; 16]) {
        let log = Uuid(log);
        let replica = Uuid(replica);
        prop_assume!(!replica.is_nil());
        let promised = Ballot { number, replica: ReplicaId(replica) };
        let record = Record { replica, promised, log };
        prop_assert_eq!(parse(&record.format(), PathBuf::new()).unwrap(), record);
    }
}
