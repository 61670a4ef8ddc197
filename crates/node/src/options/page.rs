//! Checks that docs/provider-options.md agrees with the registry.

use std::collections::BTreeMap;
use std::path::Path;

use super::Phase;
use super::registry::{SPECS, Spec};
use super::value::Kind;

/// Options with defaults that depend on the node.
const FROM_THE_NODE: [&str; 5] = [
    "base_dir",
    "base_host",
    "gcache.dir",
    "gmcast.listen_addr",
    "ist.recv_addr",
];

/// A row of the page.
#[derive(Debug)]
struct Row {
    default: String,
    value: String,
    when: String,
    /// Effect or remark.
    text: String,
    /// True if the row is in the section of options without an effect.
    without_effect: bool,
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/provider-options.md");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the rows by the option's name; panics if an option has two.
fn rows(page: &str) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    let mut without_effect = false;
    for line in page.lines() {
        without_effect |= line == "## Accepted, without an effect";
        if !line.starts_with("| `") {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, default, value, when, text, _galera] = cells[..] else {
            panic!("a row of {} cells in place of 6: {line}", cells.len());
        };
        let row = Row {
            default: default.to_owned(),
            value: value.to_owned(),
            when: when.to_owned(),
            text: text.to_lowercase(),
            without_effect,
        };
        let name = name.trim_matches('`').to_owned();
        assert!(!rows.contains_key(&name), "{name} has two rows");
        rows.insert(name, row);
    }
    rows
}

fn default_of(spec: &Spec) -> String {
    match spec.default.text() {
        _ if FROM_THE_NODE.contains(&spec.name) => "from the node".to_owned(),
        "" => "empty".to_owned(),
        text => format!("`{text}`"),
    }
}

/// Returns the text of the column "value" for a kind; None if the unit of the number is not in the registry.
fn value_of(kind: Kind) -> Option<String> {
    Some(match kind {
        Kind::Bool | Kind::BoolOrInt => "yes / no".to_owned(),
        Kind::Duration => "period".to_owned(),
        Kind::Str => "text".to_owned(),
        Kind::Address => "address".to_owned(),
        Kind::AutoOrSize => "`auto` or bytes".to_owned(),
        Kind::Double { min, max } => format!("{min} to {max}"),
        Kind::Choice(words) => format!("`{}`", words.join("`, `")),
        Kind::Int { max, .. } if max <= 255 => format!("0 to {max}"),
        Kind::Int { .. } => return None,
    })
}

fn when_of(until: Phase) -> &'static str {
    match until {
        Phase::Init => "start",
        Phase::Connect => "connect",
        Phase::Runtime => "run time",
    }
}

fn check(rows: &BTreeMap<String, Row>, spec: &Spec) {
    let name = spec.name;
    let row = rows.get(name);
    let row = row.unwrap_or_else(|| panic!("docs/provider-options.md has no row for {name}"));
    assert_eq!(row.default, default_of(spec), "default of {name}");
    assert_eq!(row.when, when_of(spec.until), "when {name} may be set");
    assert_eq!(row.without_effect, spec.without_effect, "section of {name}");
    match value_of(spec.kind) {
        Some(value) => assert_eq!(row.value, value, "values of {name}"),
        None => assert!(!row.value.is_empty(), "{name} has no unit"),
    }
    let marks = [
        (spec.deprecated, "deprecated"),
        (spec.hidden, "hidden"),
        (spec.trigger, "a command"),
        (spec.not_in_address, "not in the cluster address"),
    ];
    for (is, word) in marks {
        assert_eq!(is, row.text.contains(word), "'{word}' in the row of {name}");
    }
}

#[test]
fn every_option_is_on_the_page_as_it_is_in_the_registry() {
    let rows = rows(&page());
    SPECS.iter().for_each(|spec| check(&rows, spec));
    let is_unknown = |name: &&String| SPECS.iter().all(|spec| spec.name != name.as_str());
    let unknown: Vec<_> = rows.keys().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "no such option: {unknown:?}");
}

#[test]
#[should_panic(expected = "no row for base_dir")]
fn a_missing_option_is_noticed() {
    check(&rows("| option | default |"), &SPECS[0]);
}

#[test]
#[should_panic(expected = "default of base_port")]
fn another_default_is_noticed() {
    let port = SPECS.iter().find(|spec| spec.name == "base_port");
    let rows = rows("| `base_port` | `1` | TCP port | start | the port | the same |");
    check(&rows, port.unwrap());
}
