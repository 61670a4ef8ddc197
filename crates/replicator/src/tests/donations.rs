//! What a server does while a script of its sends (server-contract.md#sst_sent).

use trireme_certification::KeyType;

use super::driver::{Cluster, incarnation, member};
use super::server::Happened;
use crate::{Code, Event, Gtid};

/// The last of these asks for a snapshot; the first was chosen to send it, and its recv() threads are elsewhere.
fn chosen(count: usize) -> (Cluster, usize) {
    let mut cluster = Cluster::of(count);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.nodes[0].threads = 0;
    cluster.settle();
    assert_eq!(cluster.comment(0), "Donor/Desynced");
    (cluster, joiner)
}

fn comes_to_send(cluster: &mut Cluster) {
    cluster.nodes[0].threads = 1;
    cluster.settle();
    let happened = &cluster.nodes[0].server.happened;
    assert!(matches!(happened.last(), Some(Happened::Donate(_))));
}

fn desync(cluster: &mut Cluster) -> Code {
    let ticket = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::Desync { ticket });
    cluster.settle();
    let answer = cluster.nodes[0].server.take(ticket);
    answer.expect("it was ordered").code
}

fn has_heard_of_the_loss(cluster: &Cluster) -> bool {
    let is_loss = |h: &Happened| matches!(h, Happened::View(view, _) if !view.primary);
    cluster.nodes[0].server.happened.iter().any(is_loss)
}

#[test]
fn a_donor_may_be_desynced_and_outlives_its_donation_so() {
    let (mut cluster, joiner) = chosen(1);
    comes_to_send(&mut cluster);
    assert_eq!(desync(&mut cluster), Code::Ok);
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    let state = (cluster.comment(0), cluster.status(0).desync_count);
    assert_eq!(state, ("Donor/Desynced", 1));
    cluster.call(0, |ticket| Event::Resync { ticket });
    cluster.settle();
    let state = (cluster.comment(0), cluster.status(0).desync_count);
    assert_eq!(state, ("Synced", 0));
    cluster.assert_settled();
}

/// FLUSH TABLES WITH READ LOCK would not take it back.
#[test]
fn a_desync_that_crosses_with_a_donation_is_refused() {
    let (mut cluster, joiner) = chosen(1);
    assert_eq!(desync(&mut cluster), Code::TrxFail);
    comes_to_send(&mut cluster);
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    let state = (cluster.comment(0), cluster.status(0).desync_count);
    assert_eq!(state, ("Synced", 0));
    cluster.assert_settled();
}

#[test]
fn a_donor_that_is_cut_off_gets_its_pause_before_it_hears_of_it_and_is_synced_when_it_has_sent() {
    let (mut cluster, _) = chosen(2);
    comes_to_send(&mut cluster);
    cluster.nodes[0].threads = 0;
    cluster.certify(1, "a", KeyType::Exclusive);
    cluster.settle();
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation == incarnation(1)));
    let component = vec![member(0)];
    cluster.event(0, Event::NonPrimary { component });
    cluster.reconfigure(|c| c.members.push(member(0)));
    cluster.certify(1, "b", KeyType::Exclusive);
    cluster.settle();
    let paused = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::Pause { ticket: paused });
    assert_eq!(cluster.nodes[0].server.take(paused), None, "a waits");

    cluster.nodes[0].threads = 1;
    cluster.settle();
    let answer = cluster.nodes[0].server.take(paused).expect("a is applied");
    assert_eq!(answer.code, Code::Ok);
    assert_eq!(answer.gtid, cluster.nodes[0].replicator.last_committed());
    assert!(
        !has_heard_of_the_loss(&cluster),
        "its server is a donor still"
    );

    cluster.call(0, |ticket| Event::Resume { ticket });
    cluster.settle();
    assert!(has_heard_of_the_loss(&cluster));
    let synced = |cluster: &Cluster| {
        let after = cluster.nodes[0].server.happened.iter().rev();
        let mut after = after.take_while(|h| !matches!(h, Happened::Donate(_)));
        after.any(|h| *h == Happened::Synced)
    };
    assert_eq!((cluster.comment(0), synced(&cluster)), ("Joined", false));
    let gtid = answer.gtid;
    let sent = cluster.call(0, |ticket| Event::SstSent {
        ticket,
        gtid,
        rcode: 0,
    });
    assert_eq!(
        sent.expect("at once").code,
        Code::ConnFail,
        "nobody waits for it"
    );
    cluster.settle();
    assert_eq!((cluster.comment(0), synced(&cluster)), ("Synced", true));
}

/// Its server would have to become a donor while it disconnects. (Chosen after that: the simulator, seed 1004422.)
#[test]
fn who_leaves_is_not_asked_to_send() {
    let (mut cluster, _) = chosen(1);
    cluster.event(0, Event::Disconnect);
    cluster.nodes[0].threads = 1;
    cluster.settle();
    let happened = &cluster.nodes[0].server.happened;
    assert!(!happened.iter().any(|h| matches!(h, Happened::Donate(_))));
}

/// galera_3nodes.galera_sst_stateless counts these lines.
#[test]
fn the_log_tells_when_a_node_becomes_a_donor_and_ceases_to_be_one() {
    let (mut cluster, joiner) = chosen(1);
    comes_to_send(&mut cluster);
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    let told = |node: usize| -> Vec<&str> {
        let logs = cluster.nodes[node].logs.iter();
        let words = logs.filter_map(|text| text.strip_prefix("Shifting "));
        words
            .filter_map(|text| text.split(" (TO: ").next())
            .collect()
    };
    let donor = told(0);
    let about: Vec<_> = (donor.iter())
        .filter(|text| text.contains("DONOR"))
        .collect();
    assert_eq!(
        about,
        [&"SYNCED -> DONOR/DESYNCED", &"DONOR/DESYNCED -> JOINED"]
    );
    assert_eq!(donor.last(), Some(&"JOINED -> SYNCED"));
    let joined = told(joiner);
    assert_eq!(joined.first(), Some(&"OPEN -> JOINER"));
    assert_eq!(joined.last(), Some(&"JOINED -> SYNCED"));
}
