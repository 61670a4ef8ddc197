//! Finds configured members that are absent. Pure.

use trireme_agent::Endpoint;

use crate::address;
use crate::survey::{Member, Survey};

/// The group addresses in `wsrep_cluster_address` that belong to no node of the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absent {
    /// IP addresses, of more members than the view has under an unknown address: some of these are missing.
    pub(crate) missing: Vec<String>,
    /// Addresses that may be those of members whose address is unknown, and names: nothing here looks names up.
    pub(crate) doubtful: Vec<String>,
    /// The number of members that the list does not name by the address that they tell. Some of the above may be
    /// theirs.
    pub(crate) others: usize,
}

/// Finds the absent members, as far as is known.
pub(crate) fn absent(survey: &Survey) -> Absent {
    let Some(first) = survey.first() else {
        return Absent::default();
    };
    let mut named = first.named();
    named.sort();
    named.dedup();
    let in_view = first.is_primary();
    let mut others = survey.left_off();
    for member in survey.members() {
        if in_view && (member.answer.as_ref()).is_ok_and(|node| !node.is_primary()) {
            continue;
        }
        match named.iter().position(|address| is_of(address, member)) {
            Some(at) => drop(named.remove(at)),
            None => others += 1,
        }
    }
    let is_name = |address: &String| {
        address::split(address, 0).is_some_and(|(host, _)| address::is_name(&host))
    };
    let (names, addresses): (Vec<String>, Vec<String>) = named.into_iter().partition(is_name);
    let unmatched = names.len() + addresses.len();
    // Each of the other members goes by one of the names.
    let doubtful_names = if names.len() <= others {
        Vec::new()
    } else {
        names.clone()
    };
    let (missing, doubtful) = match unmatched {
        n if n <= others => (Vec::new(), addresses),
        n if n <= others + survey.without_address() => (Vec::new(), [addresses, names].concat()),
        _ => (addresses, doubtful_names),
    };
    let others = if missing.is_empty() && doubtful.is_empty() {
        0
    } else {
        others
    };
    Absent {
        missing,
        doubtful,
        others,
    }
}

/// Whether a member goes by this group address.
fn is_of(address: &str, member: &Member) -> bool {
    let Some((host, port)) = address::split(address, 0) else {
        return false;
    };
    match (&member.answer, &member.endpoint) {
        (Ok(node), _) => {
            let Some(own) = node.group_address() else {
                return false;
            };
            let has_port = address::split(&own, 0).is_some_and(|(_, own)| own == port);
            own == address || has_port && is_host_name(&host, node.variable("hostname"))
        }
        // Of a member that did not answer, only the host is known.
        (Err(_), Endpoint::Tcp { host: own, .. }) => address::canonical(own) == host,
        (Err(_), Endpoint::Socket(_)) => false,
    }
}

/// Whether a host is this machine's name. Either may lack the domain.
fn is_host_name(host: &str, own: &str) -> bool {
    let own = own.to_lowercase();
    let is_short = |name: &str| !name.contains('.');
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let is_alike = (is_short(host) || is_short(&own)) && first(host) == first(&own);
    address::is_name(host) && !own.is_empty() && (host == own || is_alike)
}

/// The clause that goes with a number of absent addresses: `others` members go by an unknown address, and `without`
/// tell none.
pub(crate) fn unless(addresses: usize, others: usize, without: usize) -> &'static str {
    match (addresses, others, without) {
        (_, 0, 0) => "",
        (1, 0, _) => ", unless it is the arbitrator or listens for clients on loopback only",
        (_, 0, _) => ", except arbitrators and servers that listen for clients on loopback only",
        (1, ..) => ", unless it is a member under another address",
        _ => ", except members under another address",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::node;
    use crate::refusal::Refusal;
    use crate::survey::testing::member;

    fn of_three(cluster_address: &str, changes: &[(&str, &str)]) -> Survey {
        let names = ["node1", "node2", "node3"];
        let address = [("@wsrep_cluster_address", cluster_address)];
        let changes: Vec<_> = address.iter().chain(changes).copied().collect();
        Survey::of(names.map(|name| member(node(name, &changes))).into(), 0)
    }

    /// A name says nothing of the address that its node tells.
    #[test]
    fn host_names_of_a_healthy_cluster_are_not_missing() {
        let found = absent(&of_three("gcomm://db1,db2,db3", &[]));
        assert_eq!(found, Absent::default());
    }

    #[test]
    fn a_missing_name_is_doubtful() {
        let names = [("@wsrep_cluster_address", "gcomm://db1,db2,db3")];
        let two = |names: [&[(&str, &str)]; 2]| {
            let nodes = [node("node1", names[0]), node("node2", names[1])];
            absent(&Survey::of(nodes.map(member).into(), 0))
        };
        let found = two([&names, &names]);
        assert_eq!(found.missing, Vec::<String>::new());
        assert_eq!(found.doubtful, ["db1:4567", "db2:4567", "db3:4567"]);
        let clause = unless(3, found.others, 0);
        assert_eq!(clause, ", except members under another address");
        // The servers' own names leave one.
        let named = |name| [names[0], ("@hostname", name)];
        let found = two([&named("db1"), &named("DB2.example.org")]);
        assert_eq!((found.missing, found.others), (Vec::new(), 0));
        assert_eq!(found.doubtful, ["db3:4567"]);
    }

    #[test]
    fn one_address_has_several_spellings() {
        let spelled = "gcomm://192.0.2.1,192.0.2.2,[2001:DB8:0:0::3]:04567";
        let nodes = [
            node("node1", &[("@wsrep_cluster_address", spelled)]),
            node("node2", &[]),
            node("node3", &[("base_host", "[2001:db8::3]")]),
        ];
        let found = absent(&Survey::of(nodes.map(member).into(), 0));
        assert_eq!(found, Absent::default());
    }

    #[test]
    fn a_node_that_listens_at_another_port_is_there() {
        let other = "gcomm://192.0.2.1:5555,192.0.2.2:5555,192.0.2.3:5555";
        let listen = [("gmcast.listen_addr", "tcp://0.0.0.0:5555")];
        assert_eq!(absent(&of_three(other, &listen)), Absent::default());
        // An address without a port means base_port.
        let all = "gcomm://192.0.2.1,192.0.2.2,192.0.2.3";
        let base = [("base_port", "4600")];
        assert_eq!(absent(&of_three(all, &base)), Absent::default());
    }

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
