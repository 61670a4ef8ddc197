//! The script of a state transfer before an IST.

use trireme_certification::KeyType;

use super::clients::{copy_new, pulls};
use super::driver::{Cluster, incarnation};
use super::server::Happened;
use crate::{Action, Code, Event, Gtid, HostAction, Options, ScriptBeforeIst};

/// Two members; a third, whose server cannot do without the script, lacks two write-sets.
fn joining() -> (Cluster, usize, Gtid) {
    joining_with(ScriptBeforeIst::Always)
}

/// The same, whose server wants the script as told.
fn joining_with(script_before_ist: ScriptBeforeIst) -> (Cluster, usize, Gtid) {
    let mut cluster = Cluster::of(2);
    let (joiner, behind) = copy_new(&mut cluster);
    for key in ["a", "b"] {
        cluster.certify(0, key, KeyType::Exclusive);
        cluster.settle();
    }
    let options = Options {
        script_before_ist,
        ..Options::default()
    };
    cluster.event(joiner, Event::SetOptions(options));
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    (cluster, joiner, behind)
}

fn happened(cluster: &Cluster, node: usize, wanted: &Happened) -> usize {
    let all = cluster.nodes[node].server.happened.iter();
    all.filter(|h| *h == wanted).count()
}

/// The donor's script ends first: the joiner's server starts its storage engine before it says that it has received.
fn scripts_end(cluster: &mut Cluster, donor: usize, joiner: usize, gtid: Gtid) {
    let rcode = 0;
    cluster.call(donor, |ticket| Event::SstSent {
        ticket,
        gtid,
        rcode,
    });
    cluster.settle();
    cluster.call(joiner, |ticket| Event::SstReceived {
        ticket,
        gtid,
        rcode,
    });
}

fn script_ends(cluster: &mut Cluster, donor: usize, joiner: usize, gtid: Gtid) {
    scripts_end(cluster, donor, joiner, gtid);
    cluster.settle();
}

fn is_whole(cluster: &Cluster, joiner: usize) {
    assert_eq!(cluster.comment(joiner), "Synced");
    assert!(
        !cluster.nodes[joiner]
            .actions
            .contains(&Action::Host(HostAction::MarkUnsafe))
    );
    cluster.assert_settled();
}

#[test]
fn the_donor_passes_the_joiners_position_on_and_the_entries_follow() {
    let (mut cluster, joiner, behind) = joining();
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(happened(&cluster, joiner, &Happened::SstRequest), 1);
    assert_eq!(happened(&cluster, 0, &Happened::PassOn(behind)), 1);
    assert_eq!(cluster.comment(0), "Synced", "it copies nothing");
    let applied = cluster.nodes[joiner].replicator.last_committed();
    assert_eq!(applied, behind, "nothing before the script is over");
    // What it has counts meanwhile, and nobody's writes wait for the donor.
    assert!(cluster.nodes[joiner].replicator.database_follows());
    let trx = cluster.certify(0, "c", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(0, trx), Code::Ok);
    script_ends(&mut cluster, 0, joiner, behind);
    is_whole(&cluster, joiner);
    // The server may know of a later view than its database has come to: it is shown the one of its database first.
    let mut views = (cluster.nodes[joiner].server.happened.iter()).filter_map(|h| match h {
        Happened::View(view, _) if view.primary => Some(view),
        _ => None,
    });
    let first = views.next().unwrap();
    assert_eq!(first.gtid, behind);
    assert_eq!(first.members.len(), 3, "not as in the view before or after");
}

/// As in Galera: `wsrep_sst_donor` and segments choose the member that sends.
#[test]
fn the_entries_come_from_the_donor_that_ran_the_script() {
    let (mut cluster, joiner, behind) = joining();
    let options = Options {
        script_before_ist: ScriptBeforeIst::Always,
        sst_donor: "node1".to_owned(),
        ..Options::default()
    };
    cluster.event(joiner, Event::SetOptions(options));
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(happened(&cluster, 1, &Happened::PassOn(behind)), 1);
    scripts_end(&mut cluster, 1, joiner, behind);
    assert_eq!(pulls(&cluster, 1), [behind.seqno + 1]);
}

/// A second connection of one process: its server runs.
#[test]
fn a_server_that_runs_knows_its_domain() {
    let (mut cluster, joiner, behind) = joining();
    cluster.join(joiner, behind, true);
    cluster.settle();
    assert_eq!(happened(&cluster, joiner, &Happened::SstRequest), 0);
    is_whole(&cluster, joiner);
}

#[test]
fn a_server_that_wants_no_script_gets_the_entries_at_once() {
    let (mut cluster, joiner, behind) = joining();
    cluster.nodes[joiner].server.sst_request = Some(b"trivial\0".to_vec());
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(happened(&cluster, 0, &Happened::PassOn(behind)), 0);
    is_whole(&cluster, joiner);
}

fn desync_both(cluster: &mut Cluster) {
    for node in 0..2 {
        let ticket = cluster.nodes[node].server.ticket();
        cluster.event(node, Event::Desync { ticket });
    }
    cluster.settle();
}

/// A donor that is busy for an hour, or a member that is desynced, keeps nobody away.
#[test]
fn where_no_donor_is_free_only_a_server_that_needs_the_script_waits() {
    for (script, requests) in [
        (ScriptBeforeIst::IfDonorIsFree, 0),
        (ScriptBeforeIst::Always, 1),
    ] {
        let (mut cluster, joiner, behind) = joining_with(script);
        desync_both(&mut cluster);
        cluster.join(joiner, behind, false);
        cluster.settle();
        assert_eq!(
            happened(&cluster, joiner, &Happened::SstRequest),
            requests,
            "{script:?}"
        );
        assert_eq!(happened(&cluster, 0, &Happened::PassOn(behind)), 0);
        if requests == 0 {
            is_whole(&cluster, joiner);
        }
    }
}

#[test]
fn where_a_donor_is_free_the_script_runs_for_all_who_want_it() {
    for (script, requests) in [
        (ScriptBeforeIst::IfDonorIsFree, 1),
        (ScriptBeforeIst::Never, 0),
    ] {
        let (mut cluster, joiner, behind) = joining_with(script);
        cluster.join(joiner, behind, false);
        cluster.settle();
        assert_eq!(
            happened(&cluster, 0, &Happened::PassOn(behind)),
            requests,
            "{script:?}"
        );
        if requests > 0 {
            script_ends(&mut cluster, 0, joiner, behind);
        }
        is_whole(&cluster, joiner);
    }
}

/// A member that has died is in the view until somebody notices.
#[test]
fn a_donor_that_does_not_answer_is_not_waited_for() {
    let (mut cluster, joiner, behind) = joining_with(ScriptBeforeIst::IfDonorIsFree);
    cluster.join(joiner, behind, false);
    for node in 0..3 {
        while cluster.deliver(node) {}
    }
    cluster.receive(0);
    cluster.receive(joiner);
    assert_eq!(pulls(&cluster, 0), [behind.seqno + 1], "the check");
    cluster.nodes[0].inbox.clear();
    cluster.pass(1_001);
    cluster.settle();
    assert_eq!(happened(&cluster, joiner, &Happened::SstRequest), 0);
    is_whole(&cluster, joiner);
}

#[test]
fn where_nobody_can_run_the_donors_script_the_entries_come_without() {
    let (mut cluster, joiner, behind) = joining();
    cluster.reconfigure(|c| c.members.iter_mut().for_each(|m| m.never_donor = true));
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(happened(&cluster, joiner, &Happened::SstRequest), 0);
    is_whole(&cluster, joiner);
}

#[test]
fn another_donor_passes_the_position_on_if_the_first_leaves() {
    let (mut cluster, joiner, behind) = joining();
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(happened(&cluster, 0, &Happened::PassOn(behind)), 1);
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(0)));
    cluster.settle();
    assert_eq!(happened(&cluster, 1, &Happened::PassOn(behind)), 1);
    assert_eq!(happened(&cluster, joiner, &Happened::SstRequest), 1);
    script_ends(&mut cluster, 1, joiner, behind);
    is_whole(&cluster, joiner);
}

/// The server can be asked once only.
#[test]
fn who_loses_the_last_donor_within_the_script_starts_again() {
    let (mut cluster, joiner, behind) = joining();
    cluster.join(joiner, behind, false);
    cluster.settle();
    cluster.reconfigure(|c| {
        c.members.retain(|m| m.incarnation != incarnation(0));
        c.members.iter_mut().for_each(|m| m.never_donor = true);
    });
    cluster.settle();
    let fatal = cluster.nodes[joiner].fatal.as_deref().expect("it ends");
    assert!(fatal.contains("No member is left"), "{fatal}");
    assert!(
        !cluster.nodes[joiner]
            .actions
            .contains(&Action::Host(HostAction::MarkUnsafe))
    );
}

#[test]
fn who_finds_no_donor_any_more_starts_again() {
    let (mut cluster, joiner, behind) = joining();
    cluster.nodes[joiner].threads = 0;
    cluster.join(joiner, behind, false);
    cluster.nodes[joiner].threads = 0;
    cluster.settle();
    cluster.reconfigure(|c| c.members.iter_mut().for_each(|m| m.never_donor = true));
    cluster.settle();
    cluster.nodes[joiner].threads = 1;
    cluster.settle();
    let fatal = cluster.nodes[joiner].fatal.as_deref().expect("it ends");
    assert!(fatal.contains("No member is left"), "{fatal}");
}

#[test]
fn the_script_goes_on_when_the_log_begins_anew() {
    let (mut cluster, joiner, behind) = joining();
    cluster.join(joiner, behind, false);
    cluster.settle();
    cluster.reset(joiner);
    cluster.reconfigure(|_| ());
    cluster.settle();
    script_ends(&mut cluster, 0, joiner, behind);
    assert_eq!(happened(&cluster, joiner, &Happened::SstRequest), 1);
    is_whole(&cluster, joiner);
}
