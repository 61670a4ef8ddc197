//! Checkpoints that come late, or twice: what a member has acknowledged in a term it holds as long as that lasts.

use super::cores::Cores;
use crate::checkpoint::Checkpoint;
use crate::event::Action;
use crate::ids::{Position, Term};
use crate::message::Message;

/// Node 2 missed an entry that node 0 cannot read any more.
fn lagging() -> Cores {
    let mut cores = Cores::of(5);
    cores.nodes[0].group.config_mut().tail_bytes = 1;
    cores.part(&[2], &[0, 1, 3, 4]);
    let missed = cores.nodes[0].group.end() + 1;
    (1..=5).for_each(|number| cores.submit(0, number));
    cores.nodes[0].log.lose(missed);
    cores.arrived.clear();
    cores
}

/// What node 2 asks for when it lags: it is fed from where its log ends.
fn ask(cores: &mut Cores) {
    let group = &cores.nodes[2].group;
    let message = Message::Summary {
        term: group.term(),
        summary: group.log.tail().summary(group.commit()),
    };
    cores.say(2, 0, message);
}

fn installs(cores: &Cores) -> usize {
    let to_2 = cores.arrived.iter().filter(|(to, _)| *to == 2);
    to_2.filter(|(_, message)| matches!(message, Message::Install { .. }))
        .count()
}

/// Node 2 asks twice before the first answer is there. The second one is older than what it has acknowledged by then; what
/// follows it is lost.
#[test]
fn a_second_checkpoint_drops_nothing_that_was_acknowledged() {
    let mut cores = lagging();
    cores.cut.remove(&(0, 2));
    cores.cut.remove(&(2, 0));
    cores.lines_ms.insert((0, 2), 600);
    ask(&mut cores);
    // 6 and 7 are with nodes 1 and 3, whose word is on its way; 8 and 9 are on their way to node 2 only.
    cores.lines_ms.insert((1, 0), 50);
    cores.lines_ms.insert((3, 0), 50);
    cores.part(&[0], &[4]);
    (6..=7).for_each(|number| cores.submit(0, number));
    cores.part(&[0], &[1, 3]);
    (8..=9).for_each(|number| cores.submit(0, number));
    let end = cores.nodes[0].group.end();
    cores.cut.remove(&(1, 0));
    cores.cut.remove(&(3, 0));
    cores.pass_for(&[], 50);
    cores.part(&[0], &[1, 3]);
    assert_eq!(cores.nodes[0].group.commit(), end - 2);
    cores.lost = |message| matches!(message, Message::Append(_));
    ask(&mut cores);
    cores.lost = |_| false;
    cores.cut.remove(&(0, 4));
    cores.cut.remove(&(4, 0));
    cores.pass_for(&[0, 4], 550);
    assert_eq!(installs(&cores), 1);
    assert_eq!(cores.nodes[0].group.commit(), end, "0, 2 and 4 hold it");
    assert!(cores.nodes[2].group.commit() < end - 2, "2 does not know");
    let committed = cores.log_of(0);
    cores.pass_for(&[], 50);
    assert_eq!(installs(&cores), 2);
    assert_eq!(cores.nodes[2].group.end(), end, "2 holds what it said");

    cores.kill(0);
    cores.kill(4);
    cores.cut.clear();
    cores.lines_ms.clear();
    cores.pass(5_000);
    let kept = cores.log_of(1);
    let last = committed.last();
    assert_eq!(kept.iter().find(|e| e.position == end), last);
}

/// Node 1 holds what node 0 has ordered, of which the last three entries are not committed.
fn ahead() -> (Cores, Checkpoint, Position) {
    let mut cores = Cores::of(5);
    (1..=3).for_each(|number| cores.submit(0, number));
    cores.part(&[2, 3, 4], &[0, 1]);
    (4..=6).for_each(|number| cores.submit(0, number));
    let checkpoint = cores.nodes[0].group.checkpoint().clone();
    let end = cores.nodes[0].group.end();
    assert_eq!(
        (checkpoint.position, cores.nodes[1].group.end()),
        (end - 3, end)
    );
    (cores, checkpoint, end)
}

fn install(cores: &mut Cores, checkpoint: &Checkpoint) {
    let message = Message::Install {
        term: cores.nodes[0].group.term(),
        checkpoint: checkpoint.clone(),
        intact_at: 0,
    };
    cores.say(0, 1, message);
}

/// No correct leader sends it: the order that it was acknowledged in would not be the one that is installed.
#[test]
fn a_checkpoint_that_contradicts_what_was_acknowledged_is_refused() {
    let (mut cores, checkpoint, end) = ahead();
    let other = Checkpoint {
        position: end - 1,
        term: Term::default(),
        ..checkpoint
    };
    let before = cores.log_of(1);
    install(&mut cores, &other);
    assert_eq!(cores.log_of(1), before);
    let told = |action: &Action| matches!(action, Action::Note { text } if text.contains("has another entry"));
    assert!(cores.nodes[1].actions.iter().any(told));
}

/// What it was fed from the checkpoint on connects with what it has, and the leader knows how far that goes.
#[test]
fn who_keeps_its_log_is_fed_from_its_end() {
    let (mut cores, checkpoint, end) = ahead();
    install(&mut cores, &checkpoint);
    cores.cut.clear();
    cores.arrived.clear();
    cores.submit(0, 7);
    cores.pass(200);
    assert_eq!(cores.nodes[1].group.end(), end + 1);
    assert_eq!(cores.acked(0, 1), end + 1);
    assert_eq!(cores.nodes[0].group.commit(), end + 1);
    assert!(cores.log_of(0).ends_with(&cores.log_of(1)));
}
