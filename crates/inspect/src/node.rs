//! The variables of one node, and the values that several reports derive from them. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use trireme_agent::{Component, Endpoint, Sample};
use trireme_node::options::{parse_duration, parse_int};
use trireme_node::url::HostPort;

use crate::address;

/// The default of `base_port`.
const GROUP_PORT: u16 = 4567;
/// Our `wsrep_provider_name`.
pub(crate) const TRIREME: &str = "Trireme";

/// The stages of a commit on its own node, in order, as the status variables name them.
pub(crate) const STAGES: [&str; 5] = [
    "flow_control",
    "ordering",
    "majority",
    "certification",
    "commit_order",
];

/// A node's sample, with access by meaning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    sample: Sample,
    options: BTreeMap<String, String>,
}

impl Node {
    pub(crate) fn new(sample: Sample) -> Self {
        let options = options(sample.variable("wsrep_provider_options"));
        Self { sample, options }
    }

    /// A status variable; empty if there is none.
    pub(crate) fn status(&self, name: &str) -> &str {
        self.sample.status(name)
    }

    /// A status variable as a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.status(name)
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
    }

    /// A status variable as a whole number.
    pub(crate) fn whole(&self, name: &str) -> Option<i64> {
        self.status(name).parse().ok()
    }

    /// The seconds since FLUSH STATUS, which resets the counters, or since the server's start.
    pub(crate) fn counted_s(&self) -> Option<f64> {
        let uptime = self.number("uptime")?;
        let since_flush = self.number("uptime_since_flush_status");
        let seconds = since_flush.map_or(uptime, |seconds| seconds.min(uptime));
        (seconds > 0.0).then_some(seconds)
    }

    /// A system variable; empty if there is none.
    pub(crate) fn variable(&self, name: &str) -> &str {
        self.sample.variable(name)
    }

    /// A provider option; empty if the provider does not show it.
    pub(crate) fn option(&self, name: &str) -> &str {
        self.options.get(name).map_or("", String::as_str)
    }

    /// All provider options that the provider shows.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn name(&self) -> &str {
        self.variable("wsrep_node_name")
    }

    pub(crate) fn component(&self) -> Component {
        self.sample.component()
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.component() == Component::Primary
    }

    /// `wsrep_local_state`: 4 is Synced.
    pub(crate) fn state(&self) -> i64 {
        self.whole("wsrep_local_state").unwrap_or(0)
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.is_primary() && self.state() == 4 && self.status("wsrep_ready") == "ON"
    }

    /// The node's group address, `host:port`: the host on which it listens, or else that of `wsrep_node_address`.
    pub(crate) fn group_address(&self) -> Option<String> {
        let listen = HostPort::parse_with_scheme(self.option("gmcast.listen_addr")).ok();
        let port = (listen.as_ref()).map_or(self.base_port(), |at| at.port_or(self.base_port()));
        let is_unspecified = |host: &String| {
            let ip = host.parse::<IpAddr>();
            ip.is_ok_and(|ip| ip.is_unspecified())
        };
        let host = listen
            .map(|at| at.host)
            .filter(|host| !is_unspecified(host));
        let host = host.unwrap_or_else(|| self.option("base_host").to_owned());
        (!host.is_empty()).then(|| address::joined(&host, port))
    }

    /// The node's address for clients, as it tells it to the others.
    pub(crate) fn client_address(&self) -> Option<Endpoint> {
        match self.variable("wsrep_node_incoming_address") {
            "" | "AUTO" => {
                let host = self.option("base_host");
                let port = self.variable("port").parse().ok()?;
                (!host.is_empty()).then(|| Endpoint::Tcp {
                    host: address::canonical(host),
                    port,
                })
            }
            address => address::endpoint(address),
        }
    }

    /// Whether both are the same process. A node that has left tells no member id.
    pub(crate) fn is_same(&self, other: &Node) -> bool {
        match self.status("wsrep_gcomm_uuid") {
            "" => ["hostname", "port", "datadir", "wsrep_node_name"]
                .iter()
                .all(|name| self.variable(name) == other.variable(name)),
            uuid => uuid == other.status("wsrep_gcomm_uuid"),
        }
    }

    /// The port of group addresses that name none.
    fn base_port(&self) -> u16 {
        self.option("base_port").parse().unwrap_or(GROUP_PORT)
    }

    /// The group addresses in the node's `wsrep_cluster_address`, as `host:port`.
    pub(crate) fn named(&self) -> Vec<String> {
        address::named(self.variable("wsrep_cluster_address"), self.base_port())
    }

    pub(crate) fn weight(&self) -> Option<u64> {
        self.option("pc.weight").parse().ok()
    }

    /// The microseconds of a stage of commits: `p50` or `p99`. None without a sample.
    pub(crate) fn stage_us(&self, stage: &str, percentile: &str) -> Option<f64> {
        let name = format!("wsrep_trireme_commit_{stage}_{percentile}_us");
        self.number(&name).filter(|us| *us > 0.0)
    }

    /// The sum over all stages, as an estimate of the whole commit. None if the library does not report it, or if no
    /// client has committed here: a node that only applies has some of the stages, too.
    pub(crate) fn commit_us(&self, percentile: &str) -> Option<f64> {
        self.stage_us("ordering", percentile)?;
        let stages = STAGES
            .iter()
            .filter_map(|stage| self.stage_us(stage, percentile));
        Some(stages.sum()).filter(|us| *us > 0.0)
    }

    /// A duration option (`PT30S`, `P1D`, or seconds) in seconds.
    pub(crate) fn option_seconds(&self, name: &str) -> Option<f64> {
        seconds(self.option(name))
    }
}

/// Parses `key = value; key = value`, where a backslash escapes the next character.
fn options(text: &str) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    let mut pair = String::new();
    let mut chars = text.chars();
    let mut add = |pair: &str| {
        if let Some((key, value)) = pair.split_once('=') {
            options.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\\' => pair.extend(chars.next()),
            ';' => add(&std::mem::take(&mut pair)),
            c => pair.push(c),
        }
    }
    add(&pair);
    options
}

/// Parses a period or a number of seconds.
fn seconds(text: &str) -> Option<f64> {
    parse_duration(text).map(|period| period.as_secs_f64())
}

/// Parses a number of bytes with a suffix of Galera's options (K, M, G, T).
pub(crate) fn bytes(text: &str) -> Option<u64> {
    u64::try_from(parse_int(text)?).ok()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A healthy node of a cluster of three, with changes: variables have `@`, options have `.` in their names.
    pub(crate) fn node(name: &str, changes: &[(&str, &str)]) -> Node {
        let index = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let index: usize = index.parse().unwrap_or(1);
        let mut status: BTreeMap<String, String> = BTreeMap::new();
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        let mut options: BTreeMap<String, String> = BTreeMap::new();
        let base = [
            ("wsrep_provider_name", "Trireme"),
            ("wsrep_provider_version", "0.1.0(rabc)"),
            ("wsrep_cluster_status", "Primary"),
            ("wsrep_cluster_size", "3"),
            ("wsrep_cluster_weight", "3"),
            ("wsrep_cluster_conf_id", "3"),
            (
                "wsrep_cluster_state_uuid",
                "3b1c0f2e-0102-11ee-8b1c-00ff7f80a5c3",
            ),
            ("wsrep_ready", "ON"),
            ("wsrep_connected", "ON"),
            ("wsrep_local_state", "4"),
            ("wsrep_local_state_comment", "Synced"),
            ("wsrep_last_committed", "1000"),
            ("wsrep_local_cached_downto", "1"),
            (
                "wsrep_incoming_addresses",
                "192.0.2.1:3306,192.0.2.2:3306,192.0.2.3:3306",
            ),
            ("wsrep_trireme_leader", "node1"),
            ("wsrep_trireme_plaintext_links", "0"),
            ("wsrep_replicated", "500"),
            ("wsrep_received", "500"),
            ("uptime", "3600"),
            ("@wsrep_on", "ON"),
            ("@wsrep_cluster_name", "shop"),
            (
                "@wsrep_cluster_address",
                "gcomm://192.0.2.1,192.0.2.2,192.0.2.3",
            ),
            ("pc.weight", "1"),
            ("base_port", "4567"),
            ("repl.durability", "os"),
            ("gcache.size", "128M"),
        ];
        let own = [
            ("wsrep_local_index", format!("{}", index - 1)),
            ("@wsrep_node_name", name.to_owned()),
            ("base_host", format!("192.0.2.{index}")),
        ];
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in base.into_iter().chain(own).chain(changes.iter().copied()) {
            let name = name.to_owned();
            let value = value.to_owned();
            match name.strip_prefix('@') {
                Some(variable) => variables.insert(variable.to_owned(), value),
                None if name.contains('.') || name.starts_with("base_") => {
                    options.insert(name, value)
                }
                None => status.insert(name, value),
            };
        }
        let joined = options
            .iter()
            .map(|(key, value)| format!("{key} = {value}; "));
        variables.insert("wsrep_provider_options".to_owned(), joined.collect());
        Node::new(Sample::new(
            status.into_iter().collect(),
            variables.into_iter().collect(),
        ))
    }

    #[test]
    fn options_are_read_as_they_are_shown() {
        let read = options(r"a.b = 1; c = x\;y; d = ; e");
        let pairs: Vec<_> = read
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("a.b", "1"), ("c", "x;y"), ("d", "")]);
    }

    #[test]
    fn periods_and_sizes_have_units() {
        assert_eq!(seconds("PT30S"), Some(30.0));
        assert_eq!(seconds("P1DT1M0.5S"), Some(86_460.5));
        assert_eq!(seconds("7"), Some(7.0));
        assert_eq!(seconds("PTx"), None);
        assert_eq!(bytes("128M"), Some(128 << 20));
        assert_eq!(bytes("7"), Some(7));
        assert_eq!(bytes(""), None);
        assert_eq!(bytes("99999999999999999999T"), None);
    }

    #[test]
    fn a_node_that_only_applies_has_no_commit_time() {
        let applies = node(
            "node1",
            &[("wsrep_trireme_commit_commit_order_p50_us", "40")],
        );
        assert_eq!(applies.commit_us("p50"), None);
    }

    #[test]
    fn a_group_address_comes_from_the_options() {
        let node = node("node2", &[]);
        assert_eq!(node.group_address().as_deref(), Some("192.0.2.2:4567"));
        assert!(node.is_synced());
    }
}
