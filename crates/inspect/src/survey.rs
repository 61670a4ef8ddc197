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
        let own = places.own;
        let without_address = places.without_address();
        let endpoints: Vec<(usize, Endpoint)> = (places.endpoints.into_iter().enumerate())
            .filter_map(|(i, endpoint)| Some((i, endpoint?)))
            .collect();
        let left_off = endpoints.len().saturating_sub(MAX_MEMBERS);
        let mut members: Vec<Member> = thread::scope(|scope| {
            let asked: Vec<_> = (endpoints.into_iter().take(MAX_MEMBERS))
                .filter(|(i, _)| Some(*i) != own)
                .map(|(_, endpoint)| {
                    let login = Login {
                        endpoint: endpoint.clone(),
                        ..login.clone()
                    };
                    (endpoint, scope.spawn(move || ask(&login)))
                })
                .collect();
            let answers = asked.into_iter().map(|(endpoint, answer)| Member {
                endpoint,
                // A panic of that thread becomes a panic here.
                answer: answer
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            });
            answers.collect()
        });
        let place = own.unwrap_or(0).min(members.len());
        members.insert(
            place,
            Member {
                endpoint: login.endpoint.clone(),
                answer: Ok(first),
            },
        );
        Ok(Self {
            members,
            first: place,
            without_address,
            left_off,
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

    /// All members with a database, in the order of the view.
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
    /// The place of the node that tells them.
    own: Option<usize>,
    endpoints: Vec<Option<Endpoint>>,
}

impl Places {
    /// Reads what a node tells. Without a view there is no place.
    fn of(node: &Node) -> Self {
        let incoming = node.status("wsrep_incoming_addresses");
        let entries: Vec<&str> = incoming.split(',').collect();
        let own = (node.whole("wsrep_local_index")).and_then(|own| usize::try_from(own).ok());
        match own.filter(|own| !incoming.is_empty() && *own < entries.len()) {
            None => Self {
                own: None,
                endpoints: Vec::new(),
            },
            own => Self {
                own,
                endpoints: entries.into_iter().map(address::endpoint).collect(),
            },
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

    /// A member that has said this, at its port of MariaDB.
    pub(crate) fn member(node: Node) -> Member {
        let (host, port) = (node.option("base_host").to_owned(), 3306);
        Member {
            endpoint: Endpoint::Tcp { host, port },
            answer: Ok(node),
        }
    }
}
