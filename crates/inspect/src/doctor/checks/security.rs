//! Checks of the encryption: who could listen to the group traffic, or join the group.

use crate::doctor::checks::options::is_on;
use crate::doctor::facts::{CRL, Facts, SecurityFile, list};
use crate::doctor::finding::Finding;
use crate::node::Node;
use trireme_node::url::is_loopback;
use trireme_tls::PRIVATE_REMEDY;

/// The remaining days of a certificate that give a warning, and those that are urgent.
const SOON_DAYS: i64 = 30;
const URGENT_DAYS: i64 = 7;
/// The same of a revocation list, which lasts for weeks, not for years.
const LIST_SOON_DAYS: i64 = 7;
const LIST_URGENT_DAYS: i64 = 2;

const PLAINTEXT: &str = "plaintext";

/// The protection of a node's group traffic.
fn protection(node: &Node) -> &'static str {
    match (node.option("repl.secret_file"), is_on(node, "socket.ssl")) {
        ("", false) => PLAINTEXT,
        ("", true) => "certificates",
        _ => "a secret",
    }
}

pub(crate) fn plaintext(facts: &Facts) -> Finding {
    let open = facts.those(|node| {
        let links = node.number("wsrep_trireme_plaintext_links").unwrap_or(0.0);
        let alone = is_loopback(node.option("base_host"));
        // A node without encryption and without peers accepts any caller next.
        (links > 0.0 || protection(node) == PLAINTEXT) && !alone
    });
    match open.is_empty() {
        true => Finding::ok("group traffic is encrypted, or stays on this machine"),
        false => Finding::warning(
            format!("group traffic without TLS: {}", list(&open)),
            "docs/security.md: three steps while the cluster runs, with certificates (socket.ssl) or a secret \
             (repl.secret_file); or a network that nobody else reaches",
        ),
    }
}

pub(crate) fn mixed_tls(facts: &Facts) -> Finding {
    match facts.differing(|node| protection(node).to_owned()) {
        None => facts.unless_silent("all nodes protect group traffic in the same way"),
        Some(values) => Finding::warning(
            format!("group traffic is protected in different ways: {values}"),
            "go on with the steps of docs/security.md: a node that restarts as it is may not be let in",
        ),
    }
}

pub(crate) fn both_accepted(facts: &Facts) -> Finding {
    let both = facts.those(|node| is_on(node, "socket.dynamic"));
    match both.is_empty() {
        true => Finding::ok("no node accepts plain TCP beside TLS"),
        false => Finding::warning(
            format!(
                "socket.dynamic is on, so plain TCP is accepted beside TLS: {}",
                list(&both)
            ),
            "SET GLOBAL wsrep_provider_options = 'socket.dynamic=no' once every node has socket.ssl=yes, or its repl.secret_file",
        ),
    }
}

pub(crate) fn expiry(facts: &Facts) -> Finding {
    ending(
        facts,
        |file| file.option != CRL,
        (SOON_DAYS, URGENT_DAYS),
        "no certificate expires within 30 days",
        "renew it, replace the file, then FLUSH SSL on each node (docs/security.md)",
    )
}

pub(crate) fn revocation(facts: &Facts) -> Finding {
    ending(
        facts,
        |file| file.option == CRL,
        (LIST_SOON_DAYS, LIST_URGENT_DAYS),
        "no revocation list ends within 7 days",
        "this node then refuses all peers of the list's authority: have the authority make a new list (openssl ca -gencrl), \
         replace the file, then FLUSH SSL on each node (docs/security.md)",
    )
}

/// Judges the files of one kind by the days until their first part ends: `(soon, urgent)`.
fn ending(
    facts: &Facts,
    is_of_kind: impl Fn(&SecurityFile) -> bool,
    (soon, urgent): (i64, i64),
    ok: &str,
    remedy: &str,
) -> Finding {
    let Some(host) = &facts.host else {
        return Finding::unknown("the node's files are not on this machine, or may not be read");
    };
    let of = |file: &SecurityFile| match file.days.as_ref()? {
        Ok(days) if *days < 0 => Some((*days, format!("{} has expired", file.file))),
        Ok(days) if *days < soon => Some((*days, format!("{} expires in {days} days", file.file))),
        Ok(_) => None,
        Err(reason) => Some((soon, format!("{}: {reason}", file.file))),
    };
    let files = host.security_files.iter().filter(|file| is_of_kind(file));
    let found: Vec<(i64, String)> = files.filter_map(of).collect();
    let texts: Vec<String> = found.iter().map(|(_, text)| text.clone()).collect();
    match found.iter().map(|(days, _)| *days).min() {
        None => Finding::ok(ok),
        Some(days) if days < urgent => Finding::failed(list(&texts), remedy),
        Some(_) => Finding::warning(list(&texts), remedy),
    }
}

pub(crate) fn key_mode(facts: &Facts) -> Finding {
    let Some(host) = &facts.host else {
        return Finding::unknown("the node's files are not on this machine, or may not be read");
    };
    let exposed = host.security_files.iter().filter_map(|file| {
        let mode = file.exposed.clone().ok().flatten()?;
        // The path comes last, because a long one is cut.
        Some(format!(
            "{} has mode {mode:04o}: {}",
            file.option, file.file
        ))
    });
    let exposed: Vec<String> = exposed.collect();
    let unread = host.security_files.iter().filter_map(|file| {
        let error = file.exposed.as_ref().err()?;
        Some(format!("{} ({error}): {}", file.option, file.file))
    });
    let unread: Vec<String> = unread.collect();
    match exposed.is_empty() {
        true if !unread.is_empty() => Finding::unknown(format!(
            "these files cannot be examined, so run it as root: {}",
            list(&unread)
        )),
        true => Finding::ok("others on this machine cannot read key or secret"),
        false => Finding::failed(
            format!(
                "other users of this machine may read the files that admit to the cluster: {}",
                list(&exposed)
            ),
            format!("{PRIVATE_REMEDY}; and make it anew, if others have had access"),
        ),
    }
}
