//! The addresses to call, with the time of the next call to each. In: addresses from the configuration and from peers,
//! and the results of calls. Out: the calls that are due.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use crate::{HostPort, PeerId};

/// Maximum of learnt addresses; beyond it, the address that has led nowhere for longest gives way.
const MAX_LEARNT: usize = 256;
/// Time without an answer after which a learnt address is called at the slow pace.
const SLOW_AFTER_MS: u64 = 60_000;
/// Time without an answer after which a learnt address is forgotten.
const FORGOTTEN_AFTER_MS: u64 = 3_600_000;
/// Time that a pause lasts at least, or its whole length: news of the address from peers does not end it before.
const PAUSE_KEPT_MS: u64 = 1_000;

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
    /// The address, if it is literally one.
    ip: Option<IpAddr>,
    /// This node itself was the last to answer, and no other node is expected there.
    oneself: bool,
    /// The peer that answered the last successful call.
    peer: Option<Met>,
    next_call_ms: u64,
    /// The last pause; 0 after a success.
    pause_ms: u64,
    failing_since_ms: Option<u64>,
    /// The peer there and this node have refused each other: gossip about the address does not speed up the next call.
    unwanted: bool,
    call: Call,
}

/// A peer that has answered.
#[derive(Clone, Copy, Debug)]
struct Met {
    peer: PeerId,
    replica: [u8; 16],
    /// The address at which it did: a name may come to stand for another one.
    at: SocketAddr,
}

#[derive(Debug)]
enum Call {
    Idle,
    Resolving,
    /// A connection to `at` is being opened; `rest` are the addresses of the name that were not tried yet, last first.
    Dialing {
        at: SocketAddr,
        rest: Vec<SocketAddr>,
        all_refused: bool,
        /// The address at which the peer answered is among those that refused.
        peers_refused: bool,
        /// The name stands for several nodes, not for one node with an address of each family.
        several: bool,
    },
    /// The address is this node's own IP address: never called again, unless an operator names it once more.
    Never,
}

/// The step after a failed connection attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Try the next address of the same name.
    Next(SocketAddr),
    /// Every address of the name refused the connection. Holds the peer that was reached before at one of them, with its
    /// replica, if any.
    Refused(Option<(PeerId, [u8; 16])>),
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

    /// Adds an address of the configuration, or ends the pause of a known one.
    pub fn add_seed(&mut self, address: HostPort, now_ms: u64) {
        let target = self.targets.entry(address);
        let target = target.or_insert_with_key(|address| Target::new(address, now_ms));
        target.seed = true;
        if matches!(target.call, Call::Never) {
            target.call = Call::Idle;
        }
        // The length of the pauses stays.
        if !target.unwanted {
            target.next_call_ms = now_ms;
        }
    }

    /// Adds an address that a peer has told, or ends the pause of a known one, unless it has just begun. If there are
    /// too many, the one that has led nowhere for longest gives way, except those of needed peers (process and
    /// replica).
    pub fn learn(
        &mut self,
        address: HostPort,
        now_ms: u64,
        is_needed: impl Fn(&PeerId, &[u8; 16]) -> bool,
    ) {
        if let Some(target) = self.targets.get_mut(&address) {
            // The length of the pauses stays: a connection that breaks as soon as it is established leads here, too.
            if !target.unwanted && target.has_paused(now_ms) {
                target.next_call_ms = now_ms;
            }
            return;
        }
        if self.targets.values().filter(|t| !t.seed).count() >= MAX_LEARNT {
            let others = self.targets.iter().filter(|(_, t)| !t.leads_to(&is_needed));
            let in_vain = others.filter_map(|(address, t)| Some((t.in_vain_since_ms()?, address)));
            match in_vain.min().map(|(_, oldest)| oldest.clone()) {
                Some(oldest) => self.targets.remove(&oldest),
                None => return,
            };
        }
        let target = Target::new(&address, now_ms);
        self.targets.insert(address, target);
    }

    /// Forgets the learnt addresses that have led nowhere for long, except those of needed peers (process and replica).
    pub fn forget_dead(&mut self, now_ms: u64, is_needed: impl Fn(&PeerId, &[u8; 16]) -> bool) {
        let is_dead = |target: &Target| {
            let since_ms = target.in_vain_since_ms();
            let for_ms = since_ms.map_or(0, |since_ms| now_ms.saturating_sub(since_ms));
            matches!(target.call, Call::Idle) && for_ms >= FORGOTTEN_AFTER_MS
        };
        (self.targets).retain(|_, target| !is_dead(target) || target.leads_to(&is_needed));
    }

    /// Returns true if the address is from the configuration.
    pub fn is_seed(&self, address: &HostPort) -> bool {
        self.targets.get(address).is_some_and(|t| t.seed)
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
            at: first,
            rest: found,
            all_refused: true,
            peers_refused: false,
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
            at,
            rest,
            all_refused,
            peers_refused,
            ..
        } = &mut target.call
        {
            let is_refused = kind == ErrorKind::ConnectionRefused;
            *all_refused &= is_refused;
            *peers_refused |= is_refused && target.peer.is_some_and(|met| met.at == *at);
            if let Some(next) = rest.pop() {
                *at = next;
                return AfterFailure::Next(next);
            }
            if *all_refused {
                let dead = target.peer.filter(|_| *peers_refused);
                self.failed(address, now_ms);
                return AfterFailure::Refused(dead.map(|met| (met.peer, met.replica)));
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

    /// Notes the identity of a peer that answered a call, and the address at which it did.
    pub fn answered(
        &mut self,
        address: &HostPort,
        peer: PeerId,
        replica: [u8; 16],
        at: SocketAddr,
    ) {
        if let Some(target) = self.targets.get_mut(address) {
            target.peer = Some(Met { peer, replica, at });
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
                at,
                rest,
                all_refused,
                ..
            } => {
                *all_refused = false;
                let next = rest.pop()?;
                *at = next;
                Some(next)
            }
            Call::Idle | Call::Resolving | Call::Never => None,
        }
    }

    /// Notes that this node itself answered, as the answer says. If the name stands for several nodes, returns its next
    /// address. `within_host`: both ends of the connection had the same IP address. Otherwise the other side may lie,
    /// or the network translates addresses. Then, and if a name stands for this node alone, the address is called at
    /// the slow pace: it may lead to others later.
    pub fn is_oneself(
        &mut self,
        address: &HostPort,
        within_host: bool,
        now_ms: u64,
    ) -> Option<SocketAddr> {
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
            Some(_) if within_host => target.call = Call::Never,
            _ => self.slow_down(address, now_ms),
        }
        None
    }

    /// Notes that the connection to a peer is gone. Its addresses are called at once if the connection had lasted.
    pub fn lost(&mut self, peer: PeerId, lasted: bool, now_ms: u64) {
        let pace = self.pace;
        for target in self
            .targets
            .values_mut()
            .filter(|t| t.peer_id() == Some(peer) && matches!(t.call, Call::Idle))
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
        seeds.map(|(address, target)| (address, target.peer_id(), target.oneself))
    }

    /// Returns true if an address of the configuration is this IP address, or has led there. What peers told proves no
    /// member.
    pub fn has_ip(&self, ip: IpAddr) -> bool {
        let leads_there = |target: &Target| {
            let met = target.peer.map(|met| met.at.ip().to_canonical());
            target.ip == Some(ip) || met == Some(ip)
        };
        let mut seeds = self.targets.values().filter(|target| target.seed);
        seeds.any(leads_there)
    }

    /// Returns the addresses at which a peer has answered.
    pub fn addresses_of(&self, peer: PeerId) -> Vec<HostPort> {
        let known = self
            .targets
            .iter()
            .filter(|(_, t)| t.peer_id() == Some(peer));
        known.map(|(address, _)| address.clone()).collect()
    }

    /// Returns true if another replica than this one was the last to answer at the address.
    pub fn is_of_another(&self, address: &HostPort, replica: &[u8; 16]) -> bool {
        let met = self.targets.get(address).and_then(|target| target.peer);
        met.is_some_and(|met| met.replica != *replica)
    }

    /// Forgets who has answered at the address: a refused connection there proves no death.
    pub fn forget_peer(&mut self, address: &HostPort) {
        if let Some(target) = self.targets.get_mut(address) {
            target.peer = None;
        }
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
    fn new(address: &HostPort, now_ms: u64) -> Target {
        Target {
            seed: false,
            ip: address.literal().map(|literal| literal.ip().to_canonical()),
            oneself: false,
            peer: None,
            next_call_ms: now_ms,
            pause_ms: 0,
            failing_since_ms: None,
            unwanted: false,
            call: Call::Idle,
        }
    }

    /// Returns true if a peer that is needed was the last to answer there.
    fn leads_to(&self, is_needed: impl Fn(&PeerId, &[u8; 16]) -> bool) -> bool {
        let met = self.peer.as_ref();
        met.is_some_and(|met| is_needed(&met.peer, &met.replica))
    }

    fn wants_call(&self, linked: impl Fn(&PeerId) -> bool) -> bool {
        matches!(self.call, Call::Idle) && !self.peer_id().is_some_and(|peer| linked(&peer))
    }

    fn peer_id(&self) -> Option<PeerId> {
        self.peer.map(|met| met.peer)
    }

    /// Returns the time since which a learnt address has led nowhere; `None` also while TCP connects.
    fn in_vain_since_ms(&self) -> Option<u64> {
        match self.call {
            _ if self.seed => None,
            Call::Idle => self.failing_since_ms,
            // A look-up may hang. Its answer is ignored, once the address is gone.
            Call::Resolving => self.failing_since_ms.or(Some(self.next_call_ms)),
            Call::Dialing { .. } | Call::Never => None,
        }
    }

    fn has_paused(&self, now_ms: u64) -> bool {
        let began_ms = self.next_call_ms.saturating_sub(self.pause_ms);
        self.pause_ms == 0 || now_ms.saturating_sub(began_ms) >= PAUSE_KEPT_MS
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
mod tests;
