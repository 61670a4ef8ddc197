//! Checkpoints that are larger than the log takes.

use trireme_log::Durability;
use trireme_replicator::Gtid;

use crate::node::Node;

/// All members have the same state: if each left for it, the whole cluster would end, and end again after each restart.
#[test]
fn a_node_goes_on_without_a_checkpoint_that_is_too_large() {
    const FEW: u64 = 10;
    let mut node = Node::new(Durability::Os, false);
    node.commit();
    node.engine.drop_link();
    let local = node.engine.replicator.last_committed();
    let connect = |node: &mut Node, incarnation, local: Gtid, checkpoint_bytes_max| {
        let mut start = node.start(incarnation, Durability::Os, false, None, local);
        start.thresholds.checkpoint_bytes_max = checkpoint_bytes_max;
        // Each write-set makes a checkpoint due.
        (start.log.size_bytes, start.log.segment_bytes) = (1, 200);
        node.engine.connect(node.now_ms, start).expect("a log");
        node.settle();
    };
    connect(&mut node, 2, local, FEW);
    let warned = |node: &Node| {
        let is_it = |text: &&String| text.contains("gets no checkpoint");
        node.out.warnings.iter().filter(is_it).count()
    };
    let before = node.engine.link().expect("connected").storage.log_bytes();
    for _ in 0..50 {
        node.commit();
    }
    node.settle();
    assert_eq!(node.out.failures, [""; 0]);
    let grown = node.engine.link().expect("it stays").storage.log_bytes() - before;
    assert!(grown > 50 * 300, "nothing is dropped");
    let attempts = warned(&node);
    // A checkpoint takes more than 400 bytes here.
    assert!(
        attempts > 1 && attempts <= 1 + grown as usize / 400,
        "{attempts} for {grown} bytes"
    );

    // The next process goes on with the log, and has a checkpoint that it takes.
    node.engine.drop_link();
    let local = node.engine.replicator.last_committed();
    connect(&mut node, 3, local, 1 << 20);
    let link = node.engine.link().expect("connected");
    assert!(link.storage.resumed().is_some());
    for _ in 0..3 {
        node.commit();
    }
    assert_eq!(warned(&node), attempts);
    assert!(
        !node
            .engine
            .link()
            .expect("connected")
            .storage
            .wants_snapshot()
    );
}
