//! The `trireme` program: parses the command line and calls the crate that does the work. Errors go to standard error.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};
use trireme_cli::arbitrator::{self, ArbitratorArgs, CommandError};
use trireme_lab::inserts;
use trireme_lab::latency;
use trireme_lab::nodes;
use trireme_lab::optimum;
use trireme_lab::provider;
use trireme_lab::sysbench;
use trireme_lab::tpcc;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::packages;
use trireme_testbed::settings::{Settings, SstMethod, default_dir};
use trireme_trials::crash;
use trireme_trials::demo::{self, DemoOptions};
use trireme_trials::soak::{self, SoakOptions};

mod agent;
mod cluster_commands;
mod inspect;
mod login;
mod pages;
mod tls;

/// Synchronous multi-primary replication for MariaDB: local clusters, demo, measurements.
#[derive(Parser)]
#[command(name = "trireme", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The arbitrator of a cluster: a member that votes and keeps the log, and has no database.
#[derive(Parser)]
#[command(name = "garbd", version, disable_version_flag = true)]
struct Garbd {
    #[command(flatten)]
    args: ArbitratorArgs,
    /// Print version.
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::Version)]
    version: (),
}

#[derive(Subcommand)]
enum Command {
    /// Beside a server: health checks, metrics and status of its node over HTTP.
    Agent(agent::AgentArgs),
    /// A member of a cluster without a database: votes, keeps the log, serves missing write-sets.
    Arbitrator(ArbitratorArgs),
    /// A cluster of MariaDB servers on this machine, for trying things out.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Encryption of the group traffic by certificates.
    #[command(subcommand)]
    Tls(tls::TlsCommand),
    /// Encryption of the group traffic by a shared secret.
    #[command(subcommand)]
    Secret(tls::SecretCommand),
    /// Three nodes under load: one is killed, comes back, and all hold the same rows (about a minute).
    Demo {
        /// The wsrep provider [default: libtrireme.so beside this program].
        #[arg(long, value_name = "PATH")]
        provider: Option<PathBuf>,
        /// Leave the cluster running at the end (so does KEEP=1 in the environment).
        #[arg(long)]
        keep: bool,
    },
    /// Measurements against other systems.
    #[command(subcommand)]
    Bench(BenchCommand),
    // The help text is at the type of the arguments.
    Crash(crash::Plan),
    /// A running cluster at a glance: members, leader, lag, commit times, how many losses it survives now.
    Status(inspect::StatusArgs),
    /// Everything that is wrong with a running cluster, or will be, with its remedy. Ends with 1 if a check has failed.
    Doctor(inspect::DoctorArgs),
    /// Why a node waits, from its data directory alone: SQL is closed while it waits.
    WhyWaiting(inspect::WaitingArgs),
    /// The commits that lost a conflict, the commits that won it, and the rows.
    Conflicts(inspect::ConflictsArgs),
    /// Mixed load for a long time: watches memory, errors and identity.
    Soak {
        /// The wsrep provider [default: libtrireme.so beside this program].
        #[arg(long, value_name = "PATH")]
        provider: Option<PathBuf>,
        /// Length of the load.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        minutes: u64,
        /// Number of nodes.
        #[arg(long, default_value_t = 3, value_parser = parse_nodes)]
        nodes: usize,
        /// Fail when a server's memory grows faster than this.
        #[arg(long, value_name = "MIB")]
        max_growth_mib_per_minute: Option<f64>,
        /// Write the memory samples to this CSV file.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Write man pages and shell completions into a directory (`make deb` does).
    #[command(hide = true)]
    Pages {
        /// The directory.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

#[derive(Subcommand)]
enum ClusterCommand {
    /// Start a cluster, or one that was stopped, and leave it running.
    Up(UpArgs),
    /// Stop a cluster; its data stay for the next `up`.
    Down {
        /// The cluster's directory [default: one per user in the directory of temporary files].
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Remove its data too.
        #[arg(long)]
        delete: bool,
    },
    /// Show the nodes and how to connect.
    Status {
        /// The cluster's directory [default: one per user in the directory of temporary files].
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Arguments of `cluster up`.
#[derive(Args)]
struct UpArgs {
    /// Number of nodes [default: 3].
    #[arg(long, value_parser = parse_nodes)]
    nodes: Option<usize>,
    /// The cluster's directory [default: one per user in the directory of temporary files].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The wsrep provider [default: libtrireme.so beside this program].
    #[arg(long, value_name = "PATH")]
    provider: Option<PathBuf>,
    /// First port; each node takes ten [default: free ones are searched].
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1024..))]
    base_port: Option<u16>,
    /// Further argument of mariadbd, such as --innodb-buffer-pool-size=1G (repeatable).
    #[arg(long = "mariadbd-arg", value_name = "ARG", allow_hyphen_values = true)]
    mariadbd_args: Vec<String>,
    /// The method of a full state transfer (SST) [default: rsync].
    #[arg(long, value_enum)]
    sst_method: Option<SstMethod>,
    /// Further wsrep_provider_options, such as "gcache.size=1G".
    #[arg(long, value_name = "STR")]
    provider_options: Option<String>,
}

#[derive(Subcommand)]
enum BenchCommand {
    // The help texts are at the types of the arguments.
    Inserts(inserts::Plan),
    Latency(latency::Plan),
    Nodes(nodes::Plan),
    Provider(provider::Plan),
    Optimum(optimum::Plan),
    Sysbench(sysbench::Plan),
    Tpcc(tpcc::Plan),
}

fn parse_nodes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=64).contains(&n) => Ok(n),
        _ => Err("give a number from 1 to 64".to_string()),
    }
}

type AnyError = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    if provider::is_host() {
        return provider::host();
    }
    let argv0 = std::env::args_os().next().unwrap_or_default();
    let (name, command) = match arbitrator::is_garbd(Path::new(&argv0)) {
        true => (arbitrator::GARBD, Command::Arbitrator(Garbd::parse().args)),
        false => ("trireme", Cli::parse().command),
    };
    match interruptible(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if interrupt::check() == Err(Interrupted) => {
            eprintln!("{name}: {}", interrupted(&error.to_string()));
            ExitCode::from(130)
        }
        Err(error) => {
            let ended = error.downcast_ref::<CommandError>();
            // The log or the screen has these errors already.
            let is_told = matches!(ended, Some(CommandError::Ended(_)));
            if !is_told && !error.is::<inspect::CheckFailed>() {
                eprintln!("{name}: error: {error}");
            }
            ExitCode::from(ended.map_or(1, CommandError::exit_status))
        }
    }
}

/// The text for an error after an interruption: the error may be another one, such as that a server does not stop.
fn interrupted(error: &str) -> String {
    let interrupted = Interrupted.to_string();
    match error == interrupted {
        true => interrupted,
        false => format!("{interrupted}: {error}"),
    }
}

impl Command {
    /// Whether servers may run that the program has to stop before it ends.
    fn has_servers(&self) -> bool {
        matches!(
            self,
            Self::Bench(_)
                | Self::Cluster(ClusterCommand::Up(_))
                | Self::Crash(_)
                | Self::Demo { .. }
                | Self::Soak { .. }
        )
    }

    /// Whether it checks for an interruption between its steps. A signal ends any other command at once.
    fn checks_for_interruption(&self) -> bool {
        self.has_servers() || matches!(self, Self::Agent(_) | Self::Arbitrator(_))
    }
}

fn interruptible(command: Command) -> Result<(), AnyError> {
    if command.checks_for_interruption() {
        interrupt::install()?;
    }
    if command.has_servers() {
        interrupt::install_for_hangup()?;
    }
    run(command)
}

fn run(command: Command) -> Result<(), AnyError> {
    match command {
        Command::Agent(args) => Ok(agent::run(args)?),
        Command::Arbitrator(args) => Ok(arbitrator::run(args)?),
        Command::Tls(command) => Ok(tls::run(command)?),
        Command::Secret(command) => Ok(tls::run_secret(command)?),
        Command::Cluster(ClusterCommand::Up(args)) => up(args),
        Command::Cluster(ClusterCommand::Down { dir, delete }) => Ok(cluster_commands::down(
            &dir.unwrap_or_else(default_dir),
            delete,
        )?),
        Command::Cluster(ClusterCommand::Status { dir }) => {
            Ok(cluster_commands::status(&dir.unwrap_or_else(default_dir))?)
        }
        Command::Demo { provider, keep } => {
            let keep = keep
                || std::env::var("KEEP").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
            let provider = packages::provider(provider.as_deref())?;
            Ok(demo::run(&DemoOptions {
                keep,
                ..DemoOptions::new(provider)
            })?)
        }
        Command::Soak {
            provider,
            minutes,
            nodes,
            max_growth_mib_per_minute,
            out,
        } => {
            let provider = packages::provider(provider.as_deref())?;
            Ok(soak::run(&SoakOptions {
                provider,
                minutes,
                nodes,
                max_growth_mib_per_minute,
                out,
            })?)
        }
        Command::Status(args) => inspect::status(args),
        Command::Doctor(args) => inspect::doctor(args),
        Command::WhyWaiting(args) => inspect::why_waiting(args),
        Command::Conflicts(args) => inspect::conflicts(args),
        Command::Crash(plan) => Ok(crash::run(&plan)?),
        Command::Pages { dir } => Ok(pages::write(&dir, Cli::command())?),
        Command::Bench(BenchCommand::Inserts(plan)) => Ok(inserts::run(&plan)?),
        Command::Bench(BenchCommand::Latency(plan)) => Ok(latency::run(&plan)?),
        Command::Bench(BenchCommand::Nodes(plan)) => Ok(nodes::run(&plan)?),
        Command::Bench(BenchCommand::Provider(plan)) => Ok(provider::run(&plan)?),
        Command::Bench(BenchCommand::Optimum(plan)) => Ok(optimum::run(&plan)?),
        Command::Bench(BenchCommand::Tpcc(plan)) => Ok(tpcc::run(&plan)?),
        Command::Bench(BenchCommand::Sysbench(plan)) => Ok(sysbench::run(&plan)?),
    }
}

fn up(args: UpArgs) -> Result<(), AnyError> {
    let dir = args.dir.unwrap_or_else(default_dir);
    if trireme_testbed::Cluster::exists(&dir) {
        let provider = args
            .provider
            .map(|path| packages::provider(Some(&path)))
            .transpose()?;
        return Ok(cluster_commands::up_again(
            &dir,
            args.nodes,
            args.base_port,
            |settings| {
                settings.provider = provider.or(settings.provider.take());
                settings.sst_method = args.sst_method.unwrap_or(settings.sst_method);
                if let Some(options) = args.provider_options {
                    settings.provider_options = options;
                }
                if !args.mariadbd_args.is_empty() {
                    settings.mariadbd_args = args.mariadbd_args;
                }
            },
        )?);
    }
    let provider = packages::provider(args.provider.as_deref())?;
    Ok(cluster_commands::up_new(Settings {
        base_port: args.base_port,
        mariadbd_args: args.mariadbd_args,
        sst_method: args.sst_method.unwrap_or_default(),
        provider_options: args.provider_options.unwrap_or_default(),
        ..Settings::new(dir, args.nodes.unwrap_or(3), Some(provider))
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_after_an_interruption_is_told() {
        assert_eq!(interrupted("interrupted"), "interrupted");
        let error = "node1: cannot kill the server: still there";
        assert_eq!(interrupted(error), format!("interrupted: {error}"));
    }
}
