//! Provider options (`wsrep_provider_options`), as Galera's users know them.
//!
//! [`Options`] holds the text of every option that is set or shown. Values are checked when they come in, so the typed
//! getters cannot fail; asking them for an option that does not exist, or for another type than it has, is a mistake of
//! the program and panics.

mod addresses;
#[cfg(test)]
mod page;
mod registry;
mod syntax;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use crate::url::{AddressError, ClusterUrl};
use registry::{DefaultValue, SPECS, Spec};
pub use syntax::{escape, split};
use value::{Kind, find_word, parse_decimal};
pub use value::{Typed, parse_bool, parse_duration, parse_int};

/// When options are set. An option may change up to a certain phase; setting it to its present value always succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// While the provider starts.
    Init,
    /// Just before connecting: options of the cluster address.
    Connect,
    /// At any time.
    Runtime,
}

/// An option that was set to something new, or a command (such as `socket.ssl_reload`).
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Name of the option.
    pub key: &'static str,
    /// Its new value.
    pub value: Typed,
}

/// Why options were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No option has this name. MTR and users know this wording.
    #[error("Unknown parameter '{0}'")]
    Unknown(String),
    /// A key without `=`.
    #[error("Key without value: '{key}' in parameter list")]
    NoValue {
        /// The key.
        key: String,
    },
    /// A value without key.
    #[error("Empty key before '={value}' in parameter list")]
    EmptyKey {
        /// The value.
        value: String,
    },
    /// More than one unescaped `=`.
    #[error("More than one value for key '{key}' in parameter list")]
    ManyValues {
        /// The key.
        key: String,
    },
    /// The value is not one of the option's type. MariaDB's suites know the first two words.
    #[error("Setting parameter '{key}' to '{value}' failed: expected {expected}")]
    BadValue {
        /// The option.
        key: &'static str,
        /// What was given.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// The option cannot change any more.
    #[error("Parameter '{key}' cannot be changed {}", too_late(.until))]
    Fixed {
        /// The option.
        key: &'static str,
        /// The last phase in which it could.
        until: Phase,
    },
    /// The option belongs into the configuration.
    #[error(
        "Parameter '{key}' cannot be set in the cluster address, only in wsrep_provider_options"
    )]
    NotInAddress {
        /// The option.
        key: &'static str,
    },
    /// `wsrep_node_address` cannot be read.
    #[error("Bad node address: {0}; correct wsrep_node_address")]
    NodeAddress(#[from] AddressError),
}

/// Says when an option could have been changed.
fn too_late(until: &Phase) -> &'static str {
    match until {
        Phase::Init => "after startup",
        Phase::Connect | Phase::Runtime => {
            "at run time, only in the configuration or the cluster address"
        }
    }
}

/// An option as the configuration service presents it.
#[derive(Clone, Debug, PartialEq)]
pub struct VisibleOption {
    /// Name.
    pub name: &'static str,
    /// Its value now.
    pub value: Typed,
    /// Whether it is deprecated.
    pub deprecated: bool,
    /// Whether it cannot change at run time.
    pub read_only: bool,
}

/// The options of one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<&'static str, String>,
    /// Why nothing follows from the node address. A server may load a provider that it never connects, so only
    /// connecting fails for it.
    bad_node_address: Option<AddressError>,
}

impl Options {
    /// Options of a node: defaults that follow from its data directory and address, then what `text` sets.
    ///
    /// As in Galera, `base_host`, `base_port` and `ist.recv_addr` come from the node address, and TLS is on when a
    /// certificate and a key are given, unless `socket.ssl` says otherwise.
    pub fn new(data_dir: &str, node_address: &str, text: &str) -> Result<Options, OptionError> {
        let shown = SPECS
            .iter()
            .filter(|spec| matches!(spec.default, DefaultValue::Shown(_)));
        let mut values: BTreeMap<_, _> = shown
            .map(|spec| (spec.name, spec.default.text().to_string()))
            .collect();
        values.insert("base_dir", data_dir.to_string());
        values.insert("gcache.dir", data_dir.to_string());
        let mut options = Options {
            values,
            bad_node_address: None,
        };
        options.bad_node_address = options.derive_from_node_address(node_address).err();
        options.apply_string(text, Phase::Init)?;
        options.complete_addresses();
        options.complete_tls();
        Ok(options)
    }

    /// Sets options from `key = value; ...`. All or nothing: on an error nothing has changed. Returns what is new, in
    /// the order of the text.
    pub fn apply_string(&mut self, text: &str, phase: Phase) -> Result<Vec<Change>, OptionError> {
        let pairs = syntax::split(text)?;
        self.apply_pairs(
            pairs
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str())),
            phase,
        )
    }

    /// Sets options from pairs, as [`Options::apply_string`] does.
    pub fn apply_pairs<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        phase: Phase,
    ) -> Result<Vec<Change>, OptionError> {
        let mut next = self.clone();
        let mut changes = Vec::new();
        for (key, value) in pairs {
            let spec = registry::find(key).ok_or_else(|| OptionError::Unknown(key.to_string()))?;
            // A command is one even if it repeats what the configuration says, or the shown value: the server
            // sends `socket.ssl_reload` so.
            let is_command = spec.trigger && phase == Phase::Runtime;
            if !is_command && next.values.get(spec.name).is_some_and(|now| now == value) {
                continue;
            }
            let typed = spec
                .kind
                .parse(value)
                .ok_or_else(|| OptionError::BadValue {
                    key: spec.name,
                    value: value.to_string(),
                    expected: spec.kind.expectation(),
                })?;
            if !is_command
                && spec.kind.parse(next.text(spec)).as_ref() == Some(&typed)
                && phase > spec.until
            {
                continue;
            }
            if spec.not_in_address && phase == Phase::Connect {
                return Err(OptionError::NotInAddress { key: spec.name });
            }
            if phase > spec.until {
                return Err(OptionError::Fixed {
                    key: spec.name,
                    until: spec.until,
                });
            }
            if !is_command {
                // MariaDB 11.8 passes six digits; a decimal is shown as short as it can be, 0.25 and 1.0.
                let shown = match typed {
                    Typed::Double(number) => format!("{number:?}"),
                    _ => value.to_string(),
                };
                next.values.insert(spec.name, shown);
            }
            changes.push(Change {
                key: spec.name,
                value: typed,
            });
        }
        *self = next;
        Ok(changes)
    }

    /// What holds for a connection to `cluster`: the options of its address come in addition. From the first one on more
    /// defaults are shown. Fails for a node address that cannot be read.
    pub fn for_connection(&mut self, cluster: &ClusterUrl) -> Result<Options, OptionError> {
        if let Some(error) = &self.bad_node_address {
            return Err(error.clone().into());
        }
        self.show_connected();
        let mut options = self.clone();
        let pairs = cluster.options.iter();
        let pairs = pairs.map(|(key, value)| (key.as_str(), value.as_str()));
        options.apply_pairs(pairs, Phase::Connect)?;
        Ok(options)
    }

    /// Shows the defaults that Galera shows from the first connect on, `gmcast.listen_addr` among them.
    fn show_connected(&mut self) {
        let listen = format!("tcp://0.0.0.0:{}", self.str("base_port"));
        for spec in SPECS {
            if let DefaultValue::FromConnect(text) = spec.default {
                let text = if spec.name == "gmcast.listen_addr" {
                    listen.as_str()
                } else {
                    text
                };
                self.values
                    .entry(spec.name)
                    .or_insert_with(|| text.to_string());
            }
        }
    }

    /// Value of a boolean option.
    pub fn bool(&self, key: &str) -> bool {
        let spec = self.expect_kind(key, |kind| matches!(kind, Kind::Bool | Kind::BoolOrInt));
        let text = self.text(spec);
        parse_bool(text).unwrap_or_else(|| parse_int(text).is_some_and(|n| n != 0))
    }

    /// Value of a whole-number option, suffix and all. For `evs.auto_evict`, 1 and 0 stand for yes and no.
    pub fn int(&self, key: &str) -> i64 {
        let spec = self.expect_kind(key, |kind| {
            matches!(kind, Kind::Int { .. } | Kind::BoolOrInt)
        });
        let text = self.text(spec);
        // Values were checked when they were set, so the last alternative is for the words of a `BoolOrInt`.
        parse_int(text).unwrap_or_else(|| parse_bool(text).map_or(0, i64::from))
    }

    /// Value of a decimal option.
    pub fn double(&self, key: &str) -> f64 {
        let spec = self.expect_kind(key, |kind| matches!(kind, Kind::Double { .. }));
        parse_decimal(self.text(spec)).unwrap_or_default()
    }

    /// Value of a period in milliseconds, rounded up so that a period never vanishes.
    pub fn duration_ms(&self, key: &str) -> u64 {
        let spec = self.expect_kind(key, |kind| kind == Kind::Duration);
        let nanos = parse_duration(self.text(spec))
            .unwrap_or_default()
            .as_nanos();
        u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The word that was chosen, spelled as the registry does, however it was written.
    pub fn choice(&self, key: &str) -> &'static str {
        let spec = self.expect_kind(key, |kind| matches!(kind, Kind::Choice(_)));
        match spec.kind {
            Kind::Choice(words) => find_word(words, self.text(spec)),
            _ => None,
        }
        .unwrap_or(spec.default.text())
    }

    /// Text of any option, as it was written; its default if it is not set.
    pub fn str(&self, key: &str) -> &str {
        self.text(self.expect_kind(key, |_| true))
    }

    /// Whether the option has a value in the option string: set, or a shown default.
    pub fn is_shown(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// What the configuration service presents: every option but the hidden ones, sorted by name.
    pub fn visible(&self) -> impl Iterator<Item = VisibleOption> + '_ {
        SPECS
            .iter()
            .filter(|spec| !spec.hidden)
            .map(|spec| VisibleOption {
                name: spec.name,
                // A derived default that is still empty (no node address) stays text.
                value: spec
                    .kind
                    .parse(self.text(spec))
                    .unwrap_or_else(|| Typed::Str(self.text(spec).to_string())),
                deprecated: spec.deprecated,
                read_only: spec.until < Phase::Runtime,
            })
    }

    /// The options that are set to something else than their default, and mean nothing here.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let is_set = |spec: &&Spec| {
            let (now, default) = (
                self.text(spec),
                match spec.name {
                    "ist.recv_addr" => self.values.get("base_host").map_or("", String::as_str),
                    _ => spec.default.text(),
                },
            );
            spec.kind.parse(now) != spec.kind.parse(default)
        };
        let idle = SPECS.iter().filter(|spec| spec.without_effect);
        idle.filter(is_set).map(|spec| spec.name).collect()
    }

    fn text(&self, spec: &Spec) -> &str {
        self.values
            .get(spec.name)
            .map_or(spec.default.text(), String::as_str)
    }

    /// Finds an option that the program names.
    fn expect_kind(&self, key: &str, fits: impl Fn(Kind) -> bool) -> &'static Spec {
        match registry::find(key) {
            Some(spec) if fits(spec.kind) => spec,
            Some(spec) => panic!(
                "option '{key}' is read as another type than {:?}",
                spec.kind
            ),
            None => panic!("option '{key}' does not exist"),
        }
    }
}

impl fmt::Display for Options {
    /// The option string as `options_get` returns it. Setting it again succeeds and changes nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values
            .iter()
            .try_for_each(|(key, value)| write!(f, "{key} = {}; ", syntax::escape(value)))
    }
}

#[cfg(test)]
mod tests;
