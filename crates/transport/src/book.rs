//! The addresses to call, with the time of the next call to each. In: addresses from the configuration and from peers,
//! and the results of calls. Out: the calls that are due.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use crate::{HostPort, PeerId};

/// Maximum of learnt addresses; beyond it, the address that has failed for longest gives way.
const MAX_LEARNT: usize = 256;
/// Time without an answer after which a learnt address is called at the slow pace.
const SLOW_AFTER_MS: u64 = 60_000;

/// The pauses between calls to one address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub min_ms: u64,
    pub max_ms: u64,
    pub slow_ms: u64,
}

/// The addresses of `gcomm://` and those learnt from peers.
///
/// An address is called as long as the peer known to be there is not connected. So an address that a peer advertised is
/// called once even though the peer has connected by itself. After that call, a later "connection refused" proves the
/// death of that peer, and not a wrong address.
#[derive(Debug)]
pub(crate) struct AddressBook {
    targets: BTreeMap<HostPort, Target>,
    pace: Pace,
}

#[derive(Debug)]
struct Target {
    seed: bool,
    /// This node itself was the last to answer, and no other node is expected there.
    oneself: bool,
    /// The peer that answered the last successful call.
    peer: Option<PeerId>,
    next_call_ms: u64,
    /// The last pause; 0 after a success.
    pause_ms: u64,
    failing_since_ms: Option<u64>,
    /// The peer there and this node have refused each other: gossip about the address does not speed up the next call.
    unwanted: bool,
    call: Call,
}

#[derive(Debug)]
enum Call {
    Idle,
    Resolving,
    /// A connection is being opened; `rest` are the addresses of the name that were not tried yet, last first.
    Dialing {
        rest: Vec<SocketAddr>,
        all_refused: bool,
        /// The name stands for several nodes, not for one node with an address of each family.
        several: bool,
    },
    /// The address is this node's own IP address: never called again.
    Never,
}

/// The step after a failed connection attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Try the next address of the same name.
    Next(SocketAddr),
    /// Every address of the name refused the connection. Holds the peer that was reached there before, if any.
    Refused(Option<PeerId>),
    /// Wait.
    Pause,
}

impl AddressBook {
    pub fn new(pace: Pace) -> Self {
        Self {
            targets: BTreeMap::new(),
            pace,
        }
    }

    /// Adds an address, or ends the pause of a known one.
    pub fn add(&mut self, address: HostPort, seed: bool, now_ms: u64) {
        if let Some(target) = self.targets.get_mut(&address) {
            target.seed |= seed;
            // The length of the pauses stays: a connection that breaks as soon as it is established leads here, too.
            if !target.unwanted {
                target.next_call_ms = now_ms;
            }
            return;
        }
        if !seed && self.targets.values().filter(|t| !t.seed).count() >= MAX_LEARNT {
            let failing = self
                .targets
                .iter()
                .filter(|(_, t)| !t.seed && matches!(t.call, Call::Idle));
            let failing = failing.filter_map(|(address, t)| {
                t.failing_since_ms.map(|since| (since, address.clone()))
            });
            match failing.min() {
                Some((_, oldest)) => self.targets.remove(&oldest),
                None => return,
            };
        }
        let target = Target {
            seed,
            oneself: false,
            peer: None,
            next_call_ms: now_ms,
            pause_ms: 0,
            failing_since_ms: None,
            unwanted: false,
            call: Call::Idle,
        };
        self.targets.insert(address, target);
    }

    /// Forgets a learnt address.
    pub fn forget(&mut self, address: &HostPort) {
        if self.targets.get(address).is_some_and(|t| !t.seed) {
            self.targets.remove(address);
        }
    }

    /// Returns the addresses to call now.
    pub fn due(&self, now_ms: u64, linked: impl Fn(&PeerId) -> bool) -> Vec<HostPort> {
        let due = self
            .targets
            .iter()
            .filter(|(_, t)| t.wants_call(&linked) && t.next_call_ms <= now_ms);
        due.map(|(address, _)| address.clone()).collect()
    }

    /// Returns the time of the next call that [`AddressBook::due`] will name.
    pub fn next_call_ms(&self, linked: impl Fn(&PeerId) -> bool) -> Option<u64> {
        self.targets
            .values()
            .filter(|t| t.wants_call(&linked))
            .map(|t| t.next_call_ms)
            .min()
    }

    /// Notes that a call begins: the resolver looks up the name.
    pub fn resolving(&mut self, address: &HostPort) {
        self.set_call(address, Call::Resolving);
        if let Some(target) = self.targets.get_mut(address) {
            target.unwanted = false;
        }
    }

    /// Takes the result of a look-up. Returns the first address to try; `None` if there is none, or if no call was
    /// looking up the name.
    pub fn resolved(
        &mut self,
        address: &HostPort,
        mut found: Vec<SocketAddr>,
    ) -> Option<SocketAddr> {
        let target = self.targets.get_mut(address)?;
        if !matches!(target.call, Call::Resolving) {
            return None;
        }
        found.reverse();
        let four = found.iter().filter(|address| address.is_ipv4()).count();
        let several = four > 1 || found.len() - four > 1;
        let first = found.pop()?;
        target.call = Call::Dialing {
            rest: found,
            all_refused: true,
            several,
        };
        Some(first)
    }

    /// Notes that a connection attempt failed.
    pub fn connect_failed(
        &mut self,
        address: &HostPort,
        kind: ErrorKind,
        now_ms: u64,
    ) -> AfterFailure {
        let Some(target) = self.targets.get_mut(address) else {
            return AfterFailure::Pause;
        };
        if let Call::Dialing {
            rest, all_refused, ..
        } = &mut target.call
        {
            *all_refused &= kind == ErrorKind::ConnectionRefused;
            if let Some(next) = rest.pop() {
                return AfterFailure::Next(next);
            }
            if *all_refused {
                let peer = target.peer;
                self.failed(address, now_ms);
                return AfterFailure::Refused(peer);
            }
        }
        self.failed(address, now_ms);
        AfterFailure::Pause
    }

    /// Notes that a call failed: the next pause is longer.
    pub fn failed(&mut self, address: &HostPort, now_ms: u64) {
        let pace = self.pace;
        if let Some(target) = self.targets.get_mut(address) {
            target.fail(pace, now_ms);
        }
    }

    /// Notes that the process there refuses this node: the address is called at the slow pace.
    pub fn slow_down(&mut self, address: &HostPort, now_ms: u64) {
        let pace = self.pace;
        if let Some(target) = self.targets.get_mut(address) {
            target.fail(pace, now_ms);
            target.unwanted = true;
            target.pause_ms = pace.slow_ms;
            target.next_call_ms = now_ms + pace.slow_ms;
        }
    }

    /// Notes the identity of a peer that answered a call.
    pub fn answered(&mut self, address: &HostPort, peer: PeerId) {
        if let Some(target) = self.targets.get_mut(address) {
            target.peer = Some(peer);
            target.oneself = false;
            target.failing_since_ms = None;
        }
    }

    /// Notes that a call has become the connection to the peer.
    pub fn established(&mut self, address: &HostPort) {
        self.set_call(address, Call::Idle);
    }

    /// Notes that a process answered in vain. Returns the next address of the same name, if there is one.
    pub fn next_address(&mut self, address: &HostPort) -> Option<SocketAddr> {
        match &mut self.targets.get_mut(address)?.call {
            Call::Dialing {
                rest, all_refused, ..
            } => {
                *all_refused = false;
                rest.pop()
            }
            Call::Idle | Call::Resolving | Call::Never => None,
        }
    }

    /// Notes that this node itself answered. If the name stands for several nodes, returns its next address. A name that
    /// stands for this node alone is called at the slow pace: it may stand for others later.
    pub fn is_oneself(&mut self, address: &HostPort, now_ms: u64) -> Option<SocketAddr> {
        let target = self.targets.get_mut(address)?;
        let several = matches!(target.call, Call::Dialing { several: true, .. });
        target.oneself = !several;
        if several {
            let next = self.next_address(address);
            if next.is_none() {
                self.failed(address, now_ms);
            }
            return next;
        }
        match address.literal() {
            Some(_) => target.call = Call::Never,
            None => self.slow_down(address, now_ms),
        }
        None
    }

    /// Notes that the connection to a peer is gone. Its addresses are called at once if the connection had lasted.
    pub fn lost(&mut self, peer: PeerId, lasted: bool, now_ms: u64) {
        let pace = self.pace;
        for target in self
            .targets
            .values_mut()
            .filter(|t| t.peer == Some(peer) && matches!(t.call, Call::Idle))
        {
            if lasted {
                target.call_at(now_ms);
            } else {
                target.fail(pace, now_ms);
            }
        }
    }

    /// Returns the addresses of the configuration, each with the peer that has answered there, and whether this node
    /// itself has.
    pub fn seeds(&self) -> impl Iterator<Item = (&HostPort, Option<PeerId>, bool)> {
        let seeds = self.targets.iter().filter(|(_, target)| target.seed);
        seeds.map(|(address, target)| (address, target.peer, target.oneself))
    }

    /// Returns true if an address in the book is literally this IP address.
    pub fn has_ip(&self, ip: IpAddr) -> bool {
        let mut literals = self.targets.keys().filter_map(HostPort::literal);
        literals.any(|literal| literal.ip().to_canonical() == ip)
    }

    /// Returns the addresses at which a peer has answered.
    pub fn addresses_of(&self, peer: PeerId) -> Vec<HostPort> {
        let known = self.targets.iter().filter(|(_, t)| t.peer == Some(peer));
        known.map(|(address, _)| address.clone()).collect()
    }

    /// Ends every pause.
    pub fn call_all(&mut self, now_ms: u64) {
        self.targets
            .values_mut()
            .for_each(|target| target.call_at(now_ms));
    }

    fn set_call(&mut self, address: &HostPort, call: Call) {
        if let Some(target) = self.targets.get_mut(address) {
            target.call = call;
        }
    }
}

impl Target {
    fn wants_call(&self, linked: impl Fn(&PeerId) -> bool) -> bool {
        matches!(self.call, Call::Idle) && !self.peer.is_some_and(|peer| linked(&peer))
    }

    fn call_at(&mut self, now_ms: u64) {
        self.pause_ms = 0;
        self.failing_since_ms = None;
        self.unwanted = false;
        self.next_call_ms = now_ms;
    }

    fn fail(&mut self, pace: Pace, now_ms: u64) {
        let since_ms = *self.failing_since_ms.get_or_insert(now_ms);
        let slow = !self.seed && now_ms.saturating_sub(since_ms) >= SLOW_AFTER_MS;
        let max_ms = if slow { pace.slow_ms } else { pace.max_ms };
        self.pause_ms = self
            .pause_ms
            .saturating_mul(2)
            .clamp(pace.min_ms, max_ms.max(pace.min_ms));
        self.next_call_ms = now_ms + self.pause_ms;
        self.call = Call::Idle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        min_ms: 50,
        max_ms: 1000,
        slow_ms: 10_000,
    };

    fn at(host: &str) -> HostPort {
        HostPort {
            host: host.to_owned(),
            port: 1,
        }
    }

    fn dial(
        book: &mut AddressBook,
        address: &HostPort,
        found: Vec<SocketAddr>,
    ) -> Option<SocketAddr> {
        book.resolving(address);
        book.resolved(address, found)
    }

    #[test]
    fn pauses_grow_and_learnt_addresses_fade() {
        let mut book = AddressBook::new(PACE);
        book.add(at("seed"), true, 0);
        book.add(at("learnt"), false, 0);
        let mut now_ms = 0;
        let mut pauses = Vec::new();
        while now_ms < 70_000 {
            book.failed(&at("seed"), now_ms);
            let next = book.targets[&at("seed")].next_call_ms;
            pauses.push(next - now_ms);
            book.failed(&at("learnt"), now_ms);
            now_ms = next;
        }
        assert_eq!(pauses[..6], [50, 100, 200, 400, 800, 1000]);
        assert_eq!(*pauses.last().unwrap(), 1000);
        assert_eq!(book.targets[&at("learnt")].pause_ms, 10_000);
        assert!(!book.due(now_ms, |_| false).contains(&at("learnt")));
        book.add(at("learnt"), false, now_ms);
        assert!(
            book.due(now_ms, |_| false).contains(&at("learnt")),
            "news of an address call it at once"
        );
    }

    #[test]
    fn linked_peers_and_oneself_are_not_called() {
        let mut book = AddressBook::new(PACE);
        book.add(at("a"), true, 0);
        book.add(at("::1"), true, 0);
        assert_eq!(
            book.due(0, |_| true).len(),
            2,
            "an address not yet verified is called"
        );
        book.answered(&at("a"), [1; 16]);
        dial(&mut book, &at("::1"), vec!["[::1]:1".parse().unwrap()]);
        book.is_oneself(&at("::1"), 0);
        assert!(book.due(0, |_| true).is_empty() && book.next_call_ms(|_| true).is_none());
        book.lost([1; 16], true, 7);
        assert_eq!(
            (book.due(7, |_| false), book.next_call_ms(|_| false)),
            (vec![at("a")], Some(7))
        );
        book.slow_down(&at("a"), 7);
        book.add(at("a"), false, 8);
        assert!(
            book.due(10_006, |_| false).is_empty(),
            "hearsay does not hurry a call to who refused"
        );
        assert_eq!(book.due(10_007, |_| false), [at("a")]);
        book.call_all(7);
        book.lost([1; 16], false, 7);
        assert!(
            book.due(7, |_| false).is_empty(),
            "a connection that does not last is no reason to hurry"
        );
    }

    #[test]
    fn refused_means_every_address_of_the_name() {
        let mut book = AddressBook::new(PACE);
        let (v6, v4): (SocketAddr, SocketAddr) =
            ("[::1]:1".parse().unwrap(), "127.0.0.1:1".parse().unwrap());
        book.add(at("a"), true, 0);
        assert_eq!(dial(&mut book, &at("a"), vec![v6, v4]), Some(v6));
        assert_eq!(
            book.connect_failed(&at("a"), ErrorKind::ConnectionRefused, 0),
            AfterFailure::Next(v4)
        );
        assert_eq!(
            book.connect_failed(&at("a"), ErrorKind::TimedOut, 0),
            AfterFailure::Pause
        );
        book.answered(&at("a"), [3; 16]);
        dial(&mut book, &at("a"), vec![v4]);
        let refused = AfterFailure::Refused(Some([3; 16]));
        assert_eq!(
            book.connect_failed(&at("a"), ErrorKind::ConnectionRefused, 0),
            refused
        );
    }

    /// A headless service of Kubernetes names all pods, the own one among them.
    #[test]
    fn a_name_may_stand_for_several_nodes() {
        let mut book = AddressBook::new(PACE);
        let (own, b): (SocketAddr, SocketAddr) =
            ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
        book.add(at("all"), true, 0);
        for order in [[own, b], [b, own]] {
            let mut next = dial(&mut book, &at("all"), order.to_vec());
            let mut called = Vec::new();
            while let Some(remote) = next {
                called.push(remote);
                next = match remote == own {
                    true => book.is_oneself(&at("all"), 0),
                    false => book.next_address(&at("all")),
                };
            }
            assert_eq!(called, order);
            book.failed(&at("all"), 0);
            assert_eq!(
                book.due(PACE.max_ms, |_| false),
                [at("all")],
                "called again: others may be there later"
            );
        }
        // One address of each family is one node.
        let six: SocketAddr = "[fd00::1]:1".parse().unwrap();
        dial(&mut book, &at("all"), vec![own, six]);
        assert_eq!(book.is_oneself(&at("all"), 0), None);
        assert!(book.due(PACE.max_ms, |_| false).is_empty());
    }

    /// After a stop of the whole cluster, a headless service names only the own pod at first.
    #[test]
    fn a_name_of_oneself_alone_may_stand_for_others_later() {
        let mut book = AddressBook::new(PACE);
        let (own, b): (SocketAddr, SocketAddr) =
            ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
        let is_listed_as_oneself = |book: &AddressBook| book.seeds().all(|(_, _, oneself)| oneself);
        book.add(at("all"), true, 0);
        for now_ms in [0, PACE.slow_ms] {
            assert_eq!(book.due(now_ms, |_| false), [at("all")]);
            assert_eq!(dial(&mut book, &at("all"), vec![own]), Some(own));
            assert_eq!(book.is_oneself(&at("all"), now_ms), None);
            assert!(is_listed_as_oneself(&book));
            let again_ms = now_ms + PACE.slow_ms;
            assert!(book.due(again_ms - 1, |_| false).is_empty());
            assert_eq!(book.next_call_ms(|_| false), Some(again_ms));
        }
        assert_eq!(dial(&mut book, &at("all"), vec![b]), Some(b));
        assert!(is_listed_as_oneself(&book), "until another node answers");
        book.answered(&at("all"), [2; 16]);
        assert!(!is_listed_as_oneself(&book));
        // A name of several nodes is missing while the others do not answer.
        book.failed(&at("all"), 0);
        for found in [vec![own], vec![own, b]] {
            let several = found.len() > 1;
            dial(&mut book, &at("all"), found);
            book.is_oneself(&at("all"), 0);
            assert_eq!(is_listed_as_oneself(&book), !several);
        }
    }

    #[test]
    fn the_own_literal_address_is_never_called_again() {
        let mut book = AddressBook::new(PACE);
        let own = at("10.0.0.1");
        book.add(own.clone(), true, 0);
        dial(&mut book, &own, vec![own.literal().unwrap()]);
        assert_eq!(book.is_oneself(&own, 0), None);
        book.add(own.clone(), true, 1);
        book.call_all(2);
        assert!(book.due(u64::MAX, |_| false).is_empty());
        assert!(book.seeds().all(|(_, _, oneself)| oneself));
    }

    #[test]
    fn learnt_addresses_are_bounded() {
        let mut book = AddressBook::new(PACE);
        for i in 0..MAX_LEARNT {
            book.add(at(&i.to_string()), false, 0);
        }
        book.add(at("late"), false, 0);
        assert!(!book.targets.contains_key(&at("late")));
        book.failed(&at("7"), 5);
        book.add(at("late"), false, 9);
        assert!(book.targets.contains_key(&at("late")) && !book.targets.contains_key(&at("7")));
    }
}
