//! All members are here (rule 4): a promise proves the same when its giver is gone.

use super::cores::{Cores, replica};
use super::unmade_views::all_die;
use crate::event::{Action, Event};
use crate::ids::Uuid;

/// The nodes that found the history anew above their databases.
fn with_database(cores: &Cores) -> Vec<usize> {
    let from_database = |action: &Action| match action {
        Action::Reform { from_database, .. } => *from_database,
        _ => false,
    };
    let nodes = 0..cores.nodes.len();
    let founds = |node: &usize| cores.nodes[*node].actions.iter().any(from_database);
    nodes.filter(founds).collect()
}

/// Node 0 stands, has waited long enough, and has the promise of node 2, but not yet that of node 1.
fn awaits_the_last(cores: &mut Cores) -> bool {
    let group = &mut cores.nodes[0].group;
    let promises = group.role.candidacy().and_then(|c| c.promises.as_ref());
    let has = |node| promises.is_some_and(|promises| promises.giver(replica(node)).is_some());
    has(2) && !has(1) && group.elections().has_heard_around()
}

/// The owner of the furthest database has promised, and its connection ends before the last promise comes.
#[test]
fn the_furthest_database_counts_when_its_owner_is_gone() {
    for overrides in [vec![], vec![Uuid([9; 16])]] {
        let mut left = all_die(3, true);
        left.overrides = overrides;
        let mut cores = Cores::none();
        for (node, database) in [(0, 7), (1, 6), (2, 9)] {
            left.database = database;
            left.clone().comes_back(&mut cores, node);
        }
        // Only node 0 hears all.
        cores.part(&[1], &[2]);
        cores.lines_ms.insert((1, 0), 200);
        cores.step_ms = 10;
        while !awaits_the_last(&mut cores) {
            cores.pass(10);
            assert!(cores.now() < 60_000, "it never comes to this");
        }
        cores.part(&[0], &[2]);
        for (node, peer) in [(0, 2), (2, 0)] {
            let incarnation = cores.incarnation(peer);
            cores.event(node, Event::PeerDown { incarnation });
        }
        cores.pass(1_000);
        assert_eq!(with_database(&cores), [], "{:?}", left.overrides);
        cores.cut.clear();
        cores.reconnect(0, 2);
        cores.pass(30_000);
        assert_eq!(with_database(&cores), [2], "{:?}", left.overrides);
    }
}
