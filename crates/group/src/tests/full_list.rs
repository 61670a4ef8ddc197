//! A history with as many overrides as nodes can note (`OVERRIDES_MAX`).

use super::branches::{OVERRIDE, alarms, all_primary, force};
use super::cores::{Cores, HISTORY, member};
use super::unmade_views::all_die;
use crate::branches::OVERRIDES_MAX;
use crate::config::Config;
use crate::event::{Event, Recovered};
use crate::ids::Uuid;
use crate::message::{ComponentState, Message};

fn override_number(number: usize) -> Uuid {
    let mut bytes = [9; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Uuid(bytes)
}

/// One node of two, with so many overrides in its history, alone.
fn with_overrides(count: usize, config: Config) -> Cores {
    let mut cores = Cores::none();
    cores.start_with(config, Recovered::default());
    cores.start(member(1), Recovered::default());
    cores.event(
        0,
        Event::Bootstrap {
            history: HISTORY,
            overrides: (0..count).map(override_number).collect(),
            override_id: None,
        },
    );
    cores.pass(1_000);
    cores.all_joined();
    cores.pass(1_000);
    assert!(all_primary(&cores, &[0, 1]));
    cores.kill(1);
    cores
}

#[test]
fn a_history_takes_as_many_overrides_as_can_be_noted() {
    let config = || Config::new(member(0));
    let mut cores = with_overrides(OVERRIDES_MAX - 1, config());
    cores.pass(8_000);
    force(&mut cores, 0);
    cores.pass(1_000);
    assert!(all_primary(&cores, &[0]));
    assert_eq!(alarms(&cores, 0), [] as [&str; 0]);

    let mut cores = with_overrides(OVERRIDES_MAX, config());
    cores.pass(8_000);
    let (term, end) = (cores.nodes[0].group.term(), cores.nodes[0].group.end());
    force(&mut cores, 0);
    let told = alarms(&cores, 0);
    assert!(told[0].contains("has changed nothing"), "{told:?}");
    assert!(told[0].contains("after a loss of power"), "{told:?}");
    // Nor does somebody with a shorter log get it to.
    let take = Message::TakeLeadership {
        number: term.number + 1,
        forced: Some(OVERRIDE),
    };
    cores.nodes[0].group.role.follow();
    let elsewhere = cores.start(member(2), Recovered::default());
    cores.say(elsewhere, 0, take);
    assert_eq!(alarms(&cores, 0).len(), 2);
    assert_eq!(cores.component_state(0), ComponentState::NonPrimary);
    assert_eq!(cores.nodes[0].group.term(), term);
    assert_eq!(cores.nodes[0].group.end(), end);
}

#[test]
fn the_last_automatic_override_is_that_with_which_the_list_is_full() {
    for (count, goes_on) in [(OVERRIDES_MAX - 1, true), (OVERRIDES_MAX, false)] {
        let config = Config {
            ignore_split_brain: true,
            ..Config::new(member(0))
        };
        let mut cores = with_overrides(count, config);
        cores.pass(20_000);
        assert_eq!(all_primary(&cores, &[0]), goes_on);
        let told = alarms(&cores, 0).len();
        assert_eq!(told, usize::from(!goes_on), "once");
        assert_eq!(cores.nodes[0].group.overrides_in_log().len(), OVERRIDES_MAX);
    }
}

/// All lose power in `os` mode: that they go on by themselves counts as an override (rule 4).
#[test]
fn a_full_list_keeps_voters_that_have_forgotten_from_going_on() {
    for (count, goes_on) in [(OVERRIDES_MAX - 1, true), (OVERRIDES_MAX, false)] {
        let mut left = all_die(3, true);
        left.overrides = (0..count).map(override_number).collect();
        let mut cores = Cores::none();
        (0..3).for_each(|node| left.clone().comes_back(&mut cores, node));
        cores.pass(120_000);
        assert_eq!(all_primary(&cores, &[0, 1, 2]), goes_on);
        let told: Vec<_> = (0..3).flat_map(|node| alarms(&cores, node)).collect();
        assert_eq!(told.is_empty(), goes_on, "{told:?}");
        assert!(told.len() <= 3 * 13, "once in 10 s, not {}", told.len());
        assert!(
            told.iter()
                .all(|text| text.contains("after a loss of power"))
        );
    }
}
