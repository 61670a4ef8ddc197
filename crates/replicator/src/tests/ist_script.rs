//! The script of a state transfer before an IST.

use trireme_certification::KeyType;
use trireme_group::{Fate, Position, Uuid};

use super::clients::{copy_new, pulls};
use super::driver::{Cluster, incarnation, member};
use super::server::Happened;
use crate::{Action, Code, Event, Gtid, HostAction, Note, Options, ScriptBeforeIst, Seqno, View};

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
    let views = (cluster.nodes[joiner].server.happened.iter()).filter_map(|h| match h {
        Happened::View(view, _) if view.primary => Some(view),
        _ => None,
    });
    let views: Vec<&View> = views.collect();
    assert_eq!(views[0].gtid, behind);
    assert_eq!(views[0].members.len(), 3, "not as in its tables");
    // A view with the members of the one before would undo streaming transactions that the others keep.
    let names = |view: &View| -> Vec<_> { view.members.iter().map(|m| m.incarnation).collect() };
    let repeats = (views.windows(2)).any(|pair| names(pair[0]) == names(pair[1]));
    assert!(!repeats, "{views:?}");
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

/// The members go on without what lies above `position`. Then the joiner's log is replaced by theirs.
fn fork_after(cluster: &mut Cluster, joiner: usize, position: Position) {
    cluster.reconfigure(|c| {
        c.override_id = Some(Uuid([3; 16]));
        c.fork_after = position;
    });
    for node in 0..2 {
        while cluster.deliver(node) {}
    }
    cluster.reset(joiner);
    cluster.reconfigure(|c| (c.override_id, c.fork_after) = (None, 0));
}

/// Returns true if a node has noted that its database follows that override.
fn follows_fork(cluster: &Cluster, node: usize) -> bool {
    let is_it = |(id, _): &(Uuid, Seqno)| *id == Uuid([3; 16]);
    let mut actions = cluster.nodes[node].actions.iter();
    actions.any(|action| {
        matches!(action, Action::Note(Note::Overrides { overrides }) if overrides.iter().any(is_it))
    })
}

/// The script would leave the database in place, with entries that the cluster has dropped. The server has prepared
/// itself for either.
#[test]
fn a_fork_before_the_request_makes_a_snapshot_of_the_script() {
    for is_prepared in [false, true] {
        let (mut cluster, joiner, behind) = joining();
        cluster.join(joiner, behind, false);
        cluster.nodes[joiner].threads = 0;
        cluster.settle();
        assert!(cluster.nodes[joiner].replicator.database_follows());
        fork_after(&mut cluster, joiner, 1);
        if is_prepared {
            cluster.nodes[joiner].threads = 1;
            while cluster.take_work(joiner) | cluster.step_applier(joiner, 0) {}
        }
        cluster.settle();
        cluster.nodes[joiner].threads = 4;
        cluster.settle();
        assert_eq!(happened(&cluster, joiner, &Happened::SstRequest), 1);
        assert_eq!(happened(&cluster, 0, &Happened::PassOn(behind)), 0);
        assert!(!cluster.nodes[joiner].replicator.database_follows());
        assert!(!follows_fork(&cluster, joiner));
        cluster.snapshot_from(0, joiner);
        cluster.settle();
        assert_eq!(cluster.comment(joiner), "Synced");
        assert!(follows_fork(&cluster, joiner));
        cluster.assert_settled();
    }
}

/// A donor that was lost may still have passed the position on: a snapshot could not be told from it.
#[test]
fn a_fork_after_the_request_ends_the_process() {
    let (mut cluster, joiner, behind) = joining();
    desync_both(&mut cluster);
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(
        cluster.comment(joiner),
        "Joining: State Transfer request failed"
    );
    fork_after(&mut cluster, joiner, 1);
    cluster.settle();
    for node in 0..2 {
        let ticket = cluster.nodes[node].server.ticket();
        cluster.event(node, Event::Resync { ticket });
    }
    cluster.settle();
    let fatal = cluster.nodes[joiner].fatal.as_deref().expect("it ends");
    assert!(fatal.contains("forked"), "{fatal}");
    assert!(!follows_fork(&cluster, joiner));
}

/// The database holds nothing that was dropped.
#[test]
fn a_fork_above_the_database_leaves_the_script() {
    let (mut cluster, joiner, behind) = joining();
    cluster.join(joiner, behind, false);
    cluster.nodes[joiner].threads = 0;
    cluster.settle();
    let end = cluster.order.last().map_or(0, |(position, _)| *position);
    fork_after(&mut cluster, joiner, end);
    cluster.settle();
    cluster.nodes[joiner].threads = 4;
    cluster.settle();
    assert_eq!(happened(&cluster, 0, &Happened::PassOn(behind)), 1);
    assert!(follows_fork(&cluster, joiner));
    script_ends(&mut cluster, 0, joiner, behind);
    is_whole(&cluster, joiner);
}

/// The cluster goes on with a database that may hold DDL twice (rule 13): no entry is dropped, but this database cannot
/// follow.
#[test]
fn a_choice_of_another_database_makes_a_snapshot_of_the_script() {
    let (mut cluster, joiner, behind) = joining();
    cluster.join(joiner, behind, false);
    cluster.nodes[joiner].threads = 0;
    cluster.settle();
    cluster.believes = false;
    for node in 0..2 {
        let control = cluster.nodes[node].replicator.context_mut().control_mut();
        let forks = &mut control.expect("in step").forks;
        forks.choose(9, incarnation(0), behind.seqno);
    }
    cluster.reset(joiner);
    cluster.reconfigure(|_| ());
    cluster.settle();
    cluster.nodes[joiner].threads = 4;
    cluster.settle();
    assert!(!cluster.nodes[joiner].replicator.database_follows());
    assert_eq!(happened(&cluster, joiner, &Happened::SstRequest), 1);
    assert_eq!(happened(&cluster, 0, &Happened::PassOn(behind)), 0);
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

/// The order here may do without the request that has brought the position (rule 11).
#[test]
fn a_position_that_came_before_a_lost_request_was_ordered_ends_the_joiner() {
    let (mut cluster, joiner, behind) = joining();
    cluster.join(joiner, behind, false);
    while happened(&cluster, joiner, &Happened::SstRequest) == 0 {
        while cluster.deliver(0) | cluster.deliver(1) | cluster.deliver(joiner) {}
        while cluster.receive(0) | cluster.receive(1) | cluster.receive(joiner) {}
        cluster.take_work(joiner);
        cluster.step_applier(joiner, 0);
        cluster.pass(100);
    }
    cluster.step_applier(joiner, 0);
    let id = cluster.last_submission(joiner);
    cluster.call(joiner, |ticket| Event::SstReceived {
        ticket,
        gtid: behind,
        rcode: 0,
    });
    assert!(cluster.nodes[joiner].fatal.is_none());
    let fate = Fate::Unknown;
    cluster.event(joiner, Event::Failed { id, fate });
    let component = vec![member(joiner)];
    cluster.event(joiner, Event::NonPrimary { component });
    let fatal = cluster.nodes[joiner].fatal.as_deref();
    assert!(fatal.is_some_and(|text| text.contains("The majority was lost before")));
}
