//! A process that starts with the log of an earlier one on its data directory: under a new
//! incarnation, in the seat of its replica (rules 4, 6, 14, 18).

use crate::configuration::{Configuration, Member};
use crate::event::{Action, RecoveredLog};
use crate::group::Group;
use crate::ids::TimeMs;
use crate::message::Standing;
use crate::tail::Tail;

/// A restarted process says so often whom it waits for.
const TELL_MISSING_MS: TimeMs = 10_000;

impl Group {
    /// Goes on with the log of an earlier process. What is known to be committed is delivered again.
    pub(crate) fn resume(&mut self, log: RecoveredLog) {
        self.tail = Tail::new(log.checkpoint.position, log.checkpoint.ballot);
        self.committed = log.checkpoint;
        self.configured_at = self.committed.position;
        self.standing = Standing::NonPrimary;
        self.resumed = true;
        for entry in log.entries {
            if let Some(id) = entry.submission() {
                self.submissions.ordered(id);
            }
            self.tail.push(entry);
        }
        self.durable = self.tail.end();
        // Whoever has entries of a ballot follows it, although the promise may not have reached the disk.
        if self.tail.end_ballot() > self.promised {
            self.promise_ballot(self.tail.end_ballot());
        }
        // A configuration is proposed when the one before is committed; an override need not wait for that.
        let configurations: Vec<_> = self.tail.configurations(self.committed.position).collect();
        let proven = configurations
            .windows(2)
            .rev()
            .find(|pair| pair[1].1.override_id.is_none())
            .map_or(0, |pair| pair[0].0);
        self.commit_to(proven.max(log.commit));
        self.left_number = self.latest().number;
    }

    /// This member's place in the newest configuration; that of the process before, if it was
    /// restarted and its log says so.
    pub(crate) fn own_seat(&self) -> Option<&Member> {
        let latest = self.latest();
        let former = || {
            self.resumed
                .then(|| latest.replica(self.my_replica()))
                .flatten()
        };
        latest.member(self.me()).or_else(former)
    }

    /// The seat that a restarted process has found in its log is gone.
    pub(crate) fn loses_seat(&self, before: &Configuration, now: &Configuration) -> bool {
        let has =
            |configuration: &Configuration| configuration.replica(self.my_replica()).is_some();
        self.resumed && has(before) && !has(now)
    }

    /// A restarted process says whom it waits for (rule 18).
    pub(crate) fn tell_who_is_missing(&mut self) {
        if !self.resumed || self.now < self.told_missing_at + TELL_MISSING_MS {
            return;
        }
        self.told_missing_at = self.now;
        let latest = self.latest();
        let is_up = |m: &&Member| m.replica == self.my_replica() || self.voice(m.replica).is_some();
        let name = |m: &Member| format!("{} ({})", m.name, m.address);
        let (up, missing): (Vec<_>, Vec<_>) = latest.members.iter().partition(is_up);
        let names = |members: Vec<&Member>| match members.is_empty() {
            true => "nobody".to_owned(),
            false => members.into_iter().map(name).collect::<Vec<_>>().join(", "),
        };
        let mut text = format!(
            "waiting for a majority of the last view ({}): here are {}, missing are {}",
            latest.number,
            names(up),
            names(missing.clone())
        );
        let connected = |m: &&&Member| self.peers.values().any(|p| p.up && p.replica == m.replica);
        if let Some(doubled) = missing.iter().find(connected) {
            text += &format!(
                "; two processes run with the replica id {} of {}: one of them is on a copied data directory, and neither                  has a vote until the other is gone; stop the copy and remove its trireme state files and grastate.dat",
                doubled.replica.0, doubled.name
            );
        }
        let history = self.committed.history;
        let statuses = self.peers.values().filter_map(|peer| peer.status.as_ref());
        if let Some(other) = statuses
            .map(|s| s.history)
            .find(|h| !h.is_nil() && *h != history)
        {
            text += &format!(
                "; a node here is in the cluster {other}, this one goes on with {history}: to join the other one, move \
                 grastate.dat and the trireme-*.log files away, which drops this node's own data"
            );
        }
        if self.amnesiac {
            text += &self.tell_what_may_be_missing();
        }
        self.out.push(Action::Note { text });
    }

    /// What an operator must know who is to decide where a majority may have forgotten entries (rule 4).
    fn tell_what_may_be_missing(&self) -> String {
        let end = |member: &Member| {
            let here = member.replica == self.my_replica();
            let mut peers = self.peers.values().filter(|peer| peer.up);
            let peer = peers.find(|peer| peer.replica == member.replica);
            let status = peer.and_then(|peer| peer.status.as_ref());
            here.then(|| self.tail.end())
                .or_else(|| status.map(|status| status.end))
        };
        let seats = self.latest().members.iter();
        let ends: Vec<_> = seats.filter_map(|m| Some((end(m)?, &m.name))).collect();
        let list: Vec<_> = ends
            .iter()
            .map(|(end, name)| format!("{name} at {end}"))
            .collect();
        let furthest = ends.iter().rev().max_by_key(|(end, _)| end);
        let furthest = furthest.map_or("this node", |(_, name)| name.as_str());
        format!(
            ". This node may have forgotten the last entries that it acknowledged (a power loss with \
             repl.durability=os, a death with memory, or a damaged log), so it has no say until it has caught up with a \
             majority. The logs here end: {}. If the missing nodes will not come back, or every node says this, commits \
             acknowledged beyond the longest log are lost. To go on without them: stop all nodes, write safe_to_bootstrap: 1 \
             into the grastate.dat of {furthest} and of no other, start it with galera_new_cluster, then the others. \
             Where the server of {furthest} answers, SET GLOBAL wsrep_provider_options='pc.bootstrap=1' there does it, too",
            list.join(", ")
        )
    }
}
