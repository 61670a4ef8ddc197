//! `trireme status` and `trireme doctor`: questions to a cluster that runs, whoever made it.

use clap::Args;
use serde::Serialize;
use trireme_inspect::{DoctorReport, StatusReport, Survey};
use trireme_testbed::output::{line, piece};

use crate::AnyError;
use crate::login::ServerArgs;

/// Arguments of `trireme status`.
#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `trireme doctor`.
#[derive(Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// As JSON: a list `checks` of name, result (ok, unknown, warning, failed), text and remedy.
    #[arg(long)]
    json: bool,
    /// Show the checks that passed, too.
    #[arg(long)]
    all: bool,
}

/// A check has failed: told by the exit status, too.
#[derive(Debug, thiserror::Error)]
#[error("a check has failed")]
pub struct CheckFailed;

/// Shows what is wrong with the cluster. Fails if a check does.
pub fn doctor(args: DoctorArgs) -> Result<(), AnyError> {
    let report = DoctorReport::examine(&args.server.login()?)?;
    print(&report, args.json, |report| report.text(args.all))?;
    match report.has_failed() {
        true => Err(CheckFailed.into()),
        false => Ok(()),
    }
}

/// Shows the cluster at a glance.
pub fn status(args: StatusArgs) -> Result<(), AnyError> {
    let survey = Survey::take(&args.server.login()?)?;
    let report = StatusReport::new(&survey);
    print(&report, args.json, StatusReport::text)
}

fn print<T: Serialize>(
    report: &T,
    json: bool,
    text: impl Fn(&T) -> String,
) -> Result<(), AnyError> {
    match json {
        true => line(&serde_json::to_string_pretty(report)?),
        false => piece(&text(report)),
    }
    Ok(())
}
