//! Provider options changed on a running node.

use super::trial::{SOON, Trial};

#[test]
fn a_changed_weight_is_known_to_all() {
    let Some(trial) = Trial::start(3, "") else {
        return;
    };
    for (node, option, total) in [
        (0, "pc.weight=3", "5"),
        (2, "pc.weight=2", "6"),
        (0, "pc.weight=1", "4"),
    ] {
        trial.set_option(node, option);
        for i in 0..3 {
            trial.await_status(i, "wsrep_cluster_weight", total, SOON);
        }
    }
}
