//! Asks one node through SQL, learns the other members' addresses from it, and asks all of them at once. The answers,
//! or the reasons for none, go to the reports. Only the first node must answer.

use std::thread;
use std::time::Duration;

use trireme_agent::{Database, Endpoint, Login};

use crate::MAX_MEMBERS;
use crate::address;
use crate::node::Node;
use crate::refusal::Refusal;

/// The time limit for each step of an answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A member, and its answer.
pub(crate) struct Member {
    /// The address that was asked.
    pub(crate) endpoint: Endpoint,
    /// Its variables, or the reason why there are none.
    pub(crate) answer: Result<Node, Refusal>,
}

/// The answers of all members of a cluster, at about the same time.
pub struct Survey {
    members: Vec<Member>,
    /// The index of the member that was asked first.
    first: usize,
    without_address: usize,
    left_off: usize,
}

impl Survey {
    /// Asks the server that `login` names, and then the members that it knows, as the same user. Fails if the first
    /// server does not answer. Another member that does not answer is reported as silent.
    pub fn take(login: &Login) -> Result<Self, Refusal> {
        let first = ask(login)?;
        let places = Places::of(&first);
        let endpoints = places.others();
        let left_off = endpoints.len().saturating_sub(MAX_MEMBERS);
        let others: Vec<(usize, Member)> = thread::scope(|scope| {
            let asked: Vec<_> = (endpoints.into_iter().take(MAX_MEMBERS))
                .map(|(place, endpoint)| {
                    let login = Login {
                        endpoint: endpoint.clone(),
                        ..login.clone()
                    };
                    (place, endpoint, scope.spawn(move || ask(&login)))
                })
                .collect();
            let answers = asked.into_iter().map(|(place, endpoint, answer)| {
                // A panic of that thread becomes a panic here.
                let answer = answer
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                (place, Member { endpoint, answer })
            });
            answers.collect()
        });
        let endpoint = login.endpoint.clone();
        Ok(Self {
            left_off,
            ..places.filled(endpoint, first, others)
        })
    }

    #[cfg(test)]
    pub(crate) fn of(members: Vec<Member>, without_address: usize) -> Self {
        Self {
            members,
            first: 0,
            without_address,
            left_off: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn with_first(members: Vec<Member>, first: usize) -> Self {
        Self {
            first,
            ..Self::of(members, 0)
        }
    }

    /// All members that have an address for clients, and the asked node, in the order of the view.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The node that was asked first.
    pub(crate) fn first(&self) -> Option<&Node> {
        self.members.get(self.first)?.answer.as_ref().ok()
    }

    /// The node that was asked first, if it runs on this machine.
    pub(crate) fn first_here(&self) -> Option<&Node> {
        let member = self.members.get(self.first)?;
        let node = member.answer.as_ref().ok()?;
        address::is_here(&member.endpoint).then_some(node)
    }

    /// The nodes that answered.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.members
            .iter()
            .filter_map(|member| member.answer.as_ref().ok())
    }

    /// The members that did not answer, with the reason.
    pub(crate) fn silent(&self) -> impl Iterator<Item = (&Endpoint, &Refusal)> {
        self.members
            .iter()
            .filter_map(|member| Some((&member.endpoint, member.answer.as_ref().err()?)))
    }

    /// The number of other members in the view without an address for clients: arbitrators, and servers that listen on
    /// loopback only, for which MariaDB leaves its place empty.
    pub(crate) fn without_address(&self) -> usize {
        self.without_address
    }

    /// The number of members beyond [`MAX_MEMBERS`], which were not asked.
    pub(crate) fn left_off(&self) -> usize {
        self.left_off
    }
}

/// The places of a view: the addresses of its members for clients.
#[derive(Debug, PartialEq, Eq)]
struct Places {
    /// The place of the node that tells them, if it is known.
    own: Option<usize>,
    endpoints: Vec<Option<Endpoint>>,
}

impl Places {
    /// Reads what a node tells. Without a view there is no place.
    ///
    /// Outside the primary component the addresses are still those of the last primary view, but the index is that in
    /// the view of now. The node's place is then that of its own address, or else a place without an address.
    fn of(node: &Node) -> Self {
        let incoming = node.status("wsrep_incoming_addresses");
        let mut endpoints: Vec<Option<Endpoint>> = match incoming {
            "" => Vec::new(),
            _ => incoming.split(',').map(address::endpoint).collect(),
        };
        let own = match node.is_primary() {
            true => {
                let index = node.whole("wsrep_local_index");
                let own = index.and_then(|own| usize::try_from(own).ok());
                own.filter(|own| *own < endpoints.len())
            }
            false => {
                let address = node.client_address();
                let at =
                    |wanted: Option<Endpoint>| endpoints.iter().position(|place| *place == wanted);
                address.and_then(|own| at(Some(own))).or_else(|| at(None))
            }
        };
        if node.is_primary() && own.is_none() {
            endpoints.clear();
        }
        Self { own, endpoints }
    }

    /// The addresses of the other members, with their places.
    fn others(&self) -> Vec<(usize, Endpoint)> {
        let places = self.endpoints.iter().cloned().enumerate();
        let others = places.filter(|(place, _)| Some(*place) != self.own);
        others
            .filter_map(|(place, endpoint)| Some((place, endpoint?)))
            .collect()
    }

    /// Puts the answers into their places. If the asked node answers at one of the others' addresses, too, that is its
    /// place.
    fn filled(mut self, endpoint: Endpoint, first: Node, others: Vec<(usize, Member)>) -> Survey {
        let mut members = Vec::new();
        for (place, member) in others {
            match &member.answer {
                Ok(node) if !first.is_primary() && first.is_same(node) => self.own = Some(place),
                _ => members.push((place, member)),
            }
        }
        let own = self.own.unwrap_or(0);
        let first_at = members.iter().filter(|(place, _)| *place < own).count();
        let mut members: Vec<Member> = members.into_iter().map(|(_, member)| member).collect();
        let answer = Ok(first);
        members.insert(first_at, Member { endpoint, answer });
        Survey {
            members,
            first: first_at,
            without_address: self.without_address(),
            left_off: 0,
        }
    }

    /// The number of other members without an address.
    fn without_address(&self) -> usize {
        let places = self.endpoints.iter().enumerate();
        let others = places.filter(|(place, _)| Some(*place) != self.own);
        others.filter(|(_, endpoint)| endpoint.is_none()).count()
    }
}

fn ask(login: &Login) -> Result<Node, Refusal> {
    let sample = Database::new(login.clone(), TIMEOUT).whole_sample()?;
    let node = Node::new(sample);
    let endpoint = login.endpoint.to_string();
    match node.status("wsrep_provider_name") {
        crate::node::TRIREME => Ok(node),
        "" => Err(Refusal::Alone { endpoint }),
        other => Err(Refusal::Foreign {
            endpoint,
            provider: format!("{other} {}", node.status("wsrep_provider_version")),
        }),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::node::testing::node;

    /// MariaDB leaves the place empty with bind-address=127.0.0.1, which Debian sets.
    #[test]
    fn the_own_place_is_no_arbitrators() {
        let of = |incoming: &str, own: &str| {
            let told = [
                ("wsrep_incoming_addresses", incoming),
                ("wsrep_local_index", own),
            ];
            Places::of(&node("node1", &told)).without_address()
        };
        assert_eq!(of(",,", "0"), 2);
        assert_eq!(of(",192.0.2.2:3306,", "2"), 1);
        assert_eq!(of("192.0.2.1:3306,192.0.2.2:3306,", "0"), 1);
        assert_eq!(of("", "0"), 0);
        assert_eq!(of(",,", "-1"), 0);
    }

    fn tcp(host: &str) -> Endpoint {
        let host = host.to_owned();
        Endpoint::Tcp { host, port: 3306 }
    }

    /// A node outside the primary component, whose index is that in its view of one.
    fn cut_off(changes: &[(&str, &str)]) -> Node {
        let told = [
            ("wsrep_cluster_status", "non-Primary"),
            ("wsrep_local_index", "0"),
            ("wsrep_gcomm_uuid", "uuid3"),
            ("@port", "3306"),
        ];
        let all: Vec<_> = told.iter().chain(changes).copied().collect();
        node("node3", &all)
    }

    fn names(survey: &Survey) -> Vec<&str> {
        survey.nodes().map(Node::name).collect()
    }

    /// The answers of the others at their addresses; at the third one the asked node itself answers.
    fn answers(places: &Places) -> Vec<(usize, Member)> {
        let answer = |place: usize| match place {
            0 => node("node1", &[("wsrep_gcomm_uuid", "uuid1")]),
            1 => node("node2", &[("wsrep_gcomm_uuid", "uuid2")]),
            _ => cut_off(&[]),
        };
        let others = places.others().into_iter().map(|(place, endpoint)| {
            let answer = Ok(answer(place));
            (place, Member { endpoint, answer })
        });
        others.collect()
    }

    #[test]
    fn a_node_that_is_cut_off_takes_no_other_for_itself() {
        // By its own address, or else by its answer.
        let elsewhere = [("base_host", "10.0.0.3"), ("@hostname", "db3")];
        let told = [
            ("@wsrep_node_incoming_address", "192.0.2.3:3306"),
            elsewhere[0],
        ];
        for (changes, own) in [
            (&[][..], Some(2)),
            (&told[..], Some(2)),
            (&elsewhere[..], None),
        ] {
            let first = cut_off(changes);
            let places = Places::of(&first);
            assert_eq!(places.own, own, "{changes:?}");
            let others = answers(&places);
            let socket = Endpoint::Socket("/s".into());
            let survey = places.filled(socket.clone(), first, others);
            assert_eq!(names(&survey), ["node1", "node2", "node3"], "{changes:?}");
            assert_eq!(survey.members()[2].endpoint, socket);
            assert_eq!(survey.first().map(Node::name), Some("node3"));
            assert_eq!(survey.without_address(), 0);
        }
    }

    #[test]
    fn a_primary_node_knows_its_place() {
        let first = node("node2", &[]);
        let places = Places::of(&first);
        let asked: Vec<_> = places.others().into_iter().map(|(_, at)| at).collect();
        assert_eq!(asked, [tcp("192.0.2.1"), tcp("192.0.2.3")]);
        let others = answers(&places);
        let survey = places.filled(Endpoint::Socket("/s".into()), first, others);
        assert_eq!(names(&survey), ["node1", "node2", "node3"]);
    }

    #[test]
    fn a_node_that_is_cut_off_and_has_no_address_takes_an_empty_place() {
        let alone = [("wsrep_incoming_addresses", "192.0.2.1:3306,192.0.2.2:3306,")];
        let places = Places::of(&cut_off(&alone));
        assert_eq!((places.own, places.without_address()), (Some(2), 0));
        assert_eq!(places.others().len(), 2);
    }

    /// A member that has said this, at its port of MariaDB.
    pub(crate) fn member(node: Node) -> Member {
        let (host, port) = (node.option("base_host").to_owned(), 3306);
        Member {
            endpoint: Endpoint::Tcp { host, port },
            answer: Ok(node),
        }
    }
}
