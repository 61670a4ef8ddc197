//! `trireme tls enable`: its arguments, the step at which it stops, and what the operator does next.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use trireme_agent::{Endpoint, Login};
use trireme_encryption::{ChangeOver, Phase, change_over, parse_endpoint};
use trireme_testbed::output::line;

use super::{FileArgs, TlsCommandError};
use crate::login::{PASSWORD, password};

/// Arguments of `tls enable`.
#[derive(Args)]
pub struct EnableArgs {
    /// Files, as paths on each server; %n stands for its wsrep_node_name. A node with files of its own keeps these.
    #[command(flatten)]
    files: FileArgs,
    /// An SQL user that may set global variables.
    #[arg(long, value_name = "NAME", default_value = "root")]
    user: String,
    /// A file with its password (or TRIREME_PASSWORD in the environment) [default: none].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Members without SQL: arbitrators. They are restarted by hand after the step accept-both.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    others: usize,
    /// The last step to take [default: refuse-plaintext; with --others, accept-both until all nodes have taken it].
    #[arg(long, value_enum)]
    until: Option<Step>,
    /// The time that a node has to settle after a step.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
    /// All nodes of the cluster: host, host:port, or the path of a Unix socket.
    #[arg(value_name = "SERVER", required = true, value_parser = parse_endpoint)]
    servers: Vec<Endpoint>,
}

/// The steps of `tls enable`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Step {
    /// Nodes dial plaintext and accept both.
    AcceptBoth,
    /// Nodes dial TLS and accept both.
    DialTls,
    /// Nodes dial and accept only TLS.
    RefusePlaintext,
}

impl From<Step> for Phase {
    fn from(step: Step) -> Self {
        match step {
            Step::AcceptBoth => Phase::AcceptBoth,
            Step::DialTls => Phase::DialTls,
            Step::RefusePlaintext => Phase::RefusePlaintext,
        }
    }
}

pub(super) fn enable(args: EnableArgs) -> Result<(), TlsCommandError> {
    let password = password(args.password_file.as_deref(), PASSWORD)?;
    let login = |endpoint| Login {
        endpoint,
        user: args.user.clone(),
        password: password.clone(),
    };
    let mut change = ChangeOver {
        servers: args.servers.into_iter().map(login).collect(),
        others: args.others,
        files: args.files.files(),
        until: Phase::RefusePlaintext,
        timeout: Duration::from_secs(args.patience),
    };
    let (last, has_changed) = take_steps(args.until.map(Phase::from), args.others, |until| {
        change.until = until;
        change_over(&change, line)
    })?;
    if !has_changed {
        line("nothing to do: the nodes have taken these steps");
    }
    line(next(last, args.others));
    Ok(())
}

/// Takes the steps. `take` goes up to a step, and returns whether a node had to change. Returns the last step, and
/// whether a node had to change. The nodes lose an arbitrator that cannot speak TLS yet, so without an order the steps
/// end where the arbitrators are restarted.
fn take_steps<E>(
    until: Option<Phase>,
    others: usize,
    mut take: impl FnMut(Phase) -> Result<bool, E>,
) -> Result<(Phase, bool), E> {
    if until.is_none() && others > 0 && take(Phase::AcceptBoth)? {
        return Ok((Phase::AcceptBoth, true));
    }
    let last = until.unwrap_or(Phase::RefusePlaintext);
    Ok((last, take(last)?))
}

/// Returns what the operator does after a step.
fn next(last: Phase, others: usize) -> &'static str {
    match last {
        Phase::RefusePlaintext => {
            "all group traffic is encrypted. SET lasts until a restart: now put wsrep_provider_options of trireme-tls.cnf into the \
             configuration of each node (without it a node that restarts stays outside)"
        }
        Phase::AcceptBoth if others > 0 => {
            "now restart each arbitrator with socket.ssl_cert, socket.ssl_key and socket.ssl_ca, then run this command again, without \
             --until, for the other steps"
        }
        _ => "run this command again, without --until, for the other steps",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the command on nodes that have taken the steps up to `done`.
    fn ends(done: Option<Phase>, until: Option<Phase>, others: usize) -> (Phase, bool) {
        let take = |until: Phase| Ok::<_, ()>(done.is_none_or(|done| done < until));
        take_steps(until, others, take).unwrap()
    }

    #[test]
    fn arbitrators_are_restarted_between_the_steps() {
        let (first, last) = (Phase::AcceptBoth, Phase::RefusePlaintext);
        assert_eq!(ends(None, None, 0), (last, true));
        assert_eq!(ends(None, None, 1), (first, true));
        assert_eq!(ends(Some(first), None, 1), (last, true), "the second run");
        assert_eq!(ends(Some(last), None, 1), (last, false));
        assert_eq!(ends(None, Some(last), 1), (last, true), "by order");
        assert_eq!(ends(None, Some(first), 1), (first, true));
    }

    #[test]
    fn arbitrators_are_named_only_where_they_are_next() {
        let is_named = |last, others| next(last, others).contains("arbitrator");
        assert!(is_named(Phase::AcceptBoth, 1));
        assert!(!is_named(Phase::AcceptBoth, 0));
        assert!(!is_named(Phase::DialTls, 1));
        assert!(!is_named(Phase::RefusePlaintext, 1));
    }
}
