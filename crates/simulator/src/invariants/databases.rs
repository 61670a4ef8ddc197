//! The commits of all databases, as a tree of seqnos, with the correct list of writers of each row. A second branch
//! begins where the logs fork (an operator's override or bootstrap, rule 11), once for any two of their lines; where a
//! database executes DDL again that has another effect then (rule 13); or where a new history is founded on a database
//! that already holds rows.

use trireme_group::Uuid;
use trireme_replicator::Seqno;

use super::logs::{LineId, Logs, name};
use super::rows::{Rows, Version};
use super::{HashMap, HashSet, Shared};
use crate::seen::{ClientTrx, NodeId, Seen, Sight};

/// The id of a branch.
pub type BranchId = usize;

/// The state of a database: everything of a branch up to a seqno, and the branch's base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The branch.
    pub branch: BranchId,
    /// The last seqno that it holds.
    pub seqno: Seqno,
}

/// The commit of one seqno.
struct Step {
    writer: Option<ClientTrx>,
    view: Option<u64>,
    digest: Option<u64>,
    /// The process that reported it first, and the line of that process's log.
    node: NodeId,
    line: Option<LineId>,
}

struct Branch {
    history: Uuid,
    parent: Option<Place>,
    /// The seqno below its first step.
    base: Seqno,
    base_digest: Option<u64>,
    steps: Vec<Step>,
    children: Vec<BranchId>,
}

impl Branch {
    /// The last seqno of the branch.
    fn end(&self) -> Seqno {
        self.base + self.steps.len() as Seqno
    }
}

/// The tree, and the place of each database in it.
#[derive(Default)]
pub struct Databases {
    branches: Vec<Branch>,
    places: Vec<Option<Place>>,
    /// The place of a database before a crash took commits from it.
    crashed: HashMap<NodeId, Place>,
    /// The place of a database that lacks commits of the others, or is lost.
    diverged: HashMap<NodeId, Place>,
    writers: HashMap<ClientTrx, Place>,
    logs: Shared<Logs>,
    /// Pairs of lines of the logs that make one fork here.
    forks: HashSet<(LineId, LineId)>,
    /// The lists of the rows.
    pub rows: Rows,
}

impl Databases {
    /// A tree that may fork only where these logs fork.
    pub fn new(logs: &Shared<Logs>) -> Databases {
        Databases {
            logs: logs.clone(),
            ..Databases::default()
        }
    }

    /// The place of a node's database; None if it holds nothing known.
    pub fn place(&self, node: NodeId) -> Option<Place> {
        *self.places.get(node)?
    }

    /// The place of a transaction's commit; the last one, if a forced view's branch has it again.
    pub fn committed_at(&self, writer: ClientTrx) -> Option<Place> {
        self.writers.get(&writer).copied()
    }

    /// "history:seqno", for reports.
    pub fn gtid(&self, place: Place) -> String {
        let branch = &self.branches[place.branch];
        format!("{}:{}", branch.history, place.seqno)
    }

    /// True if a database at `tip` holds everything up to `place`.
    pub fn is_within(&self, place: Place, tip: Place) -> bool {
        let place = self.normal(place);
        self.on_branch(place.branch, tip)
            .is_some_and(|seqno| place.seqno <= seqno)
    }

    /// The last place that both share.
    pub fn meeting(&self, one: Place, other: Place) -> Option<Place> {
        let mut place = self.normal(one);
        loop {
            if let Some(seqno) = self.on_branch(place.branch, other) {
                return Some(Place {
                    seqno: place.seqno.min(seqno),
                    ..place
                });
            }
            place = self.branches[place.branch].parent?;
        }
    }

    /// The seqno up to which the path to `tip` follows a branch.
    fn on_branch(&self, branch: BranchId, tip: Place) -> Option<Seqno> {
        let mut tip = tip;
        while tip.branch != branch {
            tip = self.branches[tip.branch].parent?;
        }
        Some(tip.seqno)
    }

    /// The unique name of a state: equal states get equal places.
    pub fn normal(&self, place: Place) -> Place {
        let mut place = place;
        while place.seqno <= self.branches[place.branch].base {
            match self.branches[place.branch].parent {
                Some(parent) => place = parent,
                None => break,
            }
        }
        place
    }

    /// Notes the digest of a state, or returns the digest noted earlier.
    pub fn digest(&mut self, place: Place, digest: u64) -> u64 {
        let place = self.normal(place);
        *self.digest_at(place).get_or_insert(digest)
    }

    fn digest_at(&mut self, place: Place) -> &mut Option<u64> {
        let branch = &mut self.branches[place.branch];
        match usize::try_from(place.seqno - branch.base - 1) {
            Ok(index) => &mut branch.steps[index].digest,
            Err(_) => &mut branch.base_digest,
        }
    }

    /// The place with this history and seqno on the path to `tip`.
    pub fn find(&self, history: Uuid, seqno: Seqno, tip: Place) -> Option<Place> {
        let mut tip = tip;
        loop {
            let branch = &self.branches[tip.branch];
            if branch.history == history && (branch.base..=tip.seqno).contains(&seqno) {
                return Some(Place { seqno, ..tip });
            }
            tip = branch.parent?;
        }
    }

    /// True if, on the path to `tip`, no transaction and no view has this seqno.
    pub fn is_dummy(&self, history: Uuid, seqno: Seqno, tip: Place) -> bool {
        let place = self.find(history, seqno, tip).map(|at| self.normal(at));
        place.is_some_and(|at| {
            let branch = &self.branches[at.branch];
            let step = usize::try_from(at.seqno - branch.base - 1).ok();
            let step = step.and_then(|index| branch.steps.get(index));
            step.is_some_and(|step| step.writer.is_none() && step.view.is_none())
        })
    }

    /// Handles an event. Err: a GTID names two things, or a database has an unknown state.
    pub fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let node = sight.node;
        match &sight.what {
            Seen::Started { database } => return self.started(node, *database),
            Seen::Founded { history, seqno } => return self.founded(node, *history, *seqno),
            Seen::Counted { history, seqno } => return self.counted(node, *history, *seqno),
            Seen::Ordered {
                history,
                seqno,
                writer,
                view,
                writes,
                ..
            } => {
                let place = self.ordered(node, (*history, *seqno), (*writer, *view), writes)?;
                self.put(node, Some(place));
            }
            Seen::Repeated { history, seqno } => self.parts(node, *history, seqno - 1),
            Seen::Snapshot {
                history,
                seqno,
                digest,
                donor,
            } => return self.snapshot(node, (*history, *seqno), *digest, *donor),
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, node: NodeId, place: Option<Place>) {
        if self.places.len() <= node {
            self.places.resize(node + 1, None);
        }
        self.places[node] = place;
    }

    fn started(&mut self, node: NodeId, database: (Uuid, Seqno)) -> Result<(), String> {
        let (history, seqno) = database;
        let known = self.place(node).or(self.diverged.get(&node).copied());
        if seqno < 0 || history.is_nil() {
            // A diverged database may return to an earlier state, if a crash takes its unflushed commits.
            self.diverged.extend(known.map(|place| (node, place)));
            self.put(node, None);
            return Ok(());
        }
        let place = known.and_then(|place| self.find(history, seqno, place));
        if place.is_none() {
            let before = known.map_or("nothing".into(), |place| self.gtid(place));
            return Err(format!(
                "the database of {} comes back at {history}:{seqno}; it had committed {before}",
                name(node)
            ));
        }
        if let Some(known) = known.filter(|_| place != known) {
            self.crashed.insert(node, known);
        }
        self.put(node, place);
        Ok(())
    }

    /// Continues a history from one database, or begins a new history on it.
    fn founded(&mut self, node: NodeId, history: Uuid, seqno: Seqno) -> Result<(), String> {
        let mut place = self.place(node);
        if place.is_some_and(|place| place.seqno + 1 == seqno) {
            // The process has executed this action, but a crash took the action's position, or came before it. The
            // action's flush also covered everything before it.
            let crashed = self.crashed.get(&node);
            let crashed = crashed.and_then(|at| self.find(history, seqno, *at));
            place = crashed.or(place);
        }
        let goes_on = place.filter(|place| self.branches[place.branch].history == history);
        if goes_on.is_none() && self.branches.iter().any(|b| b.history == history) {
            return Err(format!(
                "{} founds history {history} again, without its state",
                name(node)
            ));
        }
        let base = goes_on.map_or(0, |place| place.seqno);
        // Seqnos may be left out, because of an action that may have been executed (rule 13).
        if base != seqno && !(goes_on.is_some() && base < seqno) {
            return Err(format!(
                "{} founds {history} above {seqno}, its database is at {base}",
                name(node)
            ));
        }
        let place = place.map(|place| self.normal(place));
        let is_empty = |first: Option<&Step>| first.is_none();
        // A second founding at one point takes the same branch, until commits of the first founding turn up.
        let again = goes_on.and(place.and_then(|place| self.child(place, is_empty)));
        let again = again.filter(|branch| self.branches[*branch].base == seqno);
        let branch = again.unwrap_or_else(|| self.branch(history, place, seqno));
        self.put(node, Some(Place { branch, seqno }));
        Ok(())
    }

    /// Takes a database to the beginning of the branch that an earlier process founded on it.
    fn counted(&mut self, node: NodeId, history: Uuid, seqno: Seqno) -> Result<(), String> {
        let before = self.crashed.get(&node).copied();
        let place = before.and_then(|before| self.find(history, seqno, before));
        let is_founded = |place: &Place| self.branches[place.branch].base == place.seqno;
        let Some(place) = place.filter(is_founded) else {
            return Err(format!(
                "{} counts its database as being at {history}:{seqno}, and was not bootstrapped there",
                name(node)
            ));
        };
        self.put(node, Some(place));
        Ok(())
    }

    /// Begins a branch of its own for a database.
    fn parts(&mut self, node: NodeId, history: Uuid, seqno: Seqno) {
        let place = self.place(node).map(|place| self.normal(place));
        let branch = self.branch(history, place, seqno);
        self.put(node, Some(Place { branch, seqno }));
    }

    fn branch(&mut self, history: Uuid, parent: Option<Place>, base: Seqno) -> BranchId {
        let id = self.branches.len();
        self.branches.push(Branch {
            history,
            parent,
            base,
            base_digest: None,
            steps: Vec::new(),
            children: Vec::new(),
        });
        if let Some(parent) = parent {
            self.branches[parent.branch].children.push(id);
        }
        id
    }

    fn ordered(
        &mut self,
        node: NodeId,
        gtid: (Uuid, Seqno),
        what: (Option<ClientTrx>, Option<u64>),
        writes: &[u32],
    ) -> Result<Place, String> {
        let (history, seqno) = gtid;
        let before = self.place(node);
        let Some(before) = before.filter(|place| {
            place.seqno + 1 == seqno && self.branches[place.branch].history == history
        }) else {
            return Err(format!(
                "{} commits {history}:{seqno} on top of {}",
                name(node),
                before.map_or("an unknown state".into(), |place| self.gtid(place))
            ));
        };
        let is_what = |step: Option<&Step>| step.is_some_and(|s| (s.writer, s.view) == what);
        let mut at = before;
        let mut line = self.logs.borrow().line_of(node);
        // The branch of a forced view may begin here, or a founder's branch without known steps.
        if let Some(branch) = self.child(before, is_what) {
            at.branch = branch;
        } else if !is_what(self.step_after(before)) {
            if let Some(branch) = self.child(before, |first| first.is_none()) {
                at.branch = branch;
            } else if let Some(known) = self.step_after(before) {
                let known = describe((known.writer, known.view), known.node);
                line = self.forks_by(node, before);
                if line.is_none() {
                    let text = format!("GTID {history}:{seqno} is {}", describe(what, node));
                    return Err(format!("{text}, and {known}"));
                }
                at.branch = self.branch(history, Some(before), before.seqno);
            }
        }
        at.seqno = seqno;
        let end = self.branches[at.branch].end();
        if seqno > end {
            self.add(at, what, (node, line), writes)?;
        }
        Ok(at)
    }

    /// This process's line, if it lies apart from all lines that continue from here, and if no databases have forked
    /// with two of these lines yet.
    fn forks_by(&mut self, node: NodeId, place: Place) -> Option<LineId> {
        let children = self
            .children(place)
            .filter_map(|id| self.branches[id].steps.first());
        let steps = self.step_after(place).into_iter().chain(children);
        let others: Option<Vec<LineId>> = steps.map(|step| step.line).collect();
        let others = others?;
        let pair = |own: LineId, other: LineId| (own.min(other), own.max(other));
        let is_new = |own: &LineId| {
            (others.iter()).all(|other| other != own && !self.forks.contains(&pair(*own, *other)))
        };
        let own = self.logs.borrow().applied_lines(node).find(is_new)?;
        (self.forks).extend(others.iter().map(|other| pair(own, *other)));
        Some(own)
    }

    /// A branch that leaves the path at `place`, chosen by its first step (None: it has no step yet).
    fn child(&self, place: Place, fits: impl Fn(Option<&Step>) -> bool) -> Option<BranchId> {
        let fits = |id: &BranchId| fits(self.branches[*id].steps.first());
        self.children(place).find(fits)
    }

    /// The branches of the same history that leave the path at `place`.
    fn children(&self, place: Place) -> impl Iterator<Item = BranchId> {
        let branch = &self.branches[place.branch];
        let leaves_here = move |id: &BranchId| {
            let child = &self.branches[*id];
            child.parent == Some(place) && child.history == branch.history
        };
        branch.children.iter().copied().filter(leaves_here)
    }

    fn step_after(&self, place: Place) -> Option<&Step> {
        let branch = &self.branches[place.branch];
        branch.steps.get((place.seqno - branch.base) as usize)
    }

    fn add(
        &mut self,
        at: Place,
        what: (Option<ClientTrx>, Option<u64>),
        (node, line): (NodeId, Option<LineId>),
        writes: &[u32],
    ) -> Result<(), String> {
        let (writer, view) = what;
        self.branches[at.branch].steps.push(Step {
            writer,
            view,
            digest: None,
            node,
            line,
        });
        let Some(writer) = writer else { return Ok(()) };
        let first = self.writers.insert(writer, at);
        if let Some(first) = first.filter(|first| self.is_within(*first, at)) {
            return Err(format!(
                "transaction {writer} commits twice: at {} and, on {}, at {}",
                self.gtid(first),
                name(node),
                self.gtid(at)
            ));
        }
        for key in writes {
            let before = self.version(*key, at);
            let version = Version::after(before, at, writer);
            self.rows.push(*key, version);
        }
        Ok(())
    }

    /// The row's list in the state at `tip`; None if no transaction has written the row.
    pub fn version(&self, key: u32, tip: Place) -> Option<Version> {
        self.rows
            .last(key, |version| self.is_within(version.place, tip))
    }

    /// The row's list in the state at `tip`, as it was at this length.
    pub fn version_of_len(&self, key: u32, len: u32, tip: Place) -> Option<Version> {
        self.rows
            .of_len(key, len, |version| self.is_within(version.place, tip))
    }

    /// Replaces a node's database by the donor's one. Views change no row: on two branches the same digest may stand at
    /// the same seqno, so the donor's own path comes first.
    fn snapshot(
        &mut self,
        node: NodeId,
        gtid: (Uuid, Seqno),
        digest: u64,
        donor: NodeId,
    ) -> Result<(), String> {
        let (history, seqno) = gtid;
        let mut candidates: Vec<Place> = (self.branches.iter().enumerate())
            .filter(|(_, branch)| {
                branch.history == history && (branch.base..=branch.end()).contains(&seqno)
            })
            .map(|(branch, _)| Place { branch, seqno })
            .collect();
        let donors_tip = self.place(donor);
        candidates.extend(donors_tip.and_then(|tip| self.find(history, seqno, tip)));
        let fits = |databases: &mut Databases, place: Place| {
            let place = databases.normal(place);
            databases
                .digest_at(place)
                .is_none_or(|known| known == digest)
        };
        let place = candidates.into_iter().rev().find(|at| fits(self, *at));
        // It may go on with any branch that begins with this state.
        let place = place.map(|at| match self.normal(at) {
            same if same.seqno == seqno => same,
            _ => at,
        });
        if place.is_none() {
            return Err(format!(
                "the snapshot that {} received is no state that {history}:{seqno} ever was",
                name(node)
            ));
        }
        self.put(node, place);
        Ok(())
    }
}

fn describe(what: (Option<ClientTrx>, Option<u64>), node: NodeId) -> String {
    let what = match what {
        (Some(writer), _) => format!("transaction {writer}"),
        (None, Some(view)) => format!("view {view:x}"),
        (None, None) => "a dummy".to_owned(),
    };
    format!("{what} on {}", name(node))
}
