//! Which appends a flush covers, and a flush that does not end.

use trireme_log::Durability;
use trireme_replicator::Code;

use crate::node::Node;

/// What waits for the disk shares a flush, and nothing is acknowledged before.
#[test]
fn one_flush_serves_all_that_wait() {
    let mut node = Node::new(Durability::Disk, true);
    let first = node.certify();
    let rest: Vec<_> = (0..5).map(|_| node.certify()).collect();
    assert_eq!(node.out.flushes.len(), 1, "one at a time");
    assert_eq!(node.answer(first), None, "not before the flush");
    node.flush_ends();
    assert_eq!(node.answer(first), Some(Code::Ok));
    assert_eq!(node.out.flushes.len(), 1, "one for all that came meanwhile");
    assert!(rest.iter().all(|ticket| node.answer(*ticket).is_none()));
    node.flush_ends();
    assert!(
        rest.iter()
            .all(|ticket| node.answer(*ticket) == Some(Code::Ok))
    );
    assert!(node.out.flushes.is_empty());
}

/// What comes before a flush has begun shares it.
#[test]
fn a_flush_put_off_serves_what_came_meanwhile() {
    let mut node = Node::new(Durability::Disk, true);
    let tickets: Vec<_> = (0..3).map(|_| node.certify()).collect();
    let job = node.out.flushes.pop().expect("the first one's");
    let renewed = node.engine.renew_flush(job).expect("needed still");
    let again = node.engine.renew_flush(renewed).expect("needed still");
    node.out.flushes.push(again);
    node.flush_ends();
    assert!(
        tickets
            .iter()
            .all(|ticket| node.answer(*ticket) == Some(Code::Ok))
    );
    assert!(node.out.flushes.is_empty());
    // Nobody waits for a flush of a log that was given up.
    node.certify();
    let job = node.out.flushes.pop().expect("its own");
    node.engine.drop_link();
    assert!(node.engine.renew_flush(job).is_none());
}

/// Where acknowledgements wait for no flush, what is written is flushed beside them from time to time.
#[test]
fn a_view_change_does_not_find_everything_unflushed() {
    let unflushed = |node: &Node| {
        let link = node.engine.link().expect("connected");
        link.storage.unflushed_bytes()
    };
    for (durability, flushes_apart) in [(Durability::Os, true), (Durability::Memory, false)] {
        let mut node = Node::new(durability, flushes_apart);
        let mut flushes = 0;
        for _ in 0..12_000 {
            node.commit();
            flushes += node.out.flushes.len();
            assert!(node.out.flushes.iter().all(|job| !job.is_awaited()));
            assert!(unflushed(&node) <= (4 << 20) + 1_000);
            node.flush_ends();
        }
        assert_eq!(flushes > 0, flushes_apart);
    }
    // One at a time; if it fails, the node may have lost what it acknowledged.
    let mut node = Node::new(Durability::Os, true);
    while unflushed(&node) < 5 << 20 {
        node.commit();
    }
    assert_eq!(node.out.flushes.len(), 1);
    node.disk.set_fail_syncs(true);
    node.flush_ends();
    node.must_have_left(&["cannot flush", "trireme-0"]);
}

/// A disk that does not answer is told, as long as it does not, and when it does again.
#[test]
fn a_flush_that_does_not_end_is_told() {
    let mut node = Node::new(Durability::Disk, true);
    node.out.warnings.clear();
    node.certify();
    let told = |node: &Node, word: &str| {
        let warnings = node.out.warnings.iter();
        warnings.filter(|text| text.contains(word)).count()
    };
    let began = node.now_ms;
    while node.now_ms < began + 5_000 {
        assert_eq!(told(&node, "does not answer"), 0);
        node.settle();
    }
    node.settle();
    assert_eq!(told(&node, "does not answer"), 1, "{:?}", node.out.warnings);
    assert!(node.engine.link().is_some(), "it stays");
    while node.now_ms < began + 20_000 {
        node.settle();
    }
    assert_eq!(told(&node, "does not answer"), 2, "seldom");
    node.flush_ends();
    node.settle();
    assert_eq!(told(&node, "answers again"), 1);
}
