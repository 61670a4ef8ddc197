use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use proptest::prelude::*;

/// What Galera 26.4.23 prints after `init` with the same arguments, and Trireme's own options.
const DEFAULT_STRING: &str = "base_dir = /var/lib/mysql/; base_host = 127.0.0.1; base_port = 19031; \
    cert.log_conflicts = no; cert.optimistic_pa = yes; debug = no; evs.auto_evict = 0; evs.delay_margin = PT1S; \
    evs.delayed_keep_period = PT30S; evs.inactive_check_period = PT0.5S; evs.inactive_timeout = PT15S; \
    evs.join_retrans_period = PT1S; evs.max_install_timeouts = 3; evs.send_window = 4; \
    evs.stats_report_period = PT1M; evs.suspect_timeout = PT5S; evs.user_send_window = 2; \
    evs.view_forget_timeout = PT24H; gcache.dir = /var/lib/mysql/; gcache.keep_pages_size = 0; gcache.mem_size = 0; \
    gcache.name = galera.cache; gcache.page_size = 128M; gcache.recover = yes; gcache.size = 128M; \
    gcomm.thread_prio = ; gcs.fc_debug = 0; gcs.fc_factor = 1.0; gcs.fc_limit = 16; gcs.fc_master_slave = no; \
    gcs.fc_single_primary = no; gcs.max_packet_size = 64500; gcs.max_throttle = 0.25; \
    gcs.recv_q_hard_limit = 9223372036854775807; gcs.recv_q_soft_limit = 0.25; gcs.sync_donor = no; \
    gmcast.segment = 0; gmcast.version = 0; ist.recv_addr = 127.0.0.1; pc.announce_timeout = PT3S; \
    pc.checksum = false; pc.ignore_quorum = false; pc.ignore_sb = false; pc.npvo = false; pc.recovery = true; \
    pc.version = 0; pc.wait_prim = true; pc.wait_prim_timeout = PT30S; pc.weight = 1; protonet.backend = asio; \
    protonet.version = 0; repl.causal_read_timeout = PT30S; repl.commit_order = 3; repl.durability = os; \
    repl.fc_desync_after_ms = 60; repl.fc_desync_state = donor; repl.ist_script = yes; repl.key_format = FLAT8; repl.leader = auto; repl.mark_dir = /dev/shm; repl.max_ws_size = 2147483647; repl.proto_max = 11; \
    socket.checksum = 2; \
    socket.recv_buf_size = auto; socket.send_buf_size = auto; ";

pub(super) fn options(text: &str) -> Options {
    Options::new("/var/lib/mysql/", "127.0.0.1:19031", text).unwrap()
}

pub(super) fn change(key: &'static str, value: Typed) -> Change {
    Change { key, value }
}

fn refused(text: &str) -> OptionError {
    Options::new("/var/lib/mysql/", "127.0.0.1:19031", text).unwrap_err()
}

#[test]
fn a_renamed_option_keeps_its_old_name() {
    let mut options = options("repl.sequencer=never");
    assert_eq!(options.choice("repl.leader"), "never");
    assert!(!options.to_string().contains("repl.sequencer"));
    let changes = options.apply_string("repl.sequencer=prefer", Phase::Runtime);
    let keys: Vec<_> = changes.unwrap().iter().map(|change| change.key).collect();
    assert_eq!(keys, ["repl.leader"]);
    assert_eq!(options.choice("repl.leader"), "prefer");
    let in_address = options.apply_string("repl.sequencer=auto", Phase::Connect);
    assert!(in_address.is_ok() && options.choice("repl.leader") == "auto");
    let mut visible = options.visible();
    assert!(visible.all(|option| option.name != "repl.sequencer"));
}

#[test]
fn the_default_string_is_galeras() {
    assert_eq!(options("").to_string(), DEFAULT_STRING);
    assert_eq!(options(" ; ").to_string(), DEFAULT_STRING);
}

#[test]
fn connecting_shows_what_galera_shows_then() {
    let mut connected = options("evs.keepalive_period=PT2S");
    connected.show_connected();
    let text = connected.to_string();
    for pair in [
        "evs.causal_keepalive_period = PT1S; evs.debug_log_mask = 0x1; ",
        "evs.info_log_mask = 0; evs.install_timeout = PT7.5S; ",
        "evs.keepalive_period = PT2S; ",
        "evs.use_aggregate = true; ",
        "evs.version = 1; ",
        "gmcast.listen_addr = tcp://0.0.0.0:19031; gmcast.mcast_addr = ; gmcast.mcast_ttl = 1; gmcast.peer_timeout = PT3S; ",
        "gmcast.time_wait = PT5S; ",
        "pc.linger = PT20S; ",
    ] {
        assert!(text.contains(pair), "{pair} not in {text}");
    }
    assert_eq!(connected.apply_string(&text, Phase::Runtime), Ok(vec![]));
    assert_eq!(connected.to_string(), text);
}

/// Otherwise "never" would mean "at once": who waits adds the period to a time.
#[test]
fn a_period_that_is_longer_than_any_wait_is_cut() {
    for text in ["9223372036854775807", "18446744073709551", "P200Y"] {
        let options = options(&format!("pc.wait_evidence={text}"));
        assert_eq!(
            options.duration_ms("pc.wait_evidence"),
            PERIOD_MAX_MS,
            "{text}"
        );
    }
}

#[test]
fn what_the_suites_configure_is_understood() {
    let mut options = options(
        "repl.causal_read_timeout=PT90S;base_port=5001;evs.suspect_timeout=PT10S; evs.inactive_timeout = PT100M;\
         gcache.size=10M;gcs.fc_limit=1K;pc.ignore_sb=TRUE;gcs.max_packet_size=2;evs.auto_evict=yes;",
    );
    assert_eq!(options.duration_ms("repl.causal_read_timeout"), 90_000);
    assert_eq!(options.duration_ms("evs.inactive_timeout"), 6_000_000);
    assert_eq!(options.duration_ms("evs.install_timeout"), 7_500);
    assert_eq!(
        (options.int("base_port"), options.base_port()),
        (5001, 5001)
    );
    assert_eq!(
        (options.int("gcache.size"), options.int("gcs.fc_limit")),
        (10 << 20, 1024)
    );
    assert_eq!(
        (
            options.int("gcs.max_packet_size"),
            options.int("evs.auto_evict")
        ),
        (2, 1)
    );
    assert!(
        options.bool("pc.ignore_sb")
            && options.bool("evs.auto_evict")
            && !options.bool("gcs.stateless")
    );
    assert!(options.double("gcs.fc_factor") == 1.0);
    assert_eq!(options.str("repl.durability"), "os");
    assert!(options.to_string().contains("gcs.fc_limit = 1K; "));
    // The same string, given at run time by `SET GLOBAL wsrep_provider_options=@@wsrep_provider_options`.
    let text = options.to_string();
    assert_eq!(options.apply_string(&text, Phase::Runtime), Ok(vec![]));
    assert_eq!(options.to_string(), text);
}

#[test]
fn a_decimal_that_was_set_back_is_shown_as_before() {
    let before = options("").to_string();
    let mut options = options("");
    for text in ["gcs.max_throttle=0.500000", "gcs.max_throttle=0.250000"] {
        options.apply_string(text, Phase::Runtime).unwrap();
    }
    assert_eq!(options.to_string(), before);
}

#[test]
fn run_time_changes_follow_the_rules() {
    let mut options = options("");
    let before = options.clone();
    let mut set = |text: &str| options.apply_string(text, Phase::Runtime);

    assert_eq!(
        set("gmcasts.segment=1"),
        Err(OptionError::Unknown("gmcasts.segment".into()))
    );
    assert_eq!(set("a=1").unwrap_err().to_string(), "Unknown parameter 'a'");
    assert_eq!(
        set("gcache.size=1M"),
        Err(OptionError::Fixed {
            key: "gcache.size",
            until: Phase::Init
        })
    );
    assert_eq!(
        set("gmcast.segment=1"),
        Err(OptionError::Fixed {
            key: "gmcast.segment",
            until: Phase::Connect
        })
    );
    assert_eq!(
        set("repl.durability=disk"),
        Err(OptionError::Fixed {
            key: "repl.durability",
            until: Phase::Init
        })
    );
    for bad in [
        "pc.weight=256",
        "pc.weight=-1",
        "pc.weight=",
        "gcs.fc_factor=1,5",
        "gcs.fc_limit=1.5",
        "debug=2",
        "evs.suspect_timeout=5s",
        "repl.key_format=x",
        "gmcast.isolate=3",
        "repl.max_ws_size=2G",
        "gmcast.peer_addr=a b",
    ] {
        assert!(
            matches!(set(bad), Err(OptionError::BadValue { .. })),
            "{bad}"
        );
    }
    // Present values, written as they are or otherwise, are a silent success.
    assert_eq!(
        set("gcache.size=128M; gmcast.segment = 0;gcache.size=134217728;pc.recovery=YES"),
        Ok(vec![])
    );
    assert_eq!(options, before);

    let changes = options.apply_string(
        "pc.weight = 3;evs.suspect_timeout=6.500000; pc.weight=3",
        Phase::Runtime,
    );
    assert_eq!(
        changes,
        Ok(vec![
            change("pc.weight", Typed::Int(3)),
            change(
                "evs.suspect_timeout",
                Typed::Duration(Duration::from_millis(6_500))
            )
        ])
    );
    assert_eq!(
        (
            options.int("pc.weight"),
            options.duration_ms("evs.suspect_timeout")
        ),
        (3, 6_500)
    );
}

#[test]
fn words_count_in_any_case() {
    let options = options("repl.durability=DISK;repl.leader=Never;repl.key_format=flat16");
    assert_eq!(options.str("repl.durability"), "DISK");
    for (key, word) in [
        ("repl.durability", "disk"),
        ("repl.leader", "never"),
        ("repl.key_format", "FLAT16"),
        ("repl.commit_order", "3"),
    ] {
        assert_eq!(options.choice(key), word);
    }
}

#[test]
fn an_error_changes_nothing() {
    let mut options = options("");
    for text in [
        "gcs.fc_limit=20;a=1",
        "gcs.fc_limit=22;pc.weight=zz",
        "gcs.fc_limit=22;gcache.name=x",
        "gcs.fc_limit=22;x",
    ] {
        assert!(options.apply_string(text, Phase::Runtime).is_err());
        assert_eq!(options.to_string(), DEFAULT_STRING, "{text}");
    }
}

#[test]
fn commands_fire_each_time_and_are_not_kept() {
    let mut options = options("");
    for text in [
        "gmcast.isolate = 1",
        "gmcast.isolate=1",
        "gmcast.isolate=0",
        "pc.bootstrap=YES",
        "socket.ssl_reload=1",
    ] {
        assert_eq!(
            options
                .apply_string(text, Phase::Runtime)
                .map(|changes| changes.len()),
            Ok(1),
            "{text}"
        );
    }
    assert_eq!(options.to_string(), DEFAULT_STRING);
    let changes = options.apply_string("gmcast.isolate=0x0", Phase::Runtime);
    assert_eq!(changes.unwrap()[0].value, Typed::Int(0));
    // The configuration may say the same.
    options.apply_string("pc.bootstrap=1", Phase::Init).unwrap();
    let changes = options.apply_string("pc.bootstrap=1", Phase::Runtime);
    assert_eq!(changes.unwrap()[0].value, Typed::Bool(true));
}

#[test]
fn the_cluster_address_may_set_what_a_connection_needs() {
    let mut options = options("");
    let mut with = |pair: &str| {
        let url = format!("gcomm://h?{pair}&pc.weight=2");
        options.for_connection(&url.parse().unwrap())
    };
    let connection = with("gmcast.segment=3").unwrap();
    assert_eq!(
        (
            connection.int("gmcast.segment"),
            connection.int("pc.weight")
        ),
        (3, 2)
    );
    assert_eq!(
        with("gcache.size=1M"),
        Err(OptionError::Fixed {
            key: "gcache.size",
            until: Phase::Init
        })
    );
    // A refused address changes nothing.
    assert_eq!(options.int("gmcast.segment"), 3);
}

/// A SET of another option must not bring back what the address replaced.
#[test]
fn options_of_the_address_are_in_force_until_they_are_set_or_the_address_changes() {
    let mut options = options("gcs.fc_limit=20");
    let address = |text: &str| text.parse::<ClusterUrl>().unwrap();
    let first = address("gcomm://h?gcs.fc_limit=500&pc.weight=3&evs.suspect_timeout=PT1S");
    options.for_connection(&first).unwrap();
    assert!(options.to_string().contains("gcs.fc_limit = 500;"));
    let set = |options: &mut Options, text: &str| options.apply_string(text, Phase::Runtime);
    set(&mut options, "gcs.fc_factor=0.5").unwrap();
    assert_eq!(options.int("gcs.fc_limit"), 500);
    // Set anew, to the same value.
    set(&mut options, "evs.suspect_timeout=PT1S").unwrap();
    // The default is a change, too.
    assert_eq!(set(&mut options, "pc.weight=1").unwrap().len(), 1);
    options.for_connection(&address("gcomm://h")).unwrap();
    assert_eq!(options.int("gcs.fc_limit"), 20);
    assert_eq!(options.int("pc.weight"), 1);
    assert_eq!(options.duration_ms("evs.suspect_timeout"), 1_000);
}

#[test]
fn malformed_start_options_are_refused() {
    assert_eq!(
        refused("pc.weight"),
        OptionError::NoValue {
            key: "pc.weight".into()
        }
    );
    assert_eq!(refused("=5"), OptionError::EmptyKey { value: "5".into() });
    assert_eq!(
        refused("pc.weight=1=2"),
        OptionError::ManyValues {
            key: "pc.weight".into()
        }
    );
    assert_eq!(
        refused("PC.WEIGHT=3"),
        OptionError::Unknown("PC.WEIGHT".into())
    );
    assert_eq!(
        refused("evs.suspect_timeout=zz").to_string(),
        "Setting parameter 'evs.suspect_timeout' to 'zz' failed: expected a period such as PT1M30S, or seconds"
    );
}

#[test]
fn the_configuration_service_sees_typed_values() {
    let options = options("evs.suspect_timeout=PT6.5S;gcache.size=10M");
    let all: Vec<VisibleOption> = options.visible().collect();
    let get = |name: &str| {
        all.iter()
            .find(|option| option.name == name)
            .cloned()
            .unwrap()
    };
    assert_eq!(
        get("evs.suspect_timeout").value,
        Typed::Duration(std::time::Duration::from_millis(6_500))
    );
    assert_eq!(get("gcache.size").value, Typed::Int(10 << 20));
    assert_eq!(get("gcs.recv_q_hard_limit").value, Typed::Int(i64::MAX));
    assert_eq!(get("evs.auto_evict").value, Typed::Bool(false));
    assert_eq!(get("repl.key_format").value, Typed::Str("FLAT8".into()));
    assert_eq!(get("socket.ssl_ca").value, Typed::Str(String::new()));
    assert!(
        get("gcache.size").read_only
            && !get("pc.weight").read_only
            && get("protonet.backend").deprecated
    );
    assert!(all.iter().all(|option| option.name != "gmcast.isolate"));
}

#[test]
#[should_panic(expected = "does not exist")]
fn asking_for_an_unknown_option_is_a_mistake_of_the_program() {
    options("").int("pc.wieght");
}

/// Option strings made of real names and of values that often fit.
fn any_setting() -> impl Strategy<Value = String> {
    let key = proptest::sample::select(registry::SPECS).prop_map(|spec| spec.name);
    let value = prop_oneof![
        Just("yes".to_string()),
        Just("PT5S".to_string()),
        Just("0.5".to_string()),
        "[0-9]{1,3}[KM]?",
        r"[a-z/.:\\;= ]{0,9}",
    ];
    (key, value).prop_map(|(key, value)| format!("{key}={}", syntax::escape(&value)))
}

proptest! {
    #[test]
    fn arbitrary_strings_never_panic(text in any::<String>(), address in "[a-z0-9.:\\[\\]/]{0,20}") {
        let _ = Options::new("/d/", &address, &text);
        let _ = options("").apply_string(&text, Phase::Runtime);
    }

    #[test]
    fn printing_and_setting_again_changes_nothing(
        settings in proptest::collection::vec(any_setting(), 0..6), dir in r"[a-z/;=\\ ]{0,12}"
    ) {
        let mut options = Options::new(dir.trim(), "127.0.0.1:19031", "").unwrap();
        for setting in &settings {
            let before = options.to_string();
            if options.apply_string(setting, Phase::Init).is_err() {
                prop_assert_eq!(&before, &options.to_string());
            }
        }
        let text = options.to_string();
        let mut again = options.clone();
        let changes = again.apply_string(&text, Phase::Runtime).unwrap();
        prop_assert!(changes.iter().all(|change| registry::find(change.key).unwrap().trigger), "{:?}", changes);
        prop_assert_eq!(again.to_string(), text);
        // Every getter works on whatever was accepted.
        prop_assert!(options.visible().count() > 80);
        let _ = options.listen_address();
    }
}

#[test]
fn what_means_nothing_here_is_named_when_it_is_set() {
    assert_eq!(options("").without_effect(), [""; 0]);
    let set = options("evs.send_window=8; gcache.size=1G; pc.npvo=yes; evs.user_send_window=2");
    assert_eq!(set.without_effect(), ["evs.send_window", "pc.npvo"]);
}

/// The code that reads options names each of them in quotes.
#[test]
fn exactly_the_options_that_the_code_reads_have_an_effect() {
    let source = ["node", "provider", "arbitrator"].map(source_of).concat();
    for spec in SPECS {
        // Only what the option string shows follows from it.
        let is_shown = spec.name == "ist.recv_addr";
        let is_read = source.contains(&format!("\"{}\"", spec.name)) && !is_shown;
        assert_eq!(is_read, !spec.without_effect, "{}", spec.name);
    }
}

/// All code of a crate; the registry and the page name each option, read or not.
fn source_of(name: &str) -> String {
    let mut source = String::new();
    let mut folders = vec![
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(name)
            .join("src"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let is_reader = !["registry.rs", "page.rs", "tests.rs", "tests"]
                .map(OsStr::new)
                .contains(&path.file_name().unwrap());
            if is_reader && path.is_dir() {
                folders.push(path);
            } else if is_reader {
                source += &fs::read_to_string(path).unwrap();
            }
        }
    }
    source
}
