//! The words of a process without a majority to its operator: the missing members, and how to go on without them (rule
//! 18).

use trireme_mutants::{Mutant, planted};

use crate::branches::Branches;
use crate::configuration::{Configuration, Member};
use crate::ids::{Incarnation, Position, ReplicaId};
use crate::message::ComponentState;
use crate::peer::Peer;

/// The members for which a process without a majority waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Members of its view that are connected.
    pub here: Vec<Member>,
    /// Members of its view that are not connected.
    pub missing: Vec<Member>,
    /// Text for the operator: both lists, and how to go on.
    pub text: String,
}

impl<'a> Branches<'a> {
    /// Returns the members for which a process without a majority waits, and how to go on without them (rule 18). None:
    /// this process does not wait for a majority.
    pub(crate) fn who_is_missing(self, is_amnesiac: bool) -> Option<Missing> {
        let lacking = self.lacks_majority();
        // If all are here and none is primary, too many of them may have forgotten (simulator, seed 6100003132 of
        // `mistakes`).
        let in_vain = !self.hears_primary() && !planted(Mutant::WaitInVainUntold);
        let waits =
            lacking.is_some() || self.is_overridden() || self.outvotes_a_primary() || in_vain;
        let survivor_waits =
            self.component.is_non_primary() && waits && !planted(Mutant::SurvivorSaysNothing);
        if !self.component.is_resumed() && !survivor_waits {
            return None;
        }
        let latest = self.log.latest();
        let (up, missing): (Vec<_>, Vec<_>) = (lacking.unwrap_or(latest).members.iter())
            .partition(|member| self.has_voice(member.replica));
        let name = |m: &Member| format!("{} ({})", m.name, m.address);
        let names = |members: &[&Member]| match members.is_empty() {
            true => "nobody".to_owned(),
            false => (members.iter().map(|m| name(m)).collect::<Vec<_>>()).join(", "),
        };
        let number = lacking.unwrap_or(latest).number;
        let which = match number == latest.number {
            true => "the last view",
            false => "the view before the last one",
        };
        let mut text = format!(
            "waiting for a majority of {which} ({number}): here are {}, missing are {}",
            names(&up),
            names(&missing)
        );
        let connected = |m: &&&Member| {
            let mut peers = self.peers.connected();
            peers.any(|(peer, p)| p.replica == m.replica && !self.is_apart(peer))
        };
        if let Some(doubled) = missing.iter().find(connected) {
            text += &format!(
                "; two processes run with the replica id {} of {}: one of them is on a copied data directory, and neither \
                 has a vote until the other is gone; stop the copy and remove its trireme state files and grastate.dat",
                doubled.replica.0, doubled.name
            );
        }
        let known = |peer: &&Peer| latest.replica(peer.replica).is_some();
        let strangers = self.peers.connected().filter(|(_, peer)| !known(peer));
        let strangers = strangers.count() + usize::from(self.own_seat().is_none());
        if strangers > 0 {
            text += &format!(
                "; connected nodes without a vote, because they are not in that view or have a new data directory: \
                 {strangers}"
            );
        }
        let history = self.log.committed().history;
        let statuses = self.peers.statuses();
        if let Some(other) = statuses
            .map(|s| s.history)
            .find(|h| !h.is_nil() && *h != history)
        {
            text += &format!(
                "; a node here is in the cluster {other}, this one goes on with {history}: to join the other one, move \
                 grastate.dat and the trireme-*.log files away, which drops this node's own data"
            );
        }
        if let Some(branch) = self.tell_the_other_branch() {
            text += &branch;
        } else if is_amnesiac || lacking.is_none() {
            text += &self.tell_what_may_be_missing(is_amnesiac);
        } else {
            text += &self.tell_the_way_out();
        }
        let owned = |members: Vec<&Member>| members.into_iter().cloned().collect();
        Some(Missing {
            here: owned(up),
            missing: owned(missing),
            text,
        })
    }

    /// The newest configuration that may be in force (rule 3) and has no majority here.
    fn lacks_majority(self) -> Option<&'a Configuration> {
        let later = self.log.uncommitted();
        let later = later.map(|(_, configuration)| configuration);
        let mut all = std::iter::once(&self.log.committed().configuration).chain(later);
        let lacks = |configuration: &&Configuration| {
            let here = configuration.weight_of(|m| self.has_voice(m.replica));
            !configuration.is_majority(here)
        };
        all.rfind(lacks)
    }

    fn has_voice(self, replica: ReplicaId) -> bool {
        let voice = || {
            self.known()
                .voice(replica)
                .filter(|voice| !self.is_apart(*voice))
        };
        replica == self.context.my_replica() || voice().is_some()
    }

    /// True if the peer is on another branch, so that it has no voice on this one.
    fn is_apart(self, peer: Incarnation) -> bool {
        self.has_gone_elsewhere(peer) || self.is_primary_alone(peer)
    }

    /// True if a connected peer gives way to a majority that may form here. If too many of its members are amnesiac, it
    /// does not form, and an operator has to decide.
    fn outvotes_a_primary(self) -> bool {
        let mut peers = self.peers.connected();
        peers.any(|(peer, _)| self.is_primary_alone(peer))
    }

    /// True if a connected process of this history is primary.
    pub(crate) fn hears_primary(self) -> bool {
        let history = self.log.committed().history;
        let mut statuses = self.peers.statuses();
        statuses.any(|s| s.component_state == ComponentState::Primary && s.history == history)
    }

    /// The members of the last view that are here and on this branch, each with the end of its log.
    fn ends(self) -> impl DoubleEndedIterator<Item = (Position, &'a Member)> {
        self.log.latest().members.iter().filter_map(move |member| {
            if member.replica == self.context.my_replica() {
                return Some((self.log.tail().end(), member));
            }
            let mut peers = self.peers.connected();
            let (incarnation, peer) = peers.find(|(_, p)| p.replica == member.replica)?;
            let end = peer.status.as_ref()?.end;
            (!self.is_apart(incarnation)).then_some((end, member))
        })
    }

    /// The member that an operator should make primary: of those here with a database and a vote, it has the longest
    /// log.
    fn furthest(self) -> Option<&'a str> {
        let able = self.ends().filter(|(_, m)| m.weight > 0 && !m.arbitrator);
        let furthest = able.rev().max_by_key(|(end, _)| *end);
        furthest.map(|(_, member)| member.name.as_str())
    }

    /// If this branch of the history meets another (rule 11), tells the operator which node is on which branch.
    fn tell_the_other_branch(self) -> Option<String> {
        let here = self.furthest().unwrap_or("this node");
        if self
            .peers
            .all()
            .any(|(peer, _)| self.has_gone_elsewhere(peer))
        {
            return Some(format!(
                "; connected nodes have become primary without an override that this node knows (pc.bootstrap), and \
                 will give way to it. To join them: stop this node, move grastate.dat and the trireme-*.log files \
                 away, which drops its own commits, and start it again. To drop their commits instead, {}",
                bootstrap(here)
            ));
        }
        if !self.component.is_non_primary() {
            return None;
        }
        if self.outvotes_a_primary() {
            return Some(format!(
                "; connected nodes have become primary without a majority (pc.ignore_sb, pc.ignore_quorum), and give way \
                 when a majority of this view is primary. If this lasts, too many members may have forgotten what they \
                 acknowledged. To join them: stop this node, move grastate.dat and the trireme-*.log files away, which \
                 drops its own commits, and start it again. To drop their commits instead, {}",
                bootstrap(here)
            ));
        }
        if !self.is_overridden() {
            return None;
        }
        let (mut names, mut furthest, mut primary) = (Vec::new(), None, false);
        for (incarnation, peer, status) in self.overriders() {
            let name = self.name_of(incarnation, peer.replica);
            furthest = furthest.max(Some((status.end, name.clone())));
            primary |= status.component_state == ComponentState::Primary;
            names.push(name);
        }
        let Some((_, furthest)) = furthest else {
            return Some(format!(
                "; other nodes have gone on with an override that this node lacks (pc.bootstrap), and cannot be \
                 reached: this node waits for them. If their data directories are lost for good, their acknowledged \
                 commits are lost: to go on without them, {}",
                bootstrap(here)
            ));
        };
        let mut text = format!(
            "; {} went on with an override that this node lacks (pc.bootstrap): this node gives way, and waits until \
             they admit it",
            names.join(", ")
        );
        if !primary {
            text += &format!(
                ". Not primary there: start the others that were. If their data directories are lost for good: to go on \
                 without them, {}. If it is that override that is to be given up: stop {}, move grastate.dat and the \
                 trireme-*.log files away there, and start again",
                bootstrap(&furthest),
                names.join(", ")
            );
        }
        Some(text)
    }

    /// Tells the operator how to go on if the missing nodes never come back: a node with a wiped data directory is
    /// another member.
    fn tell_the_way_out(self) -> String {
        if self.hears_primary() {
            return String::new(); // the primary component admits this node
        }
        let how = match self.furthest() {
            Some(name) => format!(
                "{}; if its server does not answer, {}",
                bootstrap(name),
                found_anew("its grastate.dat")
            ),
            None => found_anew("the grastate.dat of the one with the highest position"),
        };
        format!(
            ". Start them. If their data directories are lost for good, and they are not a cluster of their own, \
             commits that only they acknowledged are lost: to go on without them, {how}"
        )
    }

    /// Half of the votes or more may be amnesiac: then the cluster goes on by itself when all members are here (rule 4).
    /// Tells the operator the missing ones, and the remedy if that does not help.
    fn tell_what_may_be_missing(self, is_amnesiac: bool) -> String {
        let list: Vec<_> = (self.ends())
            .map(|(end, member)| format!("{} at {end}", member.name))
            .collect();
        let furthest = self.furthest().unwrap_or("this node");
        let is_absent = |m: &&Member| !self.has_voice(m.replica);
        let absent = self.log.latest().members.iter().filter(is_absent);
        let absent: Vec<_> = absent.map(|m| m.name.as_str()).collect();
        let (by_itself, if_not) = match absent.is_empty() {
            false => (
                format!(
                    "The cluster comes back by itself when all members are here: start {}",
                    absent.join(", ")
                ),
                "they never come back, commits that only they acknowledged are lost",
            ),
            true => (
                "All members are here: the cluster goes on by itself with the best log or database after \
                 evs.suspect_timeout, unless damage has removed views from too many logs, or a database cannot be \
                 compared with its log"
                    .to_owned(),
                "it does not, what the best log lacks is lost",
            ),
        };
        let (whose, so) = match is_amnesiac {
            true => (
                "This node",
                "it has no say until it has caught up with a majority",
            ),
            false => ("Members here", "too few are left that have a say"),
        };
        format!(
            ". {whose} may have forgotten the last entries that were acknowledged there (a power loss with \
             repl.durability=os, a death with memory, gcache.recover=no, or a damaged log), so {so}. {by_itself}. The logs here end: {}. Only if {if_not}: to go on without them, {}. Where the server of {furthest} answers, SET GLOBAL \
             wsrep_provider_options='pc.bootstrap=1' there does it, too, with the logs alone",
            list.join(", "),
            found_anew(&format!(
                "the grastate.dat of {furthest} (or of the node whose database has the highest recovered position, if that is ahead) and \
                 of no other"
            ))
        )
    }
}

/// The remedy for a node whose server answers.
fn bootstrap(name: &str) -> String {
    format!(
        "execute SET GLOBAL wsrep_provider_options='pc.bootstrap=1' on {name}, and nowhere else"
    )
}

/// The remedy if no server answers.
fn found_anew(grastate: &str) -> String {
    format!(
        "stop all nodes, write safe_to_bootstrap: 1 into {grastate}, start it with galera_new_cluster, then the others"
    )
}
