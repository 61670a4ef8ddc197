//! A transaction never commits after its client was told of a certain failure (rule 7).
//!
//! If a certain failure commits after all, a payment is made twice. A failed certification (TRX_FAIL) is final for
//! ever: the verdict is a function of the log (an override makes two logs, with a verdict each). CONN_FAIL means "not
//! ordered, and withdrawn". It holds while the origin's process lives and remembers the withdrawal, however often it
//! connects again. If the process dies meanwhile, another log may still hold the entry. The withdrawal also rests on
//! the origin's vote, and an operator's override needs no such vote: open transactions may then end either way. The
//! same holds for unknown outcomes (NODE_FAIL, a broken connection).

use std::collections::{HashMap, HashSet};

use trireme_group::{Body, Uuid};
use trireme_replicator::{Code, Seqno};

use super::databases::Databases;
use super::logs::name;
use super::{Invariant, Shared};
use crate::seen::{ClientTrx, NodeId, Seen, Sight};

/// The invariant of this module.
pub struct FailedStaysOut {
    databases: Shared<Databases>,
    /// Failed for ever; with the seqno that was used up.
    failed: HashMap<ClientTrx, (NodeId, Option<Seqno>)>,
    /// Withdrawn, as long as their origins live.
    withdrawn: HashMap<ClientTrx, NodeId>,
    open: HashSet<ClientTrx>,
    /// Transactions that were open at a view without a majority.
    overridden: HashSet<ClientTrx>,
    /// True once there may be two branches.
    forked: bool,
}

impl FailedStaysOut {
    /// An invariant that reads these databases.
    pub fn new(databases: &Shared<Databases>) -> FailedStaysOut {
        FailedStaysOut {
            databases: databases.clone(),
            failed: HashMap::new(),
            withdrawn: HashMap::new(),
            open: HashSet::new(),
            overridden: HashSet::new(),
            forked: false,
        }
    }

    /// True if the verdict holds for commits on this node; it may come from another branch.
    fn holds(&self, verdict: Option<Seqno>, node: NodeId, history: Uuid) -> bool {
        if !self.forked {
            return true;
        }
        let databases = self.databases.borrow();
        let here = verdict.zip(databases.place(node));
        here.is_some_and(|(seqno, tip)| databases.is_dummy(history, seqno, tip))
    }

    fn failed(
        &mut self,
        node: NodeId,
        trx: ClientTrx,
        code: Code,
        seqno: Option<Seqno>,
    ) -> Result<(), String> {
        let is_final = matches!(code, Code::TrxFail | Code::BfAbort);
        if !is_final && self.overridden.contains(&trx) {
            return Ok(());
        }
        let databases = self.databases.borrow();
        let committed = databases.committed_at(trx);
        let tip = databases.place(node);
        let elsewhere =
            |place| self.forked && tip.is_none_or(|tip| !databases.is_within(place, tip));
        if let Some(place) = committed.filter(|place| !elsewhere(*place)) {
            return Err(format!(
                "rule 7: transaction {trx} has committed at {}, and {} tells its client that it failed ({code:?})",
                databases.gtid(place),
                name(node)
            ));
        }
        match is_final {
            true => drop(self.failed.insert(trx, (node, seqno))),
            false => drop(self.withdrawn.insert(trx, node)),
        }
        Ok(())
    }
}

impl Invariant for FailedStaysOut {
    fn name(&self) -> &'static str {
        "failed-stays-out"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        match &sight.what {
            Seen::Stopped { .. } => self.withdrawn.retain(|_, node| *node != sight.node),
            Seen::Began { trx, .. } => drop(self.open.insert(*trx)),
            Seen::Appended { entry } => {
                let is_override = match &entry.body {
                    Body::Configuration(configuration) => configuration.override_id.is_some(),
                    _ => false,
                };
                if is_override {
                    self.overridden.extend(&self.open);
                    self.withdrawn.clear();
                    self.forked = true;
                }
            }
            Seen::Ended {
                trx,
                code,
                certain,
                seqno,
                ..
            } => {
                self.open.remove(trx);
                if *certain && *code != Code::Ok {
                    return self.failed(sight.node, *trx, *code, *seqno);
                }
            }
            Seen::Ordered {
                writer: Some(writer),
                history,
                seqno,
                ..
            } => {
                let verdict = self.failed.get(writer);
                let verdict = verdict.filter(|(_, at)| self.holds(*at, sight.node, *history));
                let told = verdict.map(|(node, _)| node);
                if let Some(node) = told.or(self.withdrawn.get(writer)) {
                    return Err(format!(
                        "rule 7: {} told a client that transaction {writer} failed, and it commits at {history}:{seqno}",
                        name(*node)
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use trireme_replicator::Code;

    use crate::invariants::story::*;
    use crate::seen::Seen;

    const NAME: &str = "failed-stays-out";

    #[test]
    fn a_failure_that_commits() {
        for code in [Code::TrxFail, Code::ConnFail] {
            let mut story = Story::databases();
            story.ended(0, 102, code, true).is_clean();
            story.ordered(1, 5, 102, &[1]).violates(NAME);
            let mut story = Story::databases();
            story.ordered(1, 5, 102, &[1]);
            story.ended(0, 102, code, true).violates(NAME);
        }
    }

    #[test]
    fn the_unknown_may_go_either_way() {
        let mut story = Story::databases();
        story.ended(0, 102, Code::NodeFail, false);
        story.ended(0, 103, Code::NodeFail, false);
        story.ordered(1, 5, 102, &[1]).is_clean();
    }

    #[test]
    fn an_override_does_without_the_origins_vote() {
        let mut story = Story::databases();
        story.ended(0, 102, Code::ConnFail, true);
        story.began(0, 103, false).overridden();
        story.ended(0, 103, Code::ConnFail, true);
        story.began(0, 104, false);
        story.ended(0, 104, Code::ConnFail, true);
        for (seqno, trx) in [(5, 102), (6, 103)] {
            story.ordered(1, seqno, trx, &[1]).is_clean();
        }
        story.ordered(1, 7, 104, &[1]).violates(NAME);
    }

    #[test]
    fn a_verdict_holds_on_its_branch() {
        let mut story = Story::databases();
        story.ended(0, 102, Code::TrxFail, true).overridden();
        story.order(0, 5, (None, None), &[1]);
        story.write(1, 5, 102, &[1]).is_clean();
        story.order(1, 6, (None, None), &[1]).is_clean();
    }

    #[test]
    fn a_withdrawal_outlives_its_connection() {
        let mut story = Story::databases();
        story.ended(0, 102, Code::ConnFail, true);
        story.see(0, Seen::Disconnected);
        story.ordered(1, 5, 102, &[1]).violates(NAME);
    }

    #[test]
    fn a_withdrawal_dies_with_its_origin_and_a_verdict_does_not() {
        let mut story = Story::databases();
        story.ended(0, 102, Code::ConnFail, true);
        story.ended(0, 103, Code::TrxFail, true);
        story.restart(0, 4).ordered(1, 5, 102, &[1]).is_clean();
        story.ordered(1, 6, 103, &[1]).violates(NAME);
    }
}
