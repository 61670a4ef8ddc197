//! The book of addresses on a clock of its own.

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

fn dial(book: &mut AddressBook, address: &HostPort, found: Vec<SocketAddr>) -> Option<SocketAddr> {
    book.resolving(address);
    book.resolved(address, found)
}

#[test]
fn pauses_grow_and_learnt_addresses_fade() {
    let mut book = AddressBook::new(PACE);
    book.add_seed(at("seed"), 0);
    book.learn(at("learnt"), 0, |_, _| false);
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
    book.learn(at("learnt"), now_ms, |_, _| false);
    assert!(
        book.due(now_ms, |_| false).contains(&at("learnt")),
        "news of an address call it at once"
    );
}

#[test]
fn hearsay_leaves_a_young_pause() {
    let mut book = AddressBook::new(PACE);
    book.learn(at("a"), 0, |_, _| false);
    book.failed(&at("a"), 100_000);
    (0..12).for_each(|_| book.failed(&at("a"), 200_000));
    assert_eq!(book.targets[&at("a")].pause_ms, PACE.slow_ms);
    let due = |book: &AddressBook, now_ms| book.due(now_ms, |_| false) == [at("a")];
    book.learn(at("a"), 200_999, |_, _| false);
    assert!(!due(&book, 200_999));
    book.learn(at("a"), 201_000, |_, _| false);
    assert!(due(&book, 201_000));
    book.failed(&at("a"), 201_000);
    book.add_seed(at("a"), 201_001);
    assert!(due(&book, 201_001), "an operator's word ends it");
}

#[test]
fn linked_peers_and_oneself_are_not_called() {
    let mut book = AddressBook::new(PACE);
    book.add_seed(at("a"), 0);
    book.add_seed(at("::1"), 0);
    assert_eq!(
        book.due(0, |_| true).len(),
        2,
        "an address not yet verified is called"
    );
    book.answered(&at("a"), [1; 16], [1; 16], "10.0.0.1:1".parse().unwrap());
    dial(&mut book, &at("::1"), vec!["[::1]:1".parse().unwrap()]);
    book.is_oneself(&at("::1"), true, 0);
    assert!(book.due(0, |_| true).is_empty() && book.next_call_ms(|_| true).is_none());
    book.lost([1; 16], true, 7);
    assert_eq!(
        (book.due(7, |_| false), book.next_call_ms(|_| false)),
        (vec![at("a")], Some(7))
    );
    book.slow_down(&at("a"), 7);
    book.learn(at("a"), 8, |_, _| false);
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
    book.add_seed(at("a"), 0);
    assert_eq!(dial(&mut book, &at("a"), vec![v6, v4]), Some(v6));
    assert_eq!(
        book.connect_failed(&at("a"), ErrorKind::ConnectionRefused, 0),
        AfterFailure::Next(v4)
    );
    assert_eq!(
        book.connect_failed(&at("a"), ErrorKind::TimedOut, 0),
        AfterFailure::Pause
    );
    book.answered(&at("a"), [3; 16], [4; 16], v4);
    dial(&mut book, &at("a"), vec![v4]);
    let refused = AfterFailure::Refused(Some(([3; 16], [4; 16])));
    assert_eq!(
        book.connect_failed(&at("a"), ErrorKind::ConnectionRefused, 0),
        refused
    );
}

#[test]
fn a_refusal_elsewhere_proves_no_death() {
    let mut book = AddressBook::new(PACE);
    let [there, elsewhere]: [SocketAddr; 2] =
        ["10.0.0.1:1", "10.0.0.2:1"].map(|text| text.parse().unwrap());
    book.add_seed(at("db1"), 0);
    dial(&mut book, &at("db1"), vec![there]);
    book.answered(&at("db1"), [3; 16], [3; 16], there);
    let mut refused = |found: &[SocketAddr]| {
        dial(&mut book, &at("db1"), found.to_vec());
        loop {
            match book.connect_failed(&at("db1"), ErrorKind::ConnectionRefused, 0) {
                AfterFailure::Next(_) => {}
                AfterFailure::Refused(peer) => return peer.map(|(peer, _)| peer),
                AfterFailure::Pause => panic!("all refused"),
            }
        }
    };
    assert_eq!(refused(&[elsewhere]), None, "the name has moved");
    assert_eq!(refused(&[elsewhere, there]), Some([3; 16]));
    assert_eq!(refused(&[there, elsewhere]), Some([3; 16]));
    // A peer that answers in vain ends the count, and the next address is the one that refuses.
    dial(&mut book, &at("db1"), vec![elsewhere, there]);
    assert_eq!(book.next_address(&at("db1")), Some(there));
    let kind = ErrorKind::ConnectionRefused;
    assert_eq!(
        book.connect_failed(&at("db1"), kind, 0),
        AfterFailure::Pause
    );
}

/// A headless service of Kubernetes names all pods, the own one among them.
#[test]
fn a_name_may_stand_for_several_nodes() {
    let mut book = AddressBook::new(PACE);
    let (own, b): (SocketAddr, SocketAddr) =
        ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
    book.add_seed(at("all"), 0);
    for order in [[own, b], [b, own]] {
        let mut next = dial(&mut book, &at("all"), order.to_vec());
        let mut called = Vec::new();
        while let Some(remote) = next {
            called.push(remote);
            next = match remote == own {
                true => book.is_oneself(&at("all"), true, 0),
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
    assert_eq!(book.is_oneself(&at("all"), true, 0), None);
    assert!(book.due(PACE.max_ms, |_| false).is_empty());
}

/// After a stop of the whole cluster, a headless service names only the own pod at first.
#[test]
fn a_name_of_oneself_alone_may_stand_for_others_later() {
    let mut book = AddressBook::new(PACE);
    let (own, b): (SocketAddr, SocketAddr) =
        ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
    let is_listed_as_oneself = |book: &AddressBook| book.seeds().all(|(_, _, oneself)| oneself);
    book.add_seed(at("all"), 0);
    for now_ms in [0, PACE.slow_ms] {
        assert_eq!(book.due(now_ms, |_| false), [at("all")]);
        assert_eq!(dial(&mut book, &at("all"), vec![own]), Some(own));
        assert_eq!(book.is_oneself(&at("all"), true, now_ms), None);
        assert!(is_listed_as_oneself(&book));
        let again_ms = now_ms + PACE.slow_ms;
        assert!(book.due(again_ms - 1, |_| false).is_empty());
        assert_eq!(book.next_call_ms(|_| false), Some(again_ms));
    }
    assert_eq!(dial(&mut book, &at("all"), vec![b]), Some(b));
    assert!(is_listed_as_oneself(&book), "until another node answers");
    book.answered(&at("all"), [2; 16], [2; 16], b);
    assert!(!is_listed_as_oneself(&book));
    // A name of several nodes is missing while the others do not answer.
    book.failed(&at("all"), 0);
    for found in [vec![own], vec![own, b]] {
        let several = found.len() > 1;
        dial(&mut book, &at("all"), found);
        book.is_oneself(&at("all"), true, 0);
        assert_eq!(is_listed_as_oneself(&book), !several);
    }
}

#[test]
fn the_own_literal_address_is_never_called_again() {
    let mut book = AddressBook::new(PACE);
    let own = at("10.0.0.1");
    book.add_seed(own.clone(), 0);
    dial(&mut book, &own, vec![own.literal().unwrap()]);
    assert_eq!(book.is_oneself(&own, true, 0), None);
    book.learn(own.clone(), 1, |_, _| false);
    book.call_all(2);
    assert!(book.due(u64::MAX, |_| false).is_empty());
    assert!(book.seeds().all(|(_, _, oneself)| oneself));
    book.add_seed(own.clone(), 3);
    assert_eq!(book.due(3, |_| false), [own], "unless an operator says so");
}

#[test]
fn learnt_addresses_are_bounded() {
    let mut book = AddressBook::new(PACE);
    for i in 0..MAX_LEARNT {
        book.learn(at(&i.to_string()), 0, |_, _| false);
    }
    book.learn(at("late"), 0, |_, _| false);
    assert!(!book.targets.contains_key(&at("late")));
    book.failed(&at("7"), 5);
    book.learn(at("late"), 9, |_, _| false);
    assert!(book.targets.contains_key(&at("late")) && !book.targets.contains_key(&at("7")));
}

#[test]
fn addresses_of_members_do_not_give_way() {
    let mut book = AddressBook::new(PACE);
    for i in 0..MAX_LEARNT {
        book.learn(at(&i.to_string()), 0, |_, _| false);
    }
    let there: SocketAddr = "10.0.0.1:1".parse().unwrap();
    for (learnt, replica, failed_ms) in [("7", [1; 16], 5), ("8", [2; 16], 6)] {
        book.answered(&at(learnt), replica, replica, there);
        book.failed(&at(learnt), failed_ms);
    }
    let is_member = |_: &PeerId, replica: &[u8; 16]| *replica == [1; 16];
    for late in ["late", "later"] {
        book.learn(at(late), 9, is_member);
    }
    let has = |address| book.targets.contains_key(&at(address));
    assert!(has("7") && !has("8") && has("late") && !has("later"));
}

#[test]
fn learnt_addresses_that_fail_for_long_are_forgotten() {
    let mut book = AddressBook::new(PACE);
    let there: SocketAddr = "10.0.0.1:1".parse().unwrap();
    book.add_seed(at("seed"), 0);
    for (learnt, replica) in [("member", [1; 16]), ("gone", [2; 16])] {
        book.learn(at(learnt), 0, |_, _| false);
        book.answered(&at(learnt), replica, replica, there);
    }
    book.learn(at("never met"), 0, |_, _| false);
    book.learn(at("dialed"), 0, |_, _| false);
    let fail_all = |book: &mut AddressBook, now_ms| {
        for address in ["seed", "member", "gone", "never met", "dialed"] {
            book.failed(&at(address), now_ms);
        }
        dial(book, &at("dialed"), vec![there]);
        book.forget_dead(now_ms, |_, replica| *replica == [1; 16]);
    };
    fail_all(&mut book, 5);
    fail_all(&mut book, 5 + FORGOTTEN_AFTER_MS - 1);
    assert_eq!(book.targets.len(), 5);
    fail_all(&mut book, 5 + FORGOTTEN_AFTER_MS);
    let left: Vec<_> = book.targets.keys().cloned().collect();
    assert_eq!(left, ["dialed", "member", "seed"].map(at));
}

#[test]
fn names_that_do_not_resolve_give_way() {
    let mut book = AddressBook::new(PACE);
    book.add_seed(at("seed"), 0);
    book.resolving(&at("seed"));
    for i in 0..MAX_LEARNT {
        book.learn(at(&i.to_string()), 1, |_, _| false);
        book.resolving(&at(&i.to_string()));
    }
    let found: SocketAddr = "192.0.2.1:1".parse().unwrap();
    assert_eq!(book.resolved(&at("0"), vec![found]), Some(found));
    for late in ["10.0.0.1", "10.0.0.2"] {
        book.learn(at(late), 2, |_, _| false);
        assert_eq!(book.targets.len(), 1 + MAX_LEARNT);
        assert_eq!(book.due(2, |_| false), [at(late)]);
        dial(&mut book, &at(late), vec![found]);
    }
    assert!(book.is_seed(&at("seed")) && !book.is_seed(&at("0")));
    assert!(book.targets.contains_key(&at("0")), "it is being dialed");
    assert!(!book.targets.contains_key(&at("1")));
    assert_eq!(book.resolved(&at("1"), vec![found]), None);
}

#[test]
fn known_addresses_are_those_of_the_configuration() {
    let mut book = AddressBook::new(PACE);
    let ip = |last: u8| IpAddr::from([10, 0, 0, last]);
    book.add_seed(at("10.0.0.1"), 0);
    book.add_seed(at("db2"), 0);
    book.learn(at("10.0.0.3"), 0, |_, _| false);
    let known = |book: &AddressBook| [1, 2, 3].map(|last| book.has_ip(ip(last)));
    assert_eq!(known(&book), [true, false, false]);
    book.answered(&at("db2"), [2; 16], [2; 16], SocketAddr::new(ip(2), 1));
    book.answered(&at("10.0.0.3"), [3; 16], [3; 16], SocketAddr::new(ip(3), 1));
    assert_eq!(known(&book), [true, true, false]);
}
