//! Clusters whose members trust each other, and others whose members do not.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;

/// The protection of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Tls,
}

/// The members and their links.
struct World {
    /// Their settings; the names are node0, node1, ...
    states: Vec<State>,
    /// Pairs, the lower number first, that do not trust each other.
    distrust: Vec<(usize, usize)>,
    links: Vec<Vec<Option<Kind>>>,
}

impl World {
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let size = self.states.len();
        (0..size).flat_map(move |a| (a + 1..size).map(move |b| (a, b)))
    }

    fn permits(&self, node: usize, kind: Kind) -> bool {
        let state = &self.states[node];
        match kind {
            Kind::Tls => state.dials_tls || state.accepts_both && state.has_files,
            Kind::Plain => !state.dials_tls || state.accepts_both,
        }
    }

    /// The link of a new call, if the callee accepts it.
    fn call(&self, from: usize, to: usize) -> Option<Kind> {
        let kind = match self.states[from].dials_tls {
            true => Kind::Tls,
            false => Kind::Plain,
        };
        let trusts = !self.distrust.contains(&(from.min(to), from.max(to)));
        (self.permits(to, kind) && (trusts || kind == Kind::Plain)).then_some(kind)
    }

    /// Drops the links that the settings forbid, and calls each member that is not connected.
    fn renew_links(&mut self) {
        for (a, b) in self.pairs() {
            let kept =
                self.links[a][b].filter(|kind| self.permits(a, *kind) && self.permits(b, *kind));
            self.links[a][b] = kept.or_else(|| self.call(a, b)).or_else(|| self.call(b, a));
        }
    }

    fn links_of(&self, node: usize, kind: Option<Kind>) -> usize {
        let mine = self.pairs().filter(|(a, b)| *a == node || *b == node);
        let found = mine.filter_map(|(a, b)| self.links[a][b]);
        found
            .filter(|one| kind.is_none_or(|kind| *one == kind))
            .count()
    }
}

struct Member {
    at: usize,
    endpoint: Endpoint,
    world: Rc<RefCell<World>>,
}

impl Node for Member {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn state(&mut self) -> Result<State, ChangeOverError> {
        let world = self.world.borrow();
        let state = world.states[self.at].clone();
        Ok(State {
            plaintext_links: world.links_of(self.at, Some(Kind::Plain)),
            member_links: state.member_links.and(Some(world.links_of(self.at, None))),
            ..state
        })
    }

    fn set_options(&mut self, options: &str) -> Result<(), DatabaseError> {
        let mut world = self.world.borrow_mut();
        let state = &mut world.states[self.at];
        for (name, value) in options.split(';').filter_map(|pair| pair.split_once('=')) {
            let is_on = value == "yes";
            match name {
                "socket.ssl" => state.dials_tls = is_on,
                "socket.dynamic" => state.accepts_both = is_on,
                "repl.require_encryption" => state.is_required = is_on,
                _ => state.has_files = true,
            }
        }
        world.renew_links();
        Ok(())
    }

    fn reach_others(&mut self) -> Result<(), ChangeOverError> {
        Ok(())
    }
}

/// A cluster in plaintext; its first node is the leader.
fn cluster(size: usize, distrust: &[(usize, usize)]) -> (Rc<RefCell<World>>, Vec<Member>) {
    let state = |at: usize| State {
        name: format!("node{at}"),
        provider: "Trireme".into(),
        member: format!("member{at}"),
        history: "history".into(),
        size,
        is_synced: true,
        is_leader: at == 0,
        member_links: Some(0),
        ..State::default()
    };
    let mut world = World {
        states: (0..size).map(state).collect(),
        distrust: distrust.to_vec(),
        links: vec![vec![None; size]; size],
    };
    world.renew_links();
    let world = Rc::new(RefCell::new(world));
    let member = |at| Member {
        at,
        endpoint: parse_endpoint(&format!("node{at}")).unwrap(),
        world: Rc::clone(&world),
    };
    let members = (0..size).map(member).collect();
    (world, members)
}

fn enable(nodes: &mut [Member], others: usize) -> Result<bool, ChangeOverError> {
    let login = |node: &Member| Login {
        endpoint: node.endpoint.clone(),
        user: "root".into(),
        password: None,
    };
    let change = ChangeOver {
        servers: nodes.iter().map(login).collect(),
        others,
        files: Files {
            cert: "/cert.pem".into(),
            key: "/key.pem".into(),
            ..Files::default()
        },
        until: Phase::RefusePlaintext,
        timeout: Duration::from_millis(150),
    };
    take_steps(nodes, &change, |_| {})
}

/// How many links of each kind there are in the cluster, in plaintext and with TLS.
fn links(world: &RefCell<World>) -> (usize, usize) {
    let world = world.borrow();
    let of = |kind| {
        let found = world.pairs().map(|(a, b)| world.links[a][b]);
        found.filter(|link| *link == Some(kind)).count()
    };
    (of(Kind::Plain), of(Kind::Tls))
}

#[test]
fn members_that_trust_each_other_end_with_encrypted_links() {
    let (world, mut nodes) = cluster(3, &[]);
    assert_eq!(links(&world), (3, 0));
    assert!(enable(&mut nodes, 0).unwrap());
    assert_eq!(links(&world), (0, 3));
    assert!(!enable(&mut nodes, 0).unwrap(), "nothing is left to do");
}

#[test]
fn two_members_that_do_not_trust_each_other_stay_connected_in_plaintext() {
    let (world, mut nodes) = cluster(2, &[(0, 1)]);
    let error = enable(&mut nodes, 0).unwrap_err().to_string();
    for words in [
        "node0 has 0 of 1 links",
        "node1 has 0 of 1 links",
        "trireme tls check --peer",
    ] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(links(&world), (1, 0));
    // With the right files the next run completes the change.
    world.borrow_mut().distrust.clear();
    assert!(enable(&mut nodes, 0).unwrap());
    assert_eq!(links(&world), (0, 1));
}

#[test]
fn followers_that_do_not_trust_each_other_stay_connected_in_plaintext() {
    let (world, mut nodes) = cluster(3, &[(1, 2)]);
    let error = enable(&mut nodes, 0).unwrap_err().to_string();
    assert!(
        error.contains("node1 has 1 of 2") && error.contains("node2 has 1 of 2"),
        "{error}"
    );
    assert!(!error.contains("node0 has"), "{error}");
    // The leader has renewed no link yet.
    assert_eq!(links(&world), (2, 1));
}

#[test]
fn an_arbitrator_that_is_not_trusted_is_found_by_the_servers() {
    let (world, mut nodes) = cluster(3, &[(1, 2)]);
    // The last member has no SQL. It runs with TLS, and accepts both.
    nodes.pop();
    let arbitrator = State {
        dials_tls: true,
        accepts_both: true,
        has_files: true,
        ..world.borrow().states[2].clone()
    };
    world.borrow_mut().states[2] = arbitrator;
    let error = enable(&mut nodes, 1).unwrap_err().to_string();
    assert!(
        error.contains("node1 has 1 of 2") && !error.contains("node0 has"),
        "{error}"
    );
    assert_eq!(world.borrow().links_of(1, None), 2);
}

#[test]
fn a_broken_mesh_is_no_success() {
    let (world, mut nodes) = cluster(3, &[]);
    enable(&mut nodes, 0).unwrap();
    world.borrow_mut().links[1][2] = None;
    let error = enable(&mut nodes, 0).unwrap_err().to_string();
    assert!(
        error.contains("node1 is connected with 1 of 2 other members"),
        "{error}"
    );
}

#[test]
fn a_node_that_counts_no_links_is_to_be_upgraded() {
    let (world, mut nodes) = cluster(2, &[]);
    world.borrow_mut().states[1].member_links = None;
    let error = enable(&mut nodes, 0).unwrap_err().to_string();
    assert!(
        error.contains("node1") && error.contains("upgrade it"),
        "{error}"
    );
    assert_eq!(links(&world), (1, 0), "nothing has begun");
}
