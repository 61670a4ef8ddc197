//! `trireme status`, `doctor`, `why-waiting` and `conflicts`: reports on any cluster, also one that `trireme` did not
//! make.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use trireme_inspect::{ConflictsReport, DoctorReport, StatusReport, Survey, WaitingReport};
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

/// Arguments of `trireme why-waiting`.
#[derive(Args)]
pub struct WaitingArgs {
    /// The node's data directory (base_dir, if that is another one).
    #[arg(long, value_name = "DATADIR")]
    dir: PathBuf,
    /// The server's error log [default: the file in one of the usual places].
    #[arg(long, value_name = "FILE")]
    error_log: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `trireme conflicts`.
#[derive(Args)]
pub struct ConflictsArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Read the node's data directory instead of asking a server.
    #[arg(long, value_name = "DATADIR", conflicts_with_all = ["socket", "host", "user", "password_file"])]
    dir: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Shows the reason why a node waits.
pub fn why_waiting(args: WaitingArgs) -> Result<(), AnyError> {
    let report = WaitingReport::of_directory(&args.dir, args.error_log.as_deref())?;
    print(&report, args.json, WaitingReport::text)
}

/// Shows the commits that lost a conflict, and their winners.
pub fn conflicts(args: ConflictsArgs) -> Result<(), AnyError> {
    let report = match args.dir {
        Some(dir) => ConflictsReport::of_directory(&dir)?,
        None => ConflictsReport::of_cluster(&Survey::take(&args.server.login()?)?),
    };
    print(&report, args.json, ConflictsReport::text)
}

/// A check has failed; the exit status says so, too.
#[derive(Debug, thiserror::Error)]
#[error("a check has failed")]
pub struct CheckFailed;

/// Shows the faults of the cluster. Fails if a check fails.
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
