//! All provider options: Galera's names, types and defaults, and Trireme's own.
//!
//! Measured on Galera 26.4.23 (server-contract-reference.md#options). Options without a meaning here are accepted too,
//! so that an existing configuration keeps working.

use super::Phase;
use super::value::Kind;

/// The default of an option, and whether the option string shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// Shown from the start.
    Shown(&'static str),
    /// Shown from the first connect on.
    FromConnect(&'static str),
    /// Never shown unless set.
    Unshown(&'static str),
}

impl DefaultValue {
    /// The value.
    pub fn text(self) -> &'static str {
        match self {
            DefaultValue::Shown(text)
            | DefaultValue::FromConnect(text)
            | DefaultValue::Unshown(text) => text,
        }
    }
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Full name.
    pub name: &'static str,
    /// Type and bounds.
    pub kind: Kind,
    /// Default; only a stand-in for the options that depend on the node (`base_*`, `gcache.dir`, `ist.recv_addr`,
    /// `gmcast.listen_addr`).
    pub default: DefaultValue,
    /// The last phase in which the option may change.
    pub until: Phase,
    /// Deprecated: accepted, and shown to the configuration service as such.
    pub deprecated: bool,
    /// Not shown to the configuration service.
    pub hidden: bool,
    /// Setting the option at run time is a command; the value is not kept.
    pub trigger: bool,
    /// Refused in a cluster address, because later changes of the option do not know the address.
    pub not_in_address: bool,
    /// Accepted, but has no effect here.
    pub without_effect: bool,
}

impl Spec {
    const fn deprecated(self) -> Spec {
        Spec {
            deprecated: true,
            ..self
        }
    }

    const fn hidden(self) -> Spec {
        Spec {
            hidden: true,
            ..self
        }
    }

    const fn not_in_address(self) -> Spec {
        Spec {
            not_in_address: true,
            ..self
        }
    }

    const fn without_effect(self) -> Spec {
        Spec {
            without_effect: true,
            ..self
        }
    }

    const fn trigger(self) -> Spec {
        Spec {
            trigger: true,
            ..self
        }
    }
}

/// Options that were renamed: old and new name. The old name stays valid.
const OLD_NAMES: &[(&str, &str)] = &[("repl.sequencer", "repl.leader")];

/// Finds an option by its exact name.
pub fn find(name: &str) -> Option<&'static Spec> {
    let renamed = OLD_NAMES.iter().find(|(old, _)| *old == name);
    let name = renamed.map_or(name, |(_, name)| name);
    SPECS
        .binary_search_by(|spec| spec.name.cmp(name))
        .ok()
        .map(|index| &SPECS[index])
}

const fn start(name: &'static str, kind: Kind, default: DefaultValue) -> Spec {
    Spec {
        name,
        kind,
        default,
        until: Phase::Init,
        deprecated: false,
        hidden: false,
        trigger: false,
        not_in_address: false,
        without_effect: false,
    }
}

const fn connect(name: &'static str, kind: Kind, default: DefaultValue) -> Spec {
    Spec {
        until: Phase::Connect,
        ..start(name, kind, default)
    }
}

const fn dynamic(name: &'static str, kind: Kind, default: DefaultValue) -> Spec {
    Spec {
        until: Phase::Runtime,
        ..start(name, kind, default)
    }
}

use DefaultValue::{FromConnect, Shown, Unshown};
use Kind::{Address, Bool, BoolOrInt, Choice, Duration, Str};

const COUNT: Kind = Kind::Int {
    min: 0,
    max: i64::MAX,
};
const POSITIVE: Kind = Kind::Int {
    min: 1,
    max: i64::MAX,
};
const BYTE: Kind = Kind::Int { min: 0, max: 255 };
const PORT: Kind = Kind::Int {
    min: 1,
    max: 65_535,
};
/// More than any cluster has.
const NODES: Kind = Kind::Int { min: 0, max: 1_024 };
const FLAG: Kind = Kind::Int { min: 0, max: 1 };
const FRACTION: Kind = Kind::Double { min: 0.0, max: 1.0 };
const MAX_WS_SIZE: Kind = Kind::Int {
    min: 0,
    max: 0x7fff_ffff,
};

/// Sorted by name.
pub const SPECS: &[Spec] = &[
    start("base_dir", Str, Shown(".")),
    start("base_host", Str, Shown("")),
    start("base_port", PORT, Shown("4567")),
    start("cert.length_check", COUNT, Unshown("127"))
        .without_effect()
        .hidden(),
    dynamic("cert.log_conflicts", Bool, Shown("no")),
    start("cert.max_length", POSITIVE, Unshown("16384")).hidden(),
    dynamic("cert.optimistic_pa", Bool, Shown("yes")).without_effect(),
    dynamic("debug", Bool, Shown("no")),
    connect("evs.auto_evict", BoolOrInt, Shown("0")).without_effect(),
    dynamic("evs.causal_keepalive_period", Duration, FromConnect("PT1S")).without_effect(),
    dynamic("evs.debug_log_mask", Str, FromConnect("0x1")).without_effect(),
    dynamic("evs.delay_margin", Duration, Shown("PT1S")),
    dynamic("evs.delayed_keep_period", Duration, Shown("PT30S")).without_effect(),
    dynamic("evs.evict", Str, Unshown("")).trigger(),
    connect("evs.inactive_check_period", Duration, Shown("PT0.5S")).without_effect(),
    dynamic("evs.inactive_timeout", Duration, Shown("PT15S")),
    dynamic("evs.info_log_mask", Str, FromConnect("0")).without_effect(),
    dynamic("evs.install_timeout", Duration, FromConnect("PT7.5S")).without_effect(),
    dynamic("evs.join_retrans_period", Duration, Shown("PT1S")).without_effect(),
    dynamic("evs.keepalive_period", Duration, FromConnect("PT1S")).without_effect(),
    dynamic("evs.max_install_timeouts", COUNT, Shown("3")).without_effect(),
    dynamic("evs.send_window", POSITIVE, Shown("4")).without_effect(),
    dynamic("evs.stats_report_period", Duration, Shown("PT1M")).without_effect(),
    dynamic("evs.suspect_timeout", Duration, Shown("PT5S")),
    dynamic("evs.use_aggregate", Bool, FromConnect("true")).without_effect(),
    dynamic("evs.user_send_window", POSITIVE, Shown("2")).without_effect(),
    connect("evs.version", Str, FromConnect("1")).without_effect(),
    connect("evs.view_forget_timeout", Duration, Shown("PT24H")).without_effect(),
    start("gcache.dir", Str, Shown(".")),
    dynamic("gcache.keep_pages_size", COUNT, Shown("0")).without_effect(),
    dynamic("gcache.mem_size", COUNT, Shown("0")).without_effect(),
    start("gcache.name", Str, Shown("galera.cache")).without_effect(),
    dynamic("gcache.page_size", COUNT, Shown("128M")).without_effect(),
    start("gcache.recover", Bool, Shown("yes")),
    start("gcache.size", COUNT, Shown("128M")),
    start("gcomm.thread_prio", Str, Shown("")).without_effect(),
    dynamic("gcs.fc_debug", COUNT, Shown("0")).without_effect(),
    dynamic("gcs.fc_factor", FRACTION, Shown("1.0")),
    dynamic("gcs.fc_limit", COUNT, Shown("16")),
    // As in Galera, the old name changes at run time, the new one does not.
    dynamic("gcs.fc_master_slave", Bool, Shown("no")).deprecated(),
    start("gcs.fc_single_primary", Bool, Shown("no")),
    connect("gcs.max_packet_size", POSITIVE, Shown("64500")).without_effect(),
    dynamic("gcs.max_throttle", FRACTION, Shown("0.25")).without_effect(),
    dynamic("gcs.recv_q_hard_limit", COUNT, Shown("9223372036854775807")).without_effect(),
    dynamic("gcs.recv_q_soft_limit", FRACTION, Shown("0.25")).without_effect(),
    start("gcs.stateless", Bool, Unshown("no")),
    dynamic("gcs.sync_donor", Bool, Shown("no")).without_effect(),
    start("gcs.vote_policy", COUNT, Unshown("0")),
    connect("gmcast.group", Str, Unshown("")).without_effect(),
    dynamic("gmcast.isolate", Kind::Int { min: 0, max: 2 }, Unshown("0"))
        .hidden()
        .trigger(),
    connect("gmcast.listen_addr", Address, FromConnect("")),
    connect("gmcast.mcast_addr", Str, FromConnect("")).without_effect(),
    connect("gmcast.mcast_port", PORT, Unshown("4567"))
        .without_effect()
        .hidden(),
    connect("gmcast.mcast_ttl", BYTE, FromConnect("1")).without_effect(),
    connect("gmcast.mira", COUNT, Unshown("0"))
        .without_effect()
        .hidden(),
    dynamic("gmcast.peer_addr", Address, Unshown("")).trigger(),
    connect("gmcast.peer_timeout", Duration, FromConnect("PT3S")).without_effect(),
    connect("gmcast.segment", BYTE, Shown("0")),
    connect("gmcast.time_wait", Duration, FromConnect("PT5S")).without_effect(),
    connect("gmcast.version", Str, Shown("0")).without_effect(),
    start("ist.keep_keys", Bool, Unshown("yes"))
        .without_effect()
        .hidden(),
    start("ist.recv_addr", Address, Shown("")).without_effect(),
    start("ist.recv_bind", Address, Unshown("")).without_effect(),
    connect("pc.announce_timeout", Duration, Shown("PT3S")).without_effect(),
    dynamic("pc.bootstrap", Bool, Unshown("no")).trigger(),
    // Trireme's own: so many data nodes found a new cluster together, and the operator chooses none of them
    // (docs/protocol.md).
    connect("pc.bootstrap_expect", NODES, Unshown("0")),
    connect("pc.checksum", Bool, Shown("false")).without_effect(),
    dynamic("pc.ignore_quorum", Bool, Shown("false")),
    dynamic("pc.ignore_sb", Bool, Shown("false")),
    connect("pc.linger", Duration, FromConnect("PT20S")).without_effect(),
    connect("pc.npvo", Bool, Shown("false")).without_effect(),
    connect("pc.recovery", Bool, Shown("true")),
    connect("pc.version", Str, Shown("0")).without_effect(),
    // Trireme's own: after a power loss of half of the votes or more, how long to wait for the voters that are missing
    // (0: for ever; docs/protocol.md, rule 4).
    dynamic("pc.wait_evidence", Duration, Unshown("PT0S")),
    connect("pc.wait_prim", Bool, Shown("true")),
    connect("pc.wait_prim_timeout", Duration, Shown("PT30S")),
    dynamic("pc.weight", BYTE, Shown("1")),
    start("protonet.backend", Str, Shown("asio"))
        .without_effect()
        .deprecated(),
    start("protonet.version", Str, Shown("0"))
        .without_effect()
        .deprecated(),
    // Trireme's own: the seqno that is applied once more although the server has died of it (docs/log-format.md).
    connect("repl.apply_again", COUNT, Unshown("0")).hidden(),
    dynamic("repl.causal_read_timeout", Duration, Shown("PT30S")),
    start(
        "repl.commit_order",
        Choice(&["0", "1", "2", "3"]),
        Shown("3"),
    )
    .without_effect(),
    // Trireme's own: the failures that an acknowledged commit survives (docs/guarantees.md, section 4).
    start(
        "repl.durability",
        Choice(&["memory", "os", "disk"]),
        Shown("os"),
    ),
    // Trireme's own: how long writers wait for one slow member before the group leaves it out of flow control (in
    // milliseconds; 0: for ever).
    dynamic("repl.fc_desync_after_ms", COUNT, Shown("60")),
    // Trireme's own: the state that such a member shows: desynced, or in step (docs/load-balancers.md).
    dynamic(
        "repl.fc_desync_state",
        Choice(&["donor", "synced"]),
        Shown("donor"),
    ),
    // Trireme's own: whether the script of a state transfer runs before an IST, too, as Galera does.
    dynamic("repl.ist_script", Bool, Shown("yes")),
    dynamic(
        "repl.key_format",
        Choice(&["FLAT8", "FLAT8A", "FLAT16", "FLAT16A"]),
        Shown("FLAT8"),
    )
    .without_effect(),
    // Trireme's own: whether this node should be the leader (docs/protocol.md).
    dynamic(
        "repl.leader",
        Choice(&["auto", "prefer", "never"]),
        Shown("auto"),
    ),
    // Trireme's own: a directory in memory for marks (docs/state-files.md); empty: no marks.
    start("repl.mark_dir", Str, Shown("/dev/shm")),
    dynamic("repl.max_ws_size", MAX_WS_SIZE, Shown("2147483647")),
    dynamic("repl.proto_max", Str, Shown("11")).without_effect(),
    // Trireme's own: plaintext is neither dialed nor accepted (docs/security.md).
    dynamic("repl.require_encryption", Bool, Unshown("no")).not_in_address(),
    // Trireme's own: the file of a secret that all nodes share (docs/security.md).
    dynamic("repl.secret_file", Str, Unshown("")).not_in_address(),
    start("socket.checksum", COUNT, Shown("2")).without_effect(),
    dynamic("socket.dynamic", Bool, Unshown("no")).not_in_address(),
    start("socket.non_blocking", FLAG, Unshown("0"))
        .without_effect()
        .hidden(),
    dynamic("socket.recv_buf_size", Kind::AutoOrSize, Shown("auto")).without_effect(),
    start("socket.send_buf_size", Kind::AutoOrSize, Shown("auto")).without_effect(),
    dynamic("socket.ssl", Bool, Unshown("no")).not_in_address(),
    dynamic("socket.ssl_ca", Str, Unshown("")).not_in_address(),
    dynamic("socket.ssl_cert", Str, Unshown("")).not_in_address(),
    dynamic("socket.ssl_cipher", Str, Unshown("")).not_in_address(),
    start("socket.ssl_compression", Bool, Unshown("no"))
        .without_effect()
        .deprecated(),
    // Trireme's own: lists of revoked certificates.
    dynamic("socket.ssl_crl", Str, Unshown("")).not_in_address(),
    dynamic("socket.ssl_key", Str, Unshown("")).not_in_address(),
    dynamic("socket.ssl_password_file", Str, Unshown("")).not_in_address(),
    dynamic("socket.ssl_reload", Bool, Unshown("no")).trigger(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique_also_as_system_variables() {
        assert!(SPECS.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut sysvars: Vec<String> = SPECS
            .iter()
            .filter(|spec| !spec.hidden)
            .map(|spec| spec.name.replace('.', "_"))
            .collect();
        sysvars.sort();
        sysvars.dedup();
        // Galera's 88, pc.bootstrap_expect, pc.wait_evidence, repl.durability, repl.fc_desync_after_ms, repl.fc_desync_state, repl.ist_script, repl.leader, repl.mark_dir,
        // repl.require_encryption, repl.secret_file and socket.ssl_crl.
        assert_eq!(sysvars.len(), 99);
        assert_eq!(SPECS.iter().filter(|spec| spec.hidden).count(), 8);
    }

    #[test]
    fn every_default_is_a_value_of_its_type() {
        for spec in SPECS {
            assert!(
                spec.kind.parse(spec.default.text()).is_some(),
                "{}",
                spec.name
            );
        }
    }

    #[test]
    fn options_are_found_by_exact_name() {
        assert_eq!(find("pc.weight").map(|spec| spec.name), Some("pc.weight"));
        assert!(
            find("PC.WEIGHT").is_none() && find("gmcasts.segment").is_none() && find("").is_none()
        );
    }
}
