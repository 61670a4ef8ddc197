//! Finds configured members that are absent. Pure.

use crate::address;
use crate::node::Node;
use crate::survey::Survey;

/// The group addresses in `wsrep_cluster_address` that belong to no node of the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absent {
    /// More addresses than the view has arbitrators: some of their members are missing.
    pub(crate) missing: Vec<String>,
    /// At most as many addresses as arbitrators, whose addresses no node tells: perhaps these.
    pub(crate) doubtful: Vec<String>,
}

/// Finds the absent members, as far as is known.
pub(crate) fn absent(survey: &Survey) -> Absent {
    let Some(first) = survey.nodes().next() else {
        return Absent::default();
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
    let (missing, doubtful) = match named.len() <= survey.without_database() {
        true => (Vec::new(), named),
        false => (named, Vec::new()),
    };
    Absent { missing, doubtful }
}

/// The clause that goes with a number of absent addresses, if the view has arbitrators.
pub(crate) fn unless_arbitrators(addresses: usize, arbitrators: usize) -> &'static str {
    match (addresses, arbitrators) {
        (_, 0) => "",
        (1, _) => ", unless it is the arbitrator",
        _ => ", except arbitrators",
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
        let third = || vec!["192.0.2.3:4567".to_owned()];
        let found = absent(&Survey::of(two(), 0));
        assert_eq!((found.missing, found.doubtful), (third(), Vec::new()));
        // It may be the arbitrator.
        let found = absent(&Survey::of(two(), 1));
        assert_eq!((found.missing, found.doubtful), (Vec::new(), third()));
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
        assert_eq!(absent(&Survey::of(silent, 0)), Absent::default());
    }
}
