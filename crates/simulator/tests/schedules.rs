//! A few schedules of each profile, and what `shrink` prints makes the same plan again.

use std::ops::Range;

use clap::Parser;
use simulator::coverage::Coverage;
use simulator::edit::Edit;
use simulator::run::run;
use simulator::{profiles, regressions};

#[test]
fn a_schedule_of_each_profile_is_clean_and_does_something() {
    for profile in profiles::ALL {
        let edit = Edit::whole(3, Some(profile.name.to_owned()));
        let outcome = run(edit.plan().expect("the profile exists"));
        assert_eq!(outcome.violation, None, "{}", profile.name);
        assert!(outcome.coverage.commits > 50, "{}", profile.name);
    }
}

/// Runs schedules of one profile, which must be clean.
fn clean(profile: &str, seeds: Range<u64>) -> Coverage {
    let mut all = Coverage::default();
    for seed in seeds {
        let edit = Edit::whole(seed, Some(profile.to_owned()));
        let outcome = run(edit.plan().expect("the profile exists"));
        assert_eq!(outcome.violation, None, "{seed}");
        all.add(&outcome.coverage);
    }
    all
}

#[test]
fn groups_keep_their_promises_under_faults() {
    let all = clean("group", 0..40);
    assert!(all.views > 200 && all.truncations > 5, "{all}");
    assert!(all.leaderships > 40 && all.resumed > 20, "{all}");
}

#[test]
fn lies_are_told_and_end_no_node() {
    let all = clean("liars", 0..10);
    assert!(all.lies > 100, "{all}");
    assert!(all.deceived < all.lies / 10, "{all}");
}

#[test]
fn disks_fail_in_pending_views_and_hang_until_it_is_noticed() {
    let mut all = clean("disks", 200..230);
    all.add(&clean("disks", 510..540));
    assert!(all.spoiled_pending > 0 && all.cut_off_pending > 0, "{all}");
    assert!(all.lacked_room > 0, "{all}");
    assert!(all.hangs > 0 && all.handed_for_hang > 0, "{all}");
}

#[test]
fn the_operators_mistakes_take_effect() {
    let all = clean("mistakes", 20..60);
    assert!(all.beside > 0 && all.without_vote > 0, "{all}");
    assert!(
        all.split_brain_ignored > 0 && all.quorum_ignored > 0,
        "{all}"
    );
}

#[test]
fn the_arguments_of_an_edit_make_it_again() {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        edit: Edit,
    }
    let edit = Edit {
        seed: 5,
        profile: Some("two".to_owned()),
        faults: Some(vec![0, 3]),
        calm_ms: Some(4000),
        clients: Some(1),
        plain_load: true,
        leadership_stays: true,
        as_shipped: true,
        ist_alone: true,
        gtid_scripts_only: true,
        old_disk_faults: true,
        plain_connects: true,
        shared_jitter: true,
        no_faults: false,
    };
    let arguments = format!("simulator {}", edit.arguments());
    let line = Line::try_parse_from(arguments.split_whitespace()).expect("it parses");
    assert_eq!(line.edit, edit);
}

#[test]
fn fewer_faults_leave_the_rest_of_the_plan_as_it_is() {
    let whole = Edit::whole(11, Some("mixed".to_owned()));
    let some = Edit {
        faults: Some(vec![1]),
        ..whole.clone()
    };
    let (whole, some) = (whole.plan().expect("exists"), some.plan().expect("exists"));
    assert_eq!(some.faults, whole.faults[1..2]);
    assert_eq!(some.delay_us, whole.delay_us);
}

#[test]
fn what_was_found_once_is_not_there_any_more() {
    assert_eq!(regressions::run_all(regressions::LIST, None), Ok(true));
}
