//! Finds configured members that are absent. Pure.

use crate::address;
use crate::node::Node;
use crate::survey::Survey;

/// The group addresses in `wsrep_cluster_address` that belong to no member of the view, as far as is known.
pub(crate) fn missing(survey: &Survey) -> Vec<String> {
    let Some(first) = survey.nodes().next() else {
        return Vec::new();
    };
    let mut named = address::named(first.variable("wsrep_cluster_address"));
    named.sort();
    named.dedup();
    let in_view = first.is_primary();
    let there: Vec<String> = survey
        .nodes()
        .filter(|node| node.is_primary() || !in_view)
        .filter_map(Node::group_address)
        .collect();
    named.retain(|address| !there.contains(address));
    // Of members that did not answer, only the host is known.
    for (endpoint, _) in survey.silent() {
        if let trireme_agent::Endpoint::Tcp { host, .. } = endpoint {
            let is_there =
                |named: &String| address::split(named, 0).is_some_and(|(name, _)| name == *host);
            if let Some(at) = named.iter().position(is_there) {
                named.remove(at);
            }
        }
    }
    match named.len() <= survey.without_database() {
        true => Vec::new(),
        false => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::node;
    use crate::refusal::Refusal;
    use crate::survey::Member;
    use crate::survey::testing::member;
    use trireme_agent::Endpoint;

    #[test]
    fn a_member_that_is_named_and_not_there_is_missing() {
        let two = || vec![member(node("node1", &[])), member(node("node2", &[]))];
        assert_eq!(missing(&Survey::of(two(), 0)), ["192.0.2.3:4567"]);
        // It may be the arbitrator.
        assert!(missing(&Survey::of(two(), 1)).is_empty());
        let mut silent = two();
        silent.push(Member {
            endpoint: Endpoint::Tcp {
                host: "192.0.2.3".to_owned(),
                port: 3306,
            },
            answer: Err(Refusal::Alone {
                endpoint: String::new(),
            }),
        });
        assert!(missing(&Survey::of(silent, 0)).is_empty());
    }
}
