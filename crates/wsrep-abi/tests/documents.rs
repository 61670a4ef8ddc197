//! The documents hold together: what the code or a page cites exists, and docs/README.md lists every page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

/// The anchors of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if line.starts_with('#') && !is_code {
            found.insert(anchor(line.trim_start_matches('#')));
        }
    }
    found
}

/// What a comment cites: `docs/page.md`, `docs/page.md#section` or `page.md#section`. Section "": the page as a whole.
fn citations(text: &str) -> Vec<(String, String)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut found = Vec::new();
    for (at, _) in text.match_indices(".md") {
        let before = text[..at].rsplit(|c| !is_part(c) && c != '/').next();
        let name = before.unwrap_or_default();
        let section = text[at + 3..].strip_prefix('#').unwrap_or_default();
        let section: String = section.chars().take_while(|c| is_part(*c)).collect();
        let name = match name.strip_prefix("docs/") {
            Some(name) => name,
            None if section.is_empty() => continue,
            None => name,
        };
        found.push((format!("{name}.md"), section));
    }
    found
}

/// The targets of a page's links within the repository.
fn links(text: &str) -> Vec<&str> {
    let starts = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    let targets = starts.filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).collect()
}

/// Why a page, or its section, cannot be read; None if it can.
fn missing(page: &Path, section: &str) -> Option<String> {
    if section.is_empty() {
        return (!page.exists()).then(|| format!("{} does not exist", page.display()));
    }
    let text = fs::read_to_string(page).unwrap_or_default();
    let is_there = anchors(&text).contains(section);
    (!is_there).then(|| format!("{} has no section #{section}", page.display()))
}

#[test]
fn what_comments_cite_exists() {
    let mut sources = Vec::new();
    files(&root().join("crates"), "rs", &mut sources);
    sources.retain(|path| !path.ends_with("wsrep-abi/tests/documents.rs"));
    let mut count = 0;
    let mut faults = Vec::new();
    for source in sources {
        for (page, section) in citations(&fs::read_to_string(&source).unwrap()) {
            count += 1;
            let fault = missing(&root().join("docs").join(page), &section);
            faults.extend(fault.map(|fault| format!("{}: {fault}", source.display())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 100, "only {count} citations: is the search broken?");
}

#[test]
fn links_lead_somewhere() {
    let top = ["README.md", "ARCHITECTURE.md", "SECURITY.md"];
    let mut pages: Vec<PathBuf> = top.iter().map(|name| root().join(name)).collect();
    files(&root().join("docs"), "md", &mut pages);
    let mut faults = Vec::new();
    for page in pages {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            let (path, section) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.with_file_name(path),
            };
            let fault = missing(&target, section);
            faults.extend(fault.map(|fault| format!("{}: {fault}", page.display())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_is_in_the_index() {
    let docs = root().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).unwrap();
    let listed: BTreeSet<&str> = links(&index).into_iter().collect();
    for entry in fs::read_dir(&docs).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_listed = name == "README.md" || !name.ends_with(".md") || listed.contains(&*name);
        assert!(is_listed, "docs/README.md does not list {name}");
    }
}

#[test]
fn citations_links_and_anchors_are_read() {
    let text = "(server-contract.md#recv), docs/crash.md. suites/galera.md";
    let expected = [("server-contract.md", "recv"), ("crash.md", "")];
    let expected = expected.map(|(page, section)| (page.to_owned(), section.to_owned()));
    assert_eq!(citations(text), expected);
    let text = "[a](b.md#c), [d](https://example.com), [e](../f.md)";
    assert_eq!(links(text), ["b.md#c", "../f.md"]);
    let text = "# When `last_seen` is sampled\n```\n# code\n```\n## grastate.dat";
    let expected = ["grastatedat", "when-last_seen-is-sampled"];
    assert_eq!(anchors(text), expected.map(str::to_owned).into());
}
