//! The state transfer alone: its stages, and what waits for them.

use trireme_group::Uuid;

use super::*;
use crate::control::Control;
use crate::forks::Forks;
use crate::gtid::Gtid;
use crate::member_state::{MemberState, NodeState};

fn me() -> Incarnation {
    Incarnation(Uuid([1; 16]))
}

fn donor() -> Incarnation {
    Incarnation(Uuid([2; 16]))
}

fn request() -> Bytes {
    Bytes::from_static(b"rsync")
}

/// The server awaits a snapshot, and the order is asked for a donor.
fn asking() -> StateTransfer {
    let mut transfer = StateTransfer::closed();
    transfer.start_over();
    transfer.begin_sst(9);
    let prepared = transfer.server_prepared(Some(request()));
    assert_eq!(prepared, Prepared::Now(Some(request())));
    transfer.ask_donor(request(), 100);
    transfer
}

fn received() -> Gtid {
    Gtid {
        uuid: Uuid([7; 16]),
        seqno: 9,
    }
}

fn brought() -> Resumed {
    let (gtid, rcode) = (received(), 0);
    Resumed::Brought { gtid, rcode }
}

/// A control state in which the donor is a member, and sends or does not.
fn control(is_member: bool, sends: bool) -> Control {
    let mut control = Control::found(Uuid([7; 16]), 9, Forks::default(), 1_000);
    if is_member {
        let mut state = MemberState::new(NodeState::Donor);
        state.donates_to = sends.then(me);
        control.members.tampered().1.insert(donor(), state);
    }
    control
}

#[test]
fn a_request_is_made_again_until_a_donor_is_chosen() {
    let mut transfer = asking();
    assert_eq!(transfer.due_request(99), None);
    assert_eq!(transfer.due_request(100), Some(request()));
    assert_eq!(transfer.due_request(100), None);
    assert!(transfer.is_request_open(), "it is under way");
    transfer.request_failed(false, 200);
    assert!(!transfer.is_request_open(), "nobody can send");
    transfer.due_request(1_200);
    transfer.request_failed(true, 200);
    assert!(transfer.is_request_open(), "it may be under way");
    assert_eq!(transfer.due_request(1_199), None);
    assert_eq!(transfer.due_request(1_200), Some(request()));
    transfer.donor_chosen(donor());
    assert_eq!(transfer.receives_from(), Some(donor()));
    assert_eq!(transfer.donor_is_done(me()), Done::Unasked);
    assert_eq!(transfer.donor_is_done(donor()), Done::Sent);
    assert_eq!(transfer.receives_from(), None);
    assert_eq!(transfer.donor(), Some(donor()), "it has the entries behind");
    assert_eq!(transfer.server_received(received(), 0), Received::Now);
    assert!(transfer.tells_nobody_has() && !transfer.tells_nobody_has());
}

#[test]
fn a_transfer_outlasts_a_log_that_begins_anew() {
    let resumed = |control: &Control, is_forked| {
        let mut transfer = asking();
        transfer.donor_chosen(donor());
        transfer.log_begins_anew();
        assert_eq!(transfer.place(), Place::Admission);
        assert!(transfer.is_interrupted() && transfer.is_with_scripts());
        let resumed = transfer.resume(control, me(), is_forked, 300);
        assert!(!transfer.is_interrupted());
        (resumed, transfer.receives_from())
    };
    let sends = (Resumed::GoesOn, Some(donor()));
    assert_eq!(resumed(&control(true, true), false), sends);
    assert_eq!(
        resumed(&control(true, false), false),
        (Resumed::GoesOn, None)
    );
    let lost = (Resumed::DonorLost(donor()), None);
    assert_eq!(resumed(&control(false, false), false), lost);
    assert_eq!(resumed(&control(true, true), true).0, Resumed::Forked);
}

#[test]
fn the_servers_word_is_kept_until_the_order_is_known_again() {
    let after = |control: &Control| {
        let mut transfer = asking();
        transfer.donor_chosen(donor());
        transfer.log_begins_anew();
        assert_eq!(transfer.server_received(received(), 0), Received::Kept);
        let resumed = transfer.resume(control, me(), false, 0);
        (resumed, transfer.receives_from())
    };
    assert_eq!(after(&control(true, false)), (brought(), None));
    let waits = (Resumed::GoesOn, Some(donor()));
    assert_eq!(after(&control(true, true)), waits);
    let lost = (Resumed::DonorLost(donor()), None);
    assert_eq!(after(&control(false, false)), lost);

    let mut transfer = StateTransfer::closed();
    assert_eq!(transfer.server_received(received(), 0), Received::Unasked);
    transfer.start_over();
    transfer.begin_sst(9);
    transfer.log_begins_anew();
    assert_eq!(transfer.server_prepared(None), Prepared::Kept);
    let prepared = Resumed::Prepared(None);
    assert_eq!(
        transfer.resume(&control(true, false), me(), false, 0),
        prepared
    );
}

/// The donor may be on another branch, whose entries the snapshot holds (simulator, seed 1242 of `mistakes`).
#[test]
fn a_snapshot_is_not_used_before_the_order_here_has_chosen_its_donor() {
    let mut transfer = asking();
    transfer.due_request(100);
    assert_eq!(transfer.server_received(received(), 0), Received::Kept);
    assert!(transfer.is_early() && transfer.is_request_open() && transfer.is_sent());
    assert_eq!(
        transfer.donor_chosen(donor()),
        None,
        "it may have gone on elsewhere"
    );
    assert!(!transfer.is_early() && !transfer.is_request_open() && transfer.is_sent());
    assert_eq!(transfer.donor_is_done(donor()), Done::Here(received()));
    assert_eq!(transfer.donor_is_done(donor()), Done::Unasked);

    // An earlier request was given up, and is made again: either may have brought it.
    let mut transfer = asking();
    transfer.due_request(100);
    transfer.request_failed(true, 100);
    transfer.due_request(1_100);
    assert_eq!(transfer.server_received(received(), 0), Received::Foreign);
    assert_eq!(transfer.server_received(received(), -1), Received::Now);

    // The log begins anew, and only the control state tells whether the donor was chosen on this branch.
    for sends in [true, false] {
        let mut transfer = asking();
        transfer.due_request(100);
        transfer.log_begins_anew();
        assert!(transfer.is_request_open());
        assert_eq!(transfer.server_received(received(), 0), Received::Kept);
        assert!(transfer.is_request_open());
        let resumed = transfer.resume(&control(true, sends), me(), false, 300);
        match sends {
            true => assert_eq!(resumed, Resumed::GoesOn),
            false => assert_eq!(resumed, Resumed::Forked),
        }
        assert_eq!(transfer.receives_from(), sends.then(donor));
    }
}

/// The donor may be cut off here, and send what a forced view has brought (simulator, seed 3600337149 of `mistakes`).
#[test]
fn a_snapshot_is_not_used_before_its_donor_has_reported_here() {
    let mut transfer = asking();
    transfer.donor_chosen(donor());
    assert_eq!(transfer.server_received(received(), 0), Received::Kept);
    assert_eq!(transfer.server_received(received(), 0), Received::Unasked);
    assert_eq!(transfer.receives_from(), Some(donor()), "its loss counts");
    assert!(!transfer.is_early() && !transfer.is_request_open() && transfer.is_sent());
    assert_eq!(transfer.donor_is_done(me()), Done::Unasked);
    assert_eq!(transfer.donor_is_done(donor()), Done::Here(received()));
    assert_eq!(transfer.donor(), Some(donor()), "it has the entries behind");

    let mut transfer = asking();
    transfer.donor_chosen(donor());
    assert_eq!(transfer.server_received(received(), -1), Received::Now);

    // The control state tells whether the donor has finished.
    for (sends, resumed) in [(true, Resumed::GoesOn), (false, brought())] {
        let mut transfer = asking();
        transfer.donor_chosen(donor());
        transfer.server_received(received(), 0);
        transfer.log_begins_anew();
        assert_eq!(
            transfer.resume(&control(true, sends), me(), false, 300),
            resumed
        );
    }
}

/// It moves no rows.
#[test]
fn the_position_that_a_script_passes_on_needs_no_report() {
    let mut transfer = StateTransfer::closed();
    transfer.start_over();
    let ist = Ist::of_database((5, 9), VecDeque::new(), true, false, 0);
    transfer.begin_ist(9, ist);
    assert!(transfer.run_script());
    transfer.server_prepared(Some(request()));
    transfer.ask_donor(request(), 100);
    transfer.due_request(100);
    assert_eq!(transfer.server_received(received(), 0), Received::Kept);
    assert_eq!(transfer.donor_chosen(donor()), Some(received()));
}

/// It goes on to wait for the donor that the control state names.
#[test]
fn a_donor_that_was_chosen_meanwhile_is_known_from_the_control_state() {
    let mut transfer = asking();
    transfer.due_request(100);
    transfer.log_begins_anew();
    let resumed = transfer.resume(&control(true, true), me(), false, 300);
    assert_eq!(resumed, Resumed::GoesOn);
    assert_eq!(transfer.receives_from(), Some(donor()));
}

#[test]
fn callbacks_wait_until_a_transfer_is_through() {
    let mut transfer = StateTransfer::closed();
    let mut executor = Executor::new();
    let later = || (Task::Synced, None, Payload::None);
    transfer.queue(later(), &mut executor);
    assert!(transfer.finish(9).is_empty());
    transfer.start_over();
    transfer.queue(later(), &mut executor); // nobody will miss it
    transfer.begin_sst(9);
    transfer.queue(later(), &mut executor);
    assert_eq!(transfer.finish(9).len(), 1);
    assert_eq!((transfer.place(), transfer.joined_at()), (Place::Active, 9));
    assert!(executor.queue().is_idle());
    transfer.queue(later(), &mut executor);
    assert!(!executor.queue().is_idle());
}

#[test]
fn a_script_before_an_ist_is_no_snapshot() {
    let mut transfer = StateTransfer::closed();
    transfer.start_over();
    assert!(!transfer.run_script(), "nothing is pulled");
    let ist = Ist::of_database((5, 9), VecDeque::new(), true, false, 0);
    transfer.begin_ist(9, ist);
    assert!(transfer.run_script() && transfer.awaits_script());
    assert!(transfer.is_with_scripts() && !transfer.awaits_snapshot());
    assert!(transfer.end_script() && transfer.script_is_over());
    assert!(!transfer.has_run_no_script() && !transfer.awaits_script());
}
