//! Every section of docs/server-contract*.md that the code or a document cites exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PREFIX: &str = "server-contract";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `dir` with this extension.
fn files(dir: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
}

/// The anchor that GitHub gives to a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    heading.trim().chars().filter_map(kept).collect()
}

/// The anchors of a page; None if there is no such page.
fn anchors(page: &Path) -> Option<BTreeSet<String>> {
    let text = fs::read_to_string(page).ok()?;
    let headings = text.lines().filter(|line| line.starts_with('#'));
    Some(
        headings
            .map(|line| anchor(line.trim_start_matches('#')))
            .collect(),
    )
}

/// The citations in a text: page and anchor ("" for a page as a whole).
fn citations(text: &str) -> Vec<(String, String)> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut found = Vec::new();
    for (at, _) in text.match_indices(PREFIX) {
        let rest = &text[at..];
        let name: String = rest.chars().take_while(|c| part(*c)).collect();
        let Some(rest) = rest[name.len()..].strip_prefix(".md") else {
            continue;
        };
        let section = rest.strip_prefix('#').unwrap_or("");
        let section: String = section.chars().take_while(|c| part(*c)).collect();
        found.push((format!("{name}.md"), section));
    }
    found
}

#[test]
fn every_cited_section_exists() {
    let mut sources = Vec::new();
    files(&root().join("crates"), "rs", &mut sources);
    files(&root().join("docs"), "md", &mut sources);
    sources.retain(|path| !path.ends_with("wsrep-abi/tests/citations.rs"));
    let mut count = 0;
    for source in sources {
        let text = fs::read_to_string(&source).unwrap();
        for (page, section) in citations(&text) {
            let known = anchors(&root().join("docs").join(&page));
            let known = known.unwrap_or_else(|| panic!("{}: no page {page}", source.display()));
            let exists = section.is_empty() || known.contains(&section);
            assert!(exists, "{}: no section {page}#{section}", source.display());
            count += 1;
        }
    }
    assert!(count > 60, "only {count} citations: is the search broken?");
}

#[test]
fn citations_and_anchors_are_read() {
    let text = "(server-contract.md#recv). docs/server-contract-traps.md, server-contracts";
    let expected = [
        ("server-contract.md", "recv"),
        ("server-contract-traps.md", ""),
    ];
    let expected = expected.map(|(page, section)| (page.to_owned(), section.to_owned()));
    assert_eq!(citations(text), expected);
    let heading = " When last_seen is sampled";
    assert_eq!(anchor(heading), "when-last_seen-is-sampled");
    assert_eq!(anchor(" grastate.dat"), "grastatedat");
}
