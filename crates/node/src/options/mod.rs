//! Provider options (`wsrep_provider_options`), as Galera's users know them.
//!
//! [`Options`] holds the text of every option that is set or shown. Values are checked when they come in, so the typed
//! getters cannot fail. A getter panics if the option does not exist or has another type: that is a bug in the program.

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

/// The longest period that has an effect, 100 years in milliseconds: a sum of a time and a longer one would overflow.
pub const PERIOD_MAX_MS: u64 = 100 * 365 * 24 * 3_600 * 1_000;

/// The phase in which options are set. An option may change up to its last phase; setting it to its present value
/// always succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// While the provider starts.
    Init,
    /// Just before connecting: options of the cluster address.
    Connect,
    /// At any time.
    Runtime,
}

/// An option that got a new value, or a command (such as `socket.ssl_reload`).
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Name of the option.
    pub key: &'static str,
    /// Its new value.
    pub value: Typed,
}

/// The reason why options were refused.
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
    /// The value is not one of the option's type. MariaDB's suites expect the first two words.
    #[error("Setting parameter '{key}' to '{value}' failed: expected {expected}")]
    BadValue {
        /// The option.
        key: &'static str,
        /// The given value.
        value: String,
        /// The allowed values.
        expected: String,
    },
    /// The option can no longer change.
    #[error("Parameter '{key}' cannot be changed {}", too_late(.until))]
    Fixed {
        /// The option.
        key: &'static str,
        /// The last phase in which the option could change.
        until: Phase,
    },
    /// The option belongs in the configuration.
    #[error(
        "Parameter '{key}' cannot be set in the cluster address, only in wsrep_provider_options"
    )]
    NotInAddress {
        /// The option.
        key: &'static str,
    },
    /// `wsrep_node_address` is invalid.
    #[error("Bad node address: {0}; correct wsrep_node_address")]
    NodeAddress(#[from] AddressError),
}

/// Returns the phrase that says since when an option cannot change.
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
    /// True if it is deprecated.
    pub deprecated: bool,
    /// True if it cannot change at run time.
    pub read_only: bool,
}

/// The options of one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<&'static str, String>,
    /// The values that options of the cluster address have replaced; None: not shown before.
    replaced: BTreeMap<&'static str, Option<String>>,
    /// The error in the node address, if there is one. A server may load a provider that it never connects, so only
    /// connecting fails for it.
    bad_node_address: Option<AddressError>,
}

impl Options {
    /// Returns the options of a node: defaults that follow from its data directory and address, then the settings in
    /// `text`.
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
            replaced: BTreeMap::new(),
            bad_node_address: None,
        };
        options.bad_node_address = options.derive_from_node_address(node_address).err();
        options.apply_string(text, Phase::Init)?;
        options.complete_addresses();
        options.complete_tls();
        Ok(options)
    }

    /// Sets options from `key = value; ...`. On an error no option has changed. Returns the changes, in the order of
    /// the text.
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
            if phase == Phase::Runtime {
                next.replaced.remove(spec.name);
            }
            // A command is carried out even if it repeats the configured or shown value: the server sends
            // `socket.ssl_reload` like that.
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
                // MariaDB 11.8 passes six digits; a decimal is shown as short as possible, 0.25 and 1.0.
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
        next.show_tls();
        *self = next;
        Ok(changes)
    }

    /// Adds the options of the address of `cluster`; they are in force until the next call, or until they are set anew.
    /// Returns the options of the connection. From the first connection on, more defaults are shown.
    ///
    /// # Errors
    /// If the node address is invalid, or an option of the address; then the options of the address before are in
    /// force.
    pub fn for_connection(&mut self, cluster: &ClusterUrl) -> Result<Options, OptionError> {
        if let Some(error) = &self.bad_node_address {
            return Err(error.clone().into());
        }
        self.show_connected();
        let mut next = self.clone();
        for (key, value) in std::mem::take(&mut next.replaced) {
            match value {
                Some(value) => next.values.insert(key, value),
                None => next.values.remove(key),
            };
        }
        let before = next.values.clone();
        let pairs = cluster.options.iter();
        let pairs = pairs.map(|(key, value)| (key.as_str(), value.as_str()));
        next.apply_pairs(pairs, Phase::Connect)?;
        let changed = next
            .values
            .iter()
            .filter(|(key, value)| before.get(*key) != Some(*value));
        next.replaced = changed
            .map(|(key, _)| (*key, before.get(key).cloned()))
            .collect();
        *self = next;
        Ok(self.clone())
    }

    /// Shows the defaults that Galera shows from the first connect on, such as `gmcast.listen_addr`.
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

    /// Returns the value of a boolean option.
    pub fn bool(&self, key: &str) -> bool {
        let spec = self.expect_kind(key, |kind| matches!(kind, Kind::Bool | Kind::BoolOrInt));
        let text = self.text(spec);
        parse_bool(text).unwrap_or_else(|| parse_int(text).is_some_and(|n| n != 0))
    }

    /// Returns the value of a whole-number option, with its suffix applied. For `evs.auto_evict`, 1 and 0 stand for yes
    /// and no.
    pub fn int(&self, key: &str) -> i64 {
        let spec = self.expect_kind(key, |kind| {
            matches!(kind, Kind::Int { .. } | Kind::BoolOrInt)
        });
        let text = self.text(spec);
        // Values were checked when they were set, so the last alternative is for the words of a `BoolOrInt`.
        parse_int(text).unwrap_or_else(|| parse_bool(text).map_or(0, i64::from))
    }

    /// Returns the value of a decimal option.
    pub fn double(&self, key: &str) -> f64 {
        let spec = self.expect_kind(key, |kind| matches!(kind, Kind::Double { .. }));
        parse_decimal(self.text(spec)).unwrap_or_default()
    }

    /// Returns the value of a period in milliseconds, rounded up so that a period never becomes 0, and at most
    /// [`PERIOD_MAX_MS`].
    pub fn duration_ms(&self, key: &str) -> u64 {
        let spec = self.expect_kind(key, |kind| kind == Kind::Duration);
        let nanos = parse_duration(self.text(spec))
            .unwrap_or_default()
            .as_nanos();
        let ms = u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        ms.min(PERIOD_MAX_MS)
    }

    /// Returns the chosen word in the registry's spelling.
    pub fn choice(&self, key: &str) -> &'static str {
        let spec = self.expect_kind(key, |kind| matches!(kind, Kind::Choice(_)));
        match spec.kind {
            Kind::Choice(words) => find_word(words, self.text(spec)),
            _ => None,
        }
        .unwrap_or(spec.default.text())
    }

    /// Returns the text of any option, as written; its default if it is not set.
    pub fn str(&self, key: &str) -> &str {
        self.text(self.expect_kind(key, |_| true))
    }

    /// Returns true if the option string contains the option: it is set, or has a shown default.
    pub fn is_shown(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Returns the options for the configuration service: all but the hidden ones, sorted by name. Old names are not among
    /// them: as further variables of the server, their defaults could overrule the values of the new names.
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

    /// Returns the options that have no effect here and are set to another value than their default.
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

    /// Finds an option that the program's code names.
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
    /// Writes the option string as `options_get` returns it. Setting it again succeeds and changes nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values
            .iter()
            .try_for_each(|(key, value)| write!(f, "{key} = {}; ", syntax::escape(value)))
    }
}

#[cfg(test)]
mod tests;
