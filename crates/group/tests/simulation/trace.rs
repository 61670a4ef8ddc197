//! A run in words, for the reader of a failure.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use trireme_group::{
    Action, Body, Configuration, Delivery, Entry, Event, Incarnation, Message, ReplicaId, Term,
    WireBody,
};

/// Milestones kept, what is neither a heartbeat nor about submissions alone: the first and the last.
const FIRST: usize = 100;
const MILESTONES: usize = 100;
/// Last lines kept, of every kind; TRIREME_SIM_TRACE=<number> for more.
const LINES: usize = 60;

/// The last lines of a run, and the names of its processes.
#[derive(Debug, Default)]
pub struct Trace {
    /// Off while many seeds run: words take time.
    pub on: bool,
    first: Vec<String>,
    milestones: VecDeque<String>,
    lines: VecDeque<String>,
    limit: usize,
    processes: BTreeMap<Incarnation, String>,
    replicas: BTreeMap<ReplicaId, String>,
}

impl Trace {
    pub fn new(on: bool) -> Trace {
        Trace {
            on,
            limit: std::env::var("TRIREME_SIM_TRACE")
                .ok()
                .and_then(|n| n.parse().ok())
                .unwrap_or(LINES),
            ..Trace::default()
        }
    }

    pub fn name(
        &mut self,
        replica: ReplicaId,
        replica_name: String,
        incarnation: Incarnation,
        name: String,
    ) {
        self.replicas.insert(replica, replica_name);
        self.processes.insert(incarnation, name);
    }

    pub fn add(&mut self, line: String, milestone: bool) {
        if milestone && self.first.len() < FIRST {
            self.first.push(line);
            return;
        }
        let (lines, limit) = if milestone {
            (&mut self.milestones, MILESTONES)
        } else {
            (&mut self.lines, self.limit)
        };
        lines.push_back(line);
        if lines.len() > limit {
            lines.pop_front();
        }
    }

    /// The milestones, and the last lines of all in their order.
    pub fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self
            .first
            .iter()
            .chain(&self.milestones)
            .chain(&self.lines)
            .map(String::as_str)
            .collect();
        // Each begins with its time and its number.
        lines.sort_unstable();
        lines
    }

    pub fn process(&self, incarnation: Incarnation) -> &str {
        self.processes.get(&incarnation).map_or("?", String::as_str)
    }

    /// Uuids in a core's message replaced by names.
    pub fn readable(&self, text: &str) -> String {
        let mut text = text.replace("ReplicaId", "").replace("Incarnation", "");
        text = text.replace(&ReplicaId::default().to_string(), "-");
        for (incarnation, name) in &self.processes {
            text = text.replace(&incarnation.to_string(), name);
        }
        for (replica, name) in &self.replicas {
            text = text.replace(&replica.to_string(), name);
        }
        text
    }

    fn term(&self, term: Term) -> String {
        let holder = self.replicas.get(&term.replica).map_or("-", String::as_str);
        format!("{}@{holder}", term.number)
    }

    fn configuration(&self, configuration: &Configuration) -> String {
        let members = configuration.members.iter().map(|m| {
            let vote = if m.voter {
                format!("={}", m.weight)
            } else {
                String::new()
            };
            format!("{}{vote}", self.process(m.incarnation))
        });
        format!(
            "view {} [{}]",
            configuration.number,
            members.collect::<Vec<_>>().join(" ")
        )
    }

    fn body(&self, body: &Body) -> String {
        match body {
            Body::TermStart => "start".into(),
            Body::Configuration(configuration) => self.configuration(configuration),
            Body::Submission { id, payload } => {
                let joined = if payload == crate::judge::JOINED {
                    " joined"
                } else {
                    ""
                };
                format!("{}/{}{joined}", self.process(id.incarnation), id.number)
            }
            Body::Voided { id } => format!("void {}/{}", self.process(id.incarnation), id.number),
        }
    }

    pub fn entry(&self, entry: &Entry) -> String {
        format!(
            "{}:{} {}",
            entry.position,
            self.term(entry.term),
            self.body(&entry.body)
        )
    }

    pub fn message(&self, message: &Message) -> String {
        match message {
            Message::Status(s) => {
                let mut text = format!("status {} {:?}", self.term(s.term), s.component_state);
                let leadership = if s.leader { " leader" } else { "" };
                write!(
                    text,
                    "{leadership} view {} ack {} end {}",
                    s.configuration_number, s.ack, s.end
                )
                .ok();
                write!(text, " commit {}", s.commit).ok();
                text
            }
            Message::Append(a) => {
                let entries = a.entries.iter().map(|entry| {
                    let body = match &entry.body {
                        WireBody::Full(body) => self.body(body),
                        WireBody::Reference { id, .. } => {
                            format!("ref {}/{}", self.process(id.incarnation), id.number)
                        }
                    };
                    format!("{}:{} {body}", entry.position, self.term(entry.term))
                });
                let (term, prev) = (self.term(a.term), self.term(a.prev_term));
                let entries = entries.collect::<Vec<_>>().join(", ");
                format!(
                    "append {term} after {}:{prev} [{entries}] ack {} commit {}",
                    a.prev_position, a.ack, a.commit
                )
            }
            Message::Submit { number, payload } => {
                format!(
                    "submit {number}{}",
                    if payload.is_none() { " void" } else { "" }
                )
            }
            Message::Ack {
                term,
                position,
                commit,
            } => {
                format!("ack {} {position} commit {commit}", self.term(*term))
            }
            Message::Install {
                term,
                checkpoint,
                intact_at,
            } => format!(
                "install {} at {}:{} {} intact at {intact_at}",
                self.term(*term),
                checkpoint.position,
                self.term(checkpoint.term),
                self.configuration(&checkpoint.configuration)
            ),
            Message::Promise(p) => format!(
                "promise {} end {}:{} commit {}{} withdrawn {} {}",
                self.term(p.term),
                p.summary.end,
                self.term(p.summary.end_term),
                p.summary.commit,
                if p.amnesiac { " amnesiac" } else { "" },
                p.withdrawn.len(),
                p.configurations
                    .iter()
                    .map(|(at, c)| format!("{at}: {}", self.configuration(c)))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            Message::Summary { term, summary } => format!(
                "summary {} end {}:{} commit {}",
                self.term(*term),
                summary.end,
                self.term(summary.end_term),
                summary.commit
            ),
            Message::Join(join) => format!("join, known view {}", join.known_number),
            other => self.readable(&format!("{other:?}")),
        }
    }

    /// Not worth a line among the milestones.
    pub fn is_routine(message: &Message) -> bool {
        match message {
            Message::Append(append) => append.entries.iter().all(|entry| {
                !matches!(
                    entry.body,
                    WireBody::Full(Body::TermStart | Body::Configuration(_))
                )
            }),
            other => matches!(
                other,
                Message::Status(_)
                    | Message::Submit { .. }
                    | Message::Ack { .. }
                    | Message::Join(_)
                    | Message::Summary { .. }
                    | Message::PreVote { .. }
                    | Message::PreVoteReply { .. }
                    | Message::LogEnd { .. }
                    | Message::LogEndReply { .. }
            ),
        }
    }

    pub fn event(&self, event: &Event) -> String {
        match event {
            Event::Message { from, message } => {
                format!("<- {} {}", self.process(*from), self.message(message))
            }
            other => self.readable(&format!("{other:?}")),
        }
    }

    pub fn action(&self, action: &Action) -> String {
        match action {
            Action::Send { to, message } => {
                let to: Vec<&str> = to.iter().map(|peer| self.process(*peer)).collect();
                format!("-> {} {}", to.join(" "), self.message(message))
            }
            Action::Append { entry } => format!("append {}", self.entry(entry)),
            Action::Deliver {
                position,
                delivery: Delivery::Submission { id, .. },
            } => {
                format!(
                    "deliver {position}: {}/{}",
                    self.process(id.incarnation),
                    id.number
                )
            }
            Action::Deliver {
                position,
                delivery: Delivery::Configuration(configuration),
            } => {
                format!("deliver {position}: {}", self.configuration(configuration))
            }
            Action::Persist(state) => format!("persist {}", self.term(state.promised)),
            Action::NonPrimary { component } => {
                let component = component.iter().map(|m| self.process(m.incarnation));
                format!(
                    "non-primary component [{}]",
                    component.collect::<Vec<_>>().join(" ")
                )
            }
            Action::Reset { checkpoint } => format!("reset to {}", checkpoint.position),
            other => self.readable(&format!("{other:?}")),
        }
    }
}
