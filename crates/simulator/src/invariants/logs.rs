//! The entries of all logs that ever existed, as a tree: (position, term) names an entry and all entries before it
//! (rule 1). A *line* is a path of committed entries. A second line begins where an operator's override forks the
//! history (rule 11), and with every founding.

use std::collections::VecDeque;

use trireme_group::{
    Body, Checkpoint, Delivery, Entry, Incarnation, Position, Term, override_yields,
};

use super::lines::{InForce, Line};
use super::promises::{Promise, Promises};
use super::tree::{EntryId, Known, Tree};
use super::{HashMap, content};
use crate::seen::{NodeId, Seen, Sight};

/// The id of a line.
pub type LineId = usize;

/// A process's log.
struct Log {
    /// The last committed entry, as far as the process has delivered, or the base of the log.
    committed: EntryId,
    /// The entries above `committed`.
    tail: VecDeque<EntryId>,
    /// The view at this base is delivered although the entry there may be another one.
    began_at: Option<Position>,
    /// The last committed entry of the previous log, if this one began anew: the server may still apply deliveries of
    /// the previous log.
    before: Option<EntryId>,
}

/// The tree, and the place of each process in it.
#[derive(Default)]
pub struct Logs {
    entries: Tree,
    configurations: HashMap<EntryId, InForce>,
    lines: Vec<Line>,
    logs: Vec<Option<Log>>,
    promises: Promises,
}

impl Logs {
    /// The line of a process's delivered entries.
    pub fn line_of(&self, node: NodeId) -> Option<LineId> {
        self.entries[self.log(node)?.committed].line
    }

    /// The possible lines of the entries that a process's server applies.
    pub fn applied_lines(&self, node: NodeId) -> impl Iterator<Item = LineId> {
        let before = self.log(node).and_then(|log| log.before);
        let line_before = before.and_then(|id| self.entries[id].line);
        self.line_of(node).into_iter().chain(line_before)
    }

    /// The last position that a process has delivered.
    pub fn committed(&self, node: NodeId) -> Option<Position> {
        self.log(node)
            .map(|log| self.entries[log.committed].position)
    }

    /// The entry of a line at this position.
    pub fn committed_at(&self, line: LineId, position: Position) -> Option<EntryId> {
        let mut line = &self.lines[line];
        while position < line.first {
            line = &self.lines[line.parent?];
        }
        let index = (position - line.first) as usize;
        line.entries.get(index).copied()
    }

    /// The entry at this position among the delivered ones of a process.
    pub fn committed_on(&self, node: NodeId, position: Position) -> Option<EntryId> {
        let is_committed = self.committed(node).is_some_and(|at| position <= at);
        let line = self.line_of(node).filter(|_| is_committed)?;
        self.committed_at(line, position)
    }

    /// The entry at this position in a process's log, delivered or not.
    pub fn entry_on(&self, node: NodeId, position: Position) -> Option<EntryId> {
        let at = |id: &EntryId| self.entries[*id].position == position;
        let in_tail = || self.log(node)?.tail.iter().copied().find(at);
        self.committed_on(node, position).or_else(in_tail)
    }

    /// The forced views on the lines that a process's server applies, and in the log above.
    pub fn overrides_of(&self, node: NodeId) -> Vec<EntryId> {
        // Others may have gone on with the line of its log.
        let delivered_to = self.committed(node).map_or(Position::MAX, |at| at + 1);
        self.overrides_below(node, delivered_to)
    }

    /// The same, with those that others have delivered further on the line of its log. They may have committed what this
    /// process delivers now.
    pub fn overrides_ahead_of(&self, node: NodeId) -> Vec<EntryId> {
        self.overrides_below(node, Position::MAX)
    }

    fn overrides_below(&self, node: NodeId, bound: Position) -> Vec<EntryId> {
        let tail = self.log(node).into_iter().flat_map(|log| &log.tail);
        let is_override = |id: &EntryId| self.entries[*id].forks_after.is_some();
        let mut overrides: Vec<EntryId> = tail.copied().filter(is_override).collect();
        let bounds = [bound].into_iter().chain(std::iter::repeat(Position::MAX));
        for (line, bound) in self.applied_lines(node).zip(bounds) {
            let (mut next, mut above) = (Some(line), bound);
            while let Some(line) = next.map(|id| &self.lines[id]) {
                let on_path = |id: &EntryId| self.entries[*id].position < above;
                overrides.extend(line.overrides.iter().copied().filter(on_path));
                (next, above) = (line.parent, line.first);
            }
        }
        overrides
    }

    /// True if a log that began anew may lack entries that the process had delivered from the previous log.
    pub fn may_lack_before(&self, node: NodeId) -> bool {
        let log = self.log(node);
        let both = log.and_then(|log| Some((log.committed, log.before?)));
        both.is_none_or(|(now, before)| self.entries.may_lack(now, before))
    }

    /// The first entry in this range that a process had to deliver, or above which its log began.
    pub fn delivered_between(
        &self,
        node: NodeId,
        above: Position,
        upto: Position,
    ) -> Option<Position> {
        let is_delivered = |at: &Position| {
            let entry = self.committed_on(node, *at);
            entry.is_some_and(|id| self.entries[id].is_delivered)
        };
        (above + 1..=upto).find(is_delivered)
    }

    /// Handles an event. Err: rule 1, 3 or 9 is broken.
    pub fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let node = sight.node;
        match &sight.what {
            Seen::Started { .. } => self.set_log(node, None),
            Seen::Founded { .. } => self.founded(node),
            Seen::Appended { entry } => return self.appended(node, entry),
            Seen::Truncated { after } => self.truncated(node, *after),
            Seen::Promised { by, term } => self.promised(node, *by, *term),
            Seen::BeganAnew { checkpoint } => return self.began_anew(node, checkpoint),
            Seen::Delivered { position, delivery } => {
                return self.delivered(node, *position, delivery);
            }
            _ => {}
        }
        Ok(())
    }

    fn log(&self, node: NodeId) -> Option<&Log> {
        self.logs.get(node)?.as_ref()
    }

    fn set_log(&mut self, node: NodeId, log: Option<Log>) {
        if self.logs.len() <= node {
            self.logs.resize_with(node + 1, || None);
        }
        self.logs[node] = log;
    }

    /// Begins a component of one node, with a tree of its own.
    fn founded(&mut self, node: NodeId) {
        let line = self.lines.len();
        let root = self.entries.add_root(line);
        self.lines.push(Line::founded(root));
        self.set_log(node, Some(Log::at(root)));
    }

    fn appended(&mut self, node: NodeId, entry: &Entry) -> Result<(), String> {
        let (position, term) = (entry.position, entry.term);
        let Some(log) = self.log(node) else {
            return Err(format!("{} appends to a log that it has not", name(node)));
        };
        let parent = log.tail.back().copied().unwrap_or(log.committed);
        let before = &self.entries[parent];
        if position != before.position + 1 || term < before.term {
            return Err(format!(
                "rule 1: {} appends {position} of term {term} after {} of term {}",
                name(node),
                before.position,
                before.term
            ));
        }
        let content = content::of_body(&entry.body);
        let id = match self.entries.find(position, term) {
            Some(id) => {
                let known = &self.entries[id];
                if known.parent != parent || known.content != content {
                    return Err(format!(
                        "rule 1: position {position} of term {term} is something else on {} than on \
                         others, or follows something else",
                        name(node)
                    ));
                }
                id
            }
            None => {
                self.one_pending_view(node, entry, parent)?;
                let id = self.add_new(entry, content, parent);
                if let Body::Configuration(view) = &entry.body {
                    self.promises.are_kept(&self.entries, id, view)?;
                }
                id
            }
        };
        if let Some(log) = &mut self.logs[node] {
            log.tail.push_back(id);
        }
        Ok(())
    }

    /// Checks that a view is proposed only when the one before is committed, except a forced view (rule 3).
    fn one_pending_view(&self, node: NodeId, entry: &Entry, parent: EntryId) -> Result<(), String> {
        match &entry.body {
            Body::Configuration(configuration) if configuration.override_id.is_none() => {}
            _ => return Ok(()),
        }
        let mut at = parent;
        while self.entries[at].line.is_none() {
            if self.configurations.contains_key(&at) {
                return Err(format!(
                    "rule 3: {} proposes a view at {} while the one at {} is not committed",
                    name(node),
                    entry.position,
                    self.entries[at].position
                ));
            }
            at = self.entries[at].parent;
        }
        Ok(())
    }

    fn add_new(&mut self, entry: &Entry, content: u64, parent: EntryId) -> EntryId {
        let configuration = match &entry.body {
            Body::Configuration(configuration) => Some(configuration),
            _ => None,
        };
        let override_id = configuration.and_then(|c| c.override_id);
        let id = self.entries.add(Known {
            position: entry.position,
            term: entry.term,
            parent,
            content,
            submission: entry.submission(),
            is_void: matches!(entry.body, Body::Voided { .. }),
            forks_after: configuration.and_then(|c| c.override_id.map(|_| c.fork_after)),
            yields: override_id.is_some_and(|id| override_yields(&id)),
            line: None,
            is_delivered: match entry.body {
                Body::Configuration(_) | Body::Submission { .. } => true,
                Body::TermStart | Body::Voided { .. } => false,
            },
        });
        if let Some(configuration) = configuration {
            let members = configuration.members.iter().map(|m| m.incarnation);
            let in_force = InForce {
                from: entry.position,
                content,
                members: members.collect(),
            };
            self.configurations.insert(id, in_force);
        }
        id
    }

    fn promised(&mut self, node: NodeId, by: Incarnation, term: Term) {
        if let Some(Some(log)) = self.logs.get(node) {
            let promise = Promise {
                node,
                by,
                committed: log.committed,
                end: log.tail.back().copied().unwrap_or(log.committed),
            };
            self.promises.add(term, promise);
        }
    }

    fn truncated(&mut self, node: NodeId, after: Position) {
        let entries = &self.entries;
        let Some(Some(log)) = self.logs.get_mut(node) else {
            return;
        };
        while (log.tail.back()).is_some_and(|id| entries[*id].position > after) {
            log.tail.pop_back();
        }
        while entries[log.committed].position > after {
            log.committed = entries[log.committed].parent;
        }
    }

    fn began_anew(&mut self, node: NodeId, checkpoint: &Checkpoint) -> Result<(), String> {
        let (position, term) = (checkpoint.position, checkpoint.term);
        let Some(id) = self.entries.find(position, term) else {
            return Err(format!(
                "rule 1: {} begins anew above {position} of term {term}, which no log ever had",
                name(node)
            ));
        };
        // It is committed on the sender, even if the sender has not delivered anything above it yet.
        let mut log = Log::at(id);
        while self.entries[log.committed].line.is_none() {
            log.tail.push_front(log.committed);
            log.committed = self.entries[log.committed].parent;
        }
        log.began_at = Some(position);
        log.before = self.log(node).map(|log| log.committed);
        self.set_log(node, Some(log));
        while self.commit_next(node)?.is_some() {}
        let content = content::of_configuration(&checkpoint.configuration);
        if self.in_force(id).is_none_or(|c| c.content != content) {
            return Err(format!(
                "rule 3: {} begins anew at {position} with another configuration than is in force there",
                name(node)
            ));
        }
        Ok(())
    }

    fn delivered(
        &mut self,
        node: NodeId,
        position: Position,
        delivery: &Delivery,
    ) -> Result<(), String> {
        let content = content::of_delivery(delivery);
        let differs = |what: &str| {
            Err(format!(
                "rule 9: {} delivers at {position} {what}",
                name(node)
            ))
        };
        let Some(Some(log)) = self.logs.get_mut(node) else {
            return differs("something without a log");
        };
        if log.began_at.take() == Some(position) {
            let id = log.committed;
            return match self.in_force(id) {
                Some(in_force) if in_force.content == content => Ok(()),
                _ => differs("another configuration than is in force there"),
            };
        }
        loop {
            let Some(id) = self.commit_next(node)? else {
                return differs("what is not in its log");
            };
            let entry = &self.entries[id];
            if entry.position == position {
                return match entry.is_delivered && entry.content == content {
                    true => Ok(()),
                    false => differs("something else than its log has there"),
                };
            }
            if entry.is_delivered {
                return differs(&format!("and has left out {}", entry.position));
            }
        }
    }

    /// Commits the next entry of a process's log; None if there is no next entry.
    fn commit_next(&mut self, node: NodeId) -> Result<Option<EntryId>, String> {
        let Some(Some(log)) = self.logs.get_mut(node) else {
            return Ok(None);
        };
        let Some(id) = log.tail.pop_front() else {
            return Ok(None);
        };
        log.committed = id;
        if self.entries[id].line.is_none() {
            self.commit(node, id)?;
        }
        Ok(Some(id))
    }

    fn in_force(&self, id: EntryId) -> Option<&InForce> {
        let entry = &self.entries[id];
        let mut line = &self.lines[entry.line?];
        loop {
            let later = (line.configurations).partition_point(|c| c.from <= entry.position);
            match later.checked_sub(1) {
                Some(index) => return Some(&line.configurations[index]),
                None => line = &self.lines[line.parent?],
            }
        }
    }

    /// Commits an entry for the first time; its predecessor is committed already.
    fn commit(&mut self, node: NodeId, id: EntryId) -> Result<(), String> {
        let entry = &self.entries[id];
        let (parent, position) = (entry.parent, entry.position);
        let Some(line) = self.entries[parent].line else {
            return Err(format!(
                "{} commits {position} before what it follows",
                name(node)
            ));
        };
        if self.lines[line].entries.last() == Some(&parent) {
            return self.extend(node, line, id);
        }
        // Other entries follow there already: one of any two paths must hold a forced view that leaves here, or one
        // path is wrong.
        let unexcused = match self.has_override(node, id) {
            true => None,
            false => self.not_overridden(line, parent),
        };
        if let Some(other) = unexcused {
            return Err(format!(
                "rules 1, 3: {} commits position {position} of term {}, where another entry, of term {}, \
                 was committed before: two histories, and no operator's override forks them there",
                name(node),
                self.entries[id].term,
                self.entries[other].term
            ));
        }
        let line = self.fork(line, parent);
        self.extend(node, line, id)
    }

    /// True if the process's log holds, from this entry on, a forced view that may leave other paths below this
    /// entry.
    fn has_override(&self, node: NodeId, from: EntryId) -> bool {
        let above = self.log(node).into_iter().flat_map(|log| &log.tail);
        let mut ids = std::iter::once(&from).chain(above);
        ids.any(|id| {
            self.entries
                .may_leave_below(*id, self.entries[from].position)
        })
    }

    /// The first entry of a committed path above `parent`, on `line` or on a fork of it there, without a forced view
    /// that may leave other paths there.
    fn not_overridden(&self, line: LineId, parent: EntryId) -> Option<EntryId> {
        let position = self.entries[parent].position + 1;
        let is_path = |id: &LineId| {
            let forked = &self.lines[*id];
            *id == line || forked.parent == Some(line) && forked.first == position
        };
        let mut paths = (0..self.lines.len()).filter(is_path);
        let path = paths.find(|id| {
            let mut overrides = self.lines[*id].overrides.iter();
            !overrides.any(|id| self.entries.may_leave_below(*id, position))
        })?;
        self.committed_at(path, position)
    }

    fn fork(&mut self, line: LineId, after: EntryId) -> LineId {
        let mut numbers = HashMap::default();
        let mut at = after;
        while self.entries[at].position > 0 {
            if let Some(id) = self.entries[at].submission {
                numbers.entry(id.incarnation).or_insert(id.number);
            }
            at = self.entries[at].parent;
        }
        let first = self.entries[after].position + 1;
        let in_force = self.in_force(after).cloned();
        self.lines
            .push(Line::forked(line, first, in_force, numbers));
        self.lines.len() - 1
    }

    fn extend(&mut self, node: NodeId, line: LineId, id: EntryId) -> Result<(), String> {
        let entry = &mut self.entries[id];
        entry.line = Some(line);
        let line = &mut self.lines[line];
        line.entries.push(id);
        if entry.forks_after.is_some() {
            line.overrides.push(id);
        }
        if let Some(submission) = entry.submission {
            entry.is_delivered &= line.is_member(submission.incarnation);
            line.count(submission, entry.is_void).map_err(|last| {
                let at = entry.position;
                format!(
                    "rule 9: {} commits submission {submission} at {at} after number {last} of the same origin",
                    name(node)
                )
            })?;
        }
        if let Some(configuration) = self.configurations.remove(&id) {
            line.configurations.push(configuration);
        }
        Ok(())
    }
}

impl Log {
    fn at(committed: EntryId) -> Log {
        Log {
            committed,
            tail: VecDeque::new(),
            began_at: None,
            before: None,
        }
    }
}

/// The name of a node in reports.
pub fn name(node: NodeId) -> String {
    format!("n{}", node + 1)
}
