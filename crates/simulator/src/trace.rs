//! Prints the story of a run for a reader.

use std::collections::BTreeMap;
use std::fmt::Write;

use trireme_group::{Body, Configuration, Delivery, Incarnation, ReplicaId, Uuid};

use crate::seen::{Seen, Sight, TimeUs};

/// Prints a story.
#[derive(Default)]
pub struct Trace {
    /// Names: n2 for a data directory, n2#3 for its third process.
    names: BTreeMap<Uuid, String>,
    /// Print everyday events, too.
    everything: bool,
}

impl Trace {
    /// A trace of unusual events, or of all events.
    pub fn new(everything: bool) -> Trace {
        Trace {
            everything,
            ..Trace::default()
        }
    }

    /// Gives names to a process that has started, and to its data directory.
    pub fn name(&mut self, node: usize, start: u64, replica: ReplicaId, incarnation: Incarnation) {
        self.names.insert(replica.0, format!("n{}", node + 1));
        let name = format!("n{}#{start}", node + 1);
        self.names.insert(incarnation.0, name);
    }

    /// Prints a line.
    pub fn line(&self, at_us: TimeUs, line: &str) {
        let line = self.with_names(line);
        println!("{:>11.3}  {line}", at_us as f64 / 1000.0);
    }

    /// Prints an event.
    pub fn sight(&self, sight: &Sight) {
        let what = match &sight.what {
            Seen::Started { .. } | Seen::Stopped { .. } | Seen::Disconnected => return, // the world says more
            Seen::Founded { history, seqno } => {
                format!("founds or continues history {history} above {seqno}")
            }
            Seen::Counted { history, seqno } => {
                format!("counts its database as being at {history}:{seqno}")
            }
            Seen::ComponentState {
                component_state,
                view,
                ..
            } => format!("is {component_state:?} in view {view}"),
            Seen::Truncated { after } => format!("drops its log above {after}"),
            Seen::BeganAnew { checkpoint } => format!(
                "begins its log anew above {} in {}",
                checkpoint.position,
                view(&checkpoint.configuration)
            ),
            Seen::Delivered {
                position,
                delivery: Delivery::Configuration(configuration),
            } => format!("delivers {position}: {}", view(configuration)),
            Seen::Snapshot { history, seqno, .. } => {
                format!("has a database from elsewhere, at {history}:{seqno}")
            }
            Seen::Overridden { .. } | Seen::Reformed { .. } | Seen::Waiting { .. } => {
                format!("{:?}", sight.what)
            }
            daily if self.everything => self.daily(daily),
            _ => return,
        };
        self.line(sight.at_us, &format!("n{} {what}", sight.node + 1));
    }

    fn daily(&self, what: &Seen) -> String {
        match what {
            Seen::Appended { entry } => {
                let (position, term) = (entry.position, entry.term);
                let body = match &entry.body {
                    Body::Configuration(configuration) => view(configuration),
                    Body::Submission { id, payload } => format!("{id}, {} bytes", payload.len()),
                    Body::Voided { id } => format!("void {id}"),
                    Body::TermStart => "term start".to_owned(),
                };
                format!("appends {position} ({term}): {body}")
            }
            Seen::Delivered {
                position,
                delivery: Delivery::Submission { id, .. },
            } => format!("delivers {position}: {id}"),
            other => format!("{other:?}"),
        }
    }

    fn with_names(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (id, name) in &self.names {
            let id = id.to_string();
            if line.contains(&id) {
                line = line.replace(&id, name);
            }
        }
        line
    }
}

/// A view in short: its number, and its members with their votes.
fn view(configuration: &Configuration) -> String {
    let mut text = format!("view {} of", configuration.number);
    for member in &configuration.members {
        let vote = match (member.voter, member.weight) {
            (true, 1) => String::new(),
            (true, weight) => format!(" (weight {weight})"),
            (false, _) => " (no vote yet)".to_owned(),
        };
        write!(text, " {}{vote}", member.incarnation).expect("writing to a string succeeds");
    }
    if let Some(id) = configuration.override_id {
        write!(text, ", override {id}").expect("as above");
    }
    text
}
