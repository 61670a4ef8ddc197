//! A transaction never commits after its client was told of a certain failure (rule 7).
//!
//! If a certain failure commits after all, a payment is made twice. A failed certification (TRX_FAIL) is final for
//! ever: the verdict is a function of the log (an override makes two logs, with a verdict each). CONN_FAIL means "not
//! ordered, and withdrawn". It holds while the origin's process lives and remembers the withdrawal, however often it
//! connects again. If the process dies meanwhile, another log may still hold the entry. The withdrawal also rests on
//! the origin's vote, and an operator's override needs no such vote: on its branch, transactions that were open or
//! withdrawn then may commit. Unknown outcomes (NODE_FAIL, a broken connection) may go either way.

use trireme_group::{Body, Position, Uuid};
use trireme_replicator::{Code, Seqno};

use super::databases::Databases;
use super::logs::{Logs, name};
use super::tree::EntryId;
use super::{HashMap, HashSet, Invariant, Shared};
use crate::seen::{ClientTrx, NodeId, Seen, Sight};

/// The invariant of this module.
pub struct FailedStaysOut {
    databases: Shared<Databases>,
    logs: Shared<Logs>,
    /// Failed for ever; with the seqno that was used up.
    failed: HashMap<ClientTrx, (NodeId, Option<Seqno>)>,
    /// Withdrawn, as long as their origins live.
    withdrawn: HashMap<ClientTrx, NodeId>,
    open: HashSet<ClientTrx>,
    /// For each forced view, the transactions that were open or withdrawn when it was made.
    overridden: HashMap<EntryId, HashSet<ClientTrx>>,
}

impl FailedStaysOut {
    /// An invariant that reads these databases and logs.
    pub fn new(databases: &Shared<Databases>, logs: &Shared<Logs>) -> FailedStaysOut {
        FailedStaysOut {
            databases: databases.clone(),
            logs: logs.clone(),
            failed: HashMap::default(),
            withdrawn: HashMap::default(),
            open: HashSet::default(),
            overridden: HashMap::default(),
        }
    }

    /// True once there may be two branches.
    fn is_forked(&self) -> bool {
        !self.overridden.is_empty()
    }

    /// True if the verdict holds for commits on this node; it may come from another branch.
    fn holds(&self, verdict: Option<Seqno>, node: NodeId, history: Uuid) -> bool {
        if !self.is_forked() {
            return true;
        }
        let databases = self.databases.borrow();
        let here = verdict.zip(databases.place(node));
        here.is_some_and(|(seqno, tip)| databases.is_dummy(history, seqno, tip))
    }

    /// True if a forced view of this node's branch did without the withdrawal of the transaction.
    fn is_excused(&self, trx: ClientTrx, node: NodeId) -> bool {
        let overrides = match self.is_forked() {
            true => self.logs.borrow().overrides_ahead_of(node),
            false => Vec::new(),
        };
        let mut sets = overrides.iter().filter_map(|id| self.overridden.get(id));
        sets.any(|set| set.contains(&trx))
    }

    /// Notes the transactions whose withdrawal the forced view at this position may do without.
    fn overridden(&mut self, node: NodeId, position: Position) {
        let Some(id) = self.logs.borrow().entry_on(node, position) else {
            return; // `prefix` has complained
        };
        let open = self.open.iter().chain(self.withdrawn.keys());
        (self.overridden.entry(id)).or_insert_with(|| open.copied().collect());
    }

    fn failed(
        &mut self,
        node: NodeId,
        trx: ClientTrx,
        code: Code,
        seqno: Option<Seqno>,
    ) -> Result<(), String> {
        let is_final = matches!(code, Code::TrxFail | Code::BfAbort);
        let databases = self.databases.borrow();
        let committed = databases.committed_at(trx);
        let tip = databases.place(node);
        let elsewhere =
            |place| self.is_forked() && tip.is_none_or(|tip| !databases.is_within(place, tip));
        let committed = committed.filter(|place| !elsewhere(*place));
        let is_excused = !is_final && committed.is_some() && self.is_excused(trx, node);
        if let Some(place) = committed.filter(|_| !is_excused) {
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
                    self.overridden(sight.node, entry.position);
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
                let withdrawn = self.withdrawn.get(writer);
                let withdrawn = withdrawn.filter(|_| !self.is_excused(*writer, sight.node));
                if let Some(node) = told.or(withdrawn) {
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
    fn an_override_elsewhere_excuses_nothing() {
        let mut story = Story::databases();
        story.ended(0, 102, Code::ConnFail, true).overridden();
        story.ordered(0, 5, 102, &[1]).violates(NAME);
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
