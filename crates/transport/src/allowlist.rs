//! Callers that wait for the server's verdict on their addresses. In: callers, verdicts. Out: the address to ask about,
//! judged callers, late callers.
//!
//! A question may take long or hang: the server reads a table, and waits for its lock. So a thread of its own
//! ([`asker`]) asks, about one address at a time. Each verdict holds for all callers of its address, and for a moment.

pub(crate) mod asker;

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::handshaker::{Place, Rank, displaced};
use crate::poller::Accepted;

/// Maximum of callers that wait; `displaced` chooses the one that gives way to a further one.
const MAX_WAITING: usize = 64;
/// Time for which a verdict holds: a flood of callers from one address costs one question in this time.
const VERDICT_MS: u64 = 1_000;
/// Maximum of verdicts that are remembered.
const MAX_VERDICTS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Allowlist {
    /// The oldest first.
    waiting: Vec<Waiting>,
    /// The address of the running question.
    asked: Option<IpAddr>,
    verdicts: BTreeMap<IpAddr, Verdict>,
}

#[derive(Debug)]
struct Waiting {
    accepted: Accepted,
    rank: Rank,
    deadline_ms: u64,
}

#[derive(Debug)]
struct Verdict {
    allowed: bool,
    until_ms: u64,
}

impl Allowlist {
    /// Returns the verdict on an address, if one holds.
    pub(crate) fn verdict(&self, ip: IpAddr, now_ms: u64) -> Option<bool> {
        let verdict = self.verdicts.get(&ip)?;
        (now_ms < verdict.until_ms).then_some(verdict.allowed)
    }

    /// Keeps a caller until there is a verdict on its address, or drops it, or another one in its place.
    pub(crate) fn keep(&mut self, accepted: Accepted, rank: Rank, deadline_ms: u64) {
        let ranks: Vec<Rank> = self.waiting.iter().map(|one| one.rank).collect();
        match displaced(&ranks, MAX_WAITING, rank) {
            Place::Free => {}
            Place::Instead(at) => drop(self.waiting.remove(at)),
            Place::Taken => return,
        }
        self.waiting.push(Waiting {
            accepted,
            rank,
            deadline_ms,
        });
    }

    /// Returns the address to ask about now: one at a time, those of known members first.
    pub(crate) fn next_question(&self) -> Option<IpAddr> {
        if self.asked.is_some() {
            return None;
        }
        let known = self.waiting.iter().find(|one| one.rank.is_known);
        known
            .or_else(|| self.waiting.first())
            .map(|one| one.rank.ip)
    }

    /// Notes that the question is asked.
    pub(crate) fn asked(&mut self, ip: IpAddr) {
        self.asked = Some(ip);
    }

    /// Takes the verdict on an address. Returns its callers.
    pub(crate) fn judged(&mut self, ip: IpAddr, allowed: bool, now_ms: u64) -> Vec<Accepted> {
        self.asked = None;
        self.verdicts.retain(|_, verdict| now_ms < verdict.until_ms);
        if self.verdicts.len() < MAX_VERDICTS {
            let until_ms = now_ms + VERDICT_MS;
            self.verdicts.insert(ip, Verdict { allowed, until_ms });
        }
        let callers = self.take(|one| one.rank.ip == ip);
        callers.into_iter().map(|one| one.accepted).collect()
    }

    /// Drops the callers whose time is over. Returns their addresses.
    pub(crate) fn expire(&mut self, now_ms: u64) -> Vec<IpAddr> {
        let late = self.take(|one| one.deadline_ms <= now_ms);
        late.into_iter().map(|one| one.rank.ip).collect()
    }

    fn take(&mut self, wanted: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
        let (taken, left) = self.waiting.drain(..).partition(wanted);
        self.waiting = left;
        taken
    }

    /// Returns the time of the next [`Allowlist::expire`].
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.waiting.iter().map(|one| one.deadline_ms).min()
    }

    /// Drops all callers.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn call(list: &mut Allowlist, last: u8, is_known: bool, deadline_ms: u64) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        tcp.set_nonblocking(true).unwrap();
        let accepted = Accepted {
            stream: mio::net::TcpStream::from_std(tcp),
            remote: SocketAddr::new(ip(last), 1),
        };
        let rank = Rank {
            ip: ip(last),
            is_known,
        };
        list.keep(accepted, rank, deadline_ms);
    }

    #[test]
    fn one_question_serves_all_callers_of_an_address_for_a_second() {
        let mut list = Allowlist::default();
        for last in [1, 2, 1] {
            call(&mut list, last, false, 10);
        }
        call(&mut list, 3, true, 10);
        assert_eq!(list.next_question(), Some(ip(3)), "members come first");
        list.asked(ip(3));
        assert_eq!(list.next_question(), None, "one at a time");
        assert_eq!(list.judged(ip(3), true, 0).len(), 1);
        assert_eq!(list.next_question(), Some(ip(1)));
        list.asked(ip(1));
        assert_eq!(list.judged(ip(1), false, 5).len(), 2);
        assert_eq!(list.next_question(), Some(ip(2)));
        let verdicts = |now_ms| [1, 2, 3].map(|last| list.verdict(ip(last), now_ms));
        assert_eq!(verdicts(999), [Some(false), None, Some(true)]);
        assert_eq!(verdicts(1_004), [Some(false), None, None]);
        assert_eq!(verdicts(1_005), [None; 3]);
    }

    #[test]
    fn callers_without_a_verdict_are_few_and_wait_for_a_while() {
        let mut list = Allowlist::default();
        for last in 0..10 {
            (0..20).for_each(|_| call(&mut list, last, false, 7 + u64::from(last)));
        }
        assert_eq!(list.waiting.len(), MAX_WAITING);
        list.asked(ip(9));
        assert_eq!(list.next_deadline_ms(), Some(13), "the oldest gave way");
        assert!(list.expire(12).is_empty());
        assert_eq!(
            list.expire(14),
            [ip(6); 16]
                .into_iter()
                .chain([ip(7); 16])
                .collect::<Vec<_>>()
        );
        assert_eq!(list.judged(ip(9), true, 15).len(), 16);
        assert_eq!(list.waiting.len(), 16);
    }

    #[test]
    fn few_verdicts_are_remembered() {
        let mut list = Allowlist::default();
        let at = |i: u32| IpAddr::from(i.to_be_bytes());
        for i in 0..1_000 {
            list.judged(at(i), true, 0);
        }
        assert_eq!(list.verdicts.len(), MAX_VERDICTS);
        list.judged(at(5_000), true, VERDICT_MS);
        assert_eq!(list.verdicts.len(), 1);
    }
}
