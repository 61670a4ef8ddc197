//! The plan of the change: the steps, and the provider options that a node in a given state needs for each. No SQL
//! here.

use std::fmt;

use trireme_node::options::escape;
use trireme_tls::Files;

/// The steps, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The node dials plaintext and accepts both.
    AcceptBoth,
    /// The node dials TLS and accepts both.
    DialTls,
    /// The node refuses plaintext, and renews its remaining plaintext links.
    RefusePlaintext,
}

impl Phase {
    /// All steps.
    pub const ALL: [Phase; 3] = [Phase::AcceptBoth, Phase::DialTls, Phase::RefusePlaintext];

    /// The step in words, for a line to the operator.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Phase::AcceptBoth => "accepts TLS, too",
            Phase::DialTls => "dials TLS",
            Phase::RefusePlaintext => "refuses plaintext",
        }
    }

    /// Whether the node has completed this step.
    pub(super) fn is_done(self, state: &State) -> bool {
        match self {
            Phase::AcceptBoth => state.dials_tls || state.accepts_both && state.has_files,
            Phase::DialTls => state.dials_tls,
            Phase::RefusePlaintext => {
                state.dials_tls
                    && !state.accepts_both
                    && state.is_required
                    && state.plaintext_links == 0
            }
        }
    }
}

/// The state of a node, from its status and system variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub name: String,
    /// `wsrep_provider_name`.
    pub provider: String,
    /// `wsrep_gcomm_uuid`.
    pub member: String,
    /// `wsrep_cluster_state_uuid`.
    pub history: String,
    pub size: usize,
    pub is_synced: bool,
    /// `wsrep_trireme_is_leader`.
    pub is_leader: bool,
    pub plaintext_links: usize,
    /// `wsrep_trireme_member_links`; None: an older release, which does not count them.
    pub member_links: Option<usize>,
    /// `socket.ssl`.
    pub dials_tls: bool,
    /// `socket.dynamic`.
    pub accepts_both: bool,
    /// `socket.ssl_cert` and `socket.ssl_key`.
    pub has_files: bool,
    /// `repl.require_encryption`.
    pub is_required: bool,
    /// `repl.secret_file`.
    pub has_secret: bool,
}

/// Undoes the last step, and the one before: the node dials plaintext again, since all nodes accept it but no other one
/// dials it any more.
pub(super) const BACK: &str = "repl.require_encryption=no;socket.dynamic=yes;socket.ssl=no";

impl State {
    /// The number of other members.
    pub fn others(&self) -> usize {
        self.size.saturating_sub(1)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let synced = if self.is_synced {
            "synced"
        } else {
            "not synced"
        };
        write!(
            f,
            "{synced}, {} members, {} links to them, {} links in plaintext",
            self.size,
            self.member_links.unwrap_or(0),
            self.plaintext_links
        )
    }
}

/// The provider options that a node needs for a step; None if it has completed the step.
pub(super) fn options(phase: Phase, state: &State, files: &Files) -> Option<String> {
    if phase.is_done(state) {
        return None;
    }
    Some(match phase {
        Phase::AcceptBoth if state.has_files => "socket.dynamic=yes".to_owned(),
        Phase::AcceptBoth => {
            let given = [
                ("socket.ssl_cert", &files.cert),
                ("socket.ssl_key", &files.key),
                ("socket.ssl_ca", &files.ca),
                ("socket.ssl_crl", &files.crl),
                ("socket.ssl_password_file", &files.password),
            ];
            let mut text = String::new();
            for (option, path) in given.into_iter().filter(|(_, path)| !path.is_empty()) {
                let path = escape(&path.replace("%n", &state.name));
                text += &format!("{option}={path};");
            }
            text + "socket.dynamic=yes"
        }
        Phase::DialTls => "socket.ssl=yes".to_owned(),
        Phase::RefusePlaintext => "socket.dynamic=no;repl.require_encryption=yes".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        Files {
            cert: "/tls/%n/cert.pem".into(),
            key: "/tls/%n/k;ey.pem".into(),
            ca: "/tls/ca.pem".into(),
            ..Files::default()
        }
    }

    fn plain() -> State {
        State {
            name: "node1".into(),
            plaintext_links: 2,
            ..State::default()
        }
    }

    #[test]
    fn a_plain_node_takes_all_steps() {
        let mut state = plain();
        assert_eq!(
            options(Phase::AcceptBoth, &state, &files()).unwrap(),
            "socket.ssl_cert=/tls/node1/cert.pem;socket.ssl_key=/tls/node1/k\\;ey.pem;socket.ssl_ca=/tls/ca.pem;socket.dynamic=yes"
        );
        (state.has_files, state.accepts_both) = (true, true);
        assert_eq!(options(Phase::AcceptBoth, &state, &files()), None);
        assert_eq!(
            options(Phase::DialTls, &state, &files()).unwrap(),
            "socket.ssl=yes"
        );
        state.dials_tls = true;
        assert_eq!(options(Phase::DialTls, &state, &files()), None);
        let last = options(Phase::RefusePlaintext, &state, &files()).unwrap();
        assert!(last.starts_with("socket.dynamic=no"));
        (state.accepts_both, state.is_required) = (false, true);
        assert!(
            !Phase::RefusePlaintext.is_done(&state),
            "links in plaintext are left"
        );
        state.plaintext_links = 0;
        assert_eq!(options(Phase::RefusePlaintext, &state, &files()), None);
    }

    #[test]
    fn files_that_a_node_has_are_left_alone() {
        let state = State {
            has_files: true,
            ..plain()
        };
        assert_eq!(
            options(Phase::AcceptBoth, &state, &files()).unwrap(),
            "socket.dynamic=yes"
        );
    }

    #[test]
    fn accepting_both_means_nothing_without_files() {
        let state = State {
            accepts_both: true,
            ..plain()
        };
        assert!(options(Phase::AcceptBoth, &state, &files()).is_some());
    }
}
