use proptest::prelude::*;

use super::*;

/// The example of docs/state-and-event-file.md.
fn example() -> &'static str {
    let page = include_str!("../../../../docs/state-and-event-file.md");
    let (_, from) = page.split_once("```json\n").expect("the page has it");
    from.split_once("```").expect("it ends").0
}

#[test]
fn the_example_of_the_page_is_what_is_written() {
    let file = StateFile::decode(example().as_bytes()).expect("valid");
    let written: serde_json::Value = serde_json::from_slice(&file.clone().encode()).expect("JSON");
    let documented: serde_json::Value = serde_json::from_str(example()).expect("JSON");
    assert_eq!(written, documented);
    assert_eq!(
        StateFile::decode(&file.clone().encode()).expect("own"),
        file
    );
}

#[test]
fn a_reader_skips_what_it_does_not_know_and_refuses_a_later_version() {
    let later = example().replace("\"version\": 1", "\"version\": 1, \"moon\": {\"phase\": 3}");
    assert!(StateFile::decode(later.as_bytes()).is_ok());
    let sparse = format!("{{\"format\": \"{FORMAT}\", \"version\": 1}}");
    assert!(StateFile::decode(sparse.as_bytes()).is_ok());
    let refused = |text: &str| StateFile::decode(text.as_bytes()).unwrap_err().to_string();
    let newer = example().replace("\"version\": 1", "\"version\": 2");
    assert!(refused(&newer).contains("version 2"));
    assert!(refused("{\"format\": \"\\u001b[2J\"}").contains("'?[2J'"));
    assert!(refused("").contains("damaged"), "after a power loss");
}

#[test]
fn hostile_and_endless_texts_are_cleaned_and_bounded() {
    let hostile = "\x1b[2J\"\\".repeat(10_000);
    let member = MemberLine {
        name: hostile.clone(),
        incoming: hostile.clone(),
        address: hostile.clone(),
        ..MemberLine::default()
    };
    let peer = Peer {
        name: hostile.clone(),
        address: hostile.clone(),
    };
    let conflict = ConflictLine {
        table: Some(hostile.clone()),
        key: Some(hostile.clone()),
        winner: Some(hostile.clone()),
        ..ConflictLine::default()
    };
    let event = Event {
        text: hostile.clone(),
        ..Event::default()
    };
    let file = StateFile {
        members: vec![member; 1_000],
        waits_for: Some(Wait {
            text: hostile.clone(),
            here: vec![peer.clone(); 1_000],
            missing: vec![peer; 1_000],
            donor: Some(hostile),
            ..Wait::default()
        }),
        forced_views: vec![ForcedView::default(); 1_000],
        conflicts: Conflicts {
            recent: vec![conflict; 1_000],
            ..Conflicts::default()
        },
        events: vec![event; 1_000],
        ..StateFile::default()
    };
    let bytes = file.encode();
    assert!(bytes.len() <= BYTES_MAX, "{}", bytes.len());
    let read = StateFile::decode(&bytes).expect("still JSON");
    assert_eq!(read.members.len(), MEMBERS_MAX);
    assert_eq!(read.conflicts.recent.len(), CONFLICTS_MAX);
    assert!(!bytes.contains(&0x1b) && !String::from_utf8_lossy(&bytes).contains("\\u001b"));
}

#[test]
fn the_ring_keeps_the_last_lines() {
    let mut events = Events::default();
    for at in 0..100 {
        events.add(at, "warn", &format!("line {}\n", at / 2 * 2));
    }
    let all = events.all();
    assert_eq!(all.len(), 50);
    assert_eq!((all[0].at_unix_ms, all[0].text.as_str()), (1, "line 0 "));
    for at in 100..200 {
        events.add(at, "warn", &at.to_string());
    }
    assert_eq!(events.all().len(), 64);
    assert_eq!(events.all()[0].text, "136");
}

#[test]
fn the_file_is_replaced_and_nothing_else_is_left() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = StateWriter::new(dir.path());
    for bytes in [b"first".as_slice(), b"2"] {
        writer.write(bytes).expect("written");
        let read = std::fs::read(dir.path().join(STATE_FILE)).expect("there");
        assert_eq!(read, bytes);
    }
    assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1);
    let gone = StateWriter::new(&dir.path().join("missing"));
    let error = gone.write(b"x").unwrap_err().to_string();
    assert!(error.contains("missing/trireme-state.json"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_are_too_much_for_a_reader(bytes in any::<Vec<u8>>()) {
        let _ = StateFile::decode(&bytes);
    }
}
