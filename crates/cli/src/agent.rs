//! `trireme agent`: parses its arguments, and runs the agent until a signal ends it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use trireme_agent::{Agent, AgentError, Endpoint, Grantee, Login, NeedsPassword};
use trireme_testbed::interrupt;
use trireme_testbed::output::piece;

use crate::login::{PasswordError, password};

/// The environment variable that may hold the password, instead of a file.
const PASSWORD: &str = "TRIREME_AGENT_PASSWORD";

/// Arguments of `trireme agent`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AgentArgs {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    #[command(flatten)]
    user: UserArgs,
    /// The server's Unix socket.
    #[arg(long, value_name = "PATH", default_value = "/run/mysqld/mysqld.sock")]
    socket: PathBuf,
    /// The node's data directory: while SQL is closed, the state file in it says what the node does.
    #[arg(long, value_name = "DATADIR")]
    dir: Option<PathBuf>,
    /// The address for HTTP, host:port. Whoever can reach it can read the status: choose a network you trust.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8077")]
    listen: String,
}

#[derive(Subcommand)]
enum AgentCommand {
    /// Print the SQL that makes the agent's user: trireme agent grant | sudo mariadb
    Grant(GrantArgs),
}

#[derive(Args)]
struct GrantArgs {
    #[command(flatten)]
    user: UserArgs,
    /// The host of the user, such as 192.0.2.% (with a password).
    #[arg(long, value_name = "HOST", default_value = "localhost")]
    from: String,
    /// Also for `trireme doctor`: gives the user the privilege PROCESS.
    #[arg(long)]
    doctor: bool,
}

#[derive(Args)]
struct UserArgs {
    /// The SQL user, without privileges.
    #[arg(long, value_name = "NAME", default_value = "trireme-agent")]
    user: String,
    /// A file with the password (or TRIREME_AGENT_PASSWORD in the environment) [default: none: the server knows the
    /// user by the owner of the process].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// The reason why the command fails.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The password's file cannot be read.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The user needs a password.
    #[error(transparent)]
    Grant(#[from] NeedsPassword),
    /// The agent does not start.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

/// Runs the agent until SIGINT or SIGTERM; `grant` only prints SQL.
pub fn run(args: AgentArgs) -> Result<(), CommandError> {
    if let Some(AgentCommand::Grant(args)) = args.command {
        let password = password(args.user.password_file.as_deref(), PASSWORD)?;
        let grantee = Grantee {
            user: &args.user.user,
            host: &args.from,
            password: password.as_deref(),
            process: args.doctor,
        };
        piece(&trireme_agent::grant(&grantee)?);
        return Ok(());
    }
    let login = Login {
        endpoint: Endpoint::Socket(args.socket),
        user: args.user.user,
        password: password(args.user.password_file.as_deref(), PASSWORD)?,
    };
    let server = login.endpoint.to_string();
    let agent = Agent::start(login, args.dir, &args.listen)?;
    eprintln!(
        "trireme agent: http://{} tells of the server at {server}",
        agent.address()
    );
    while interrupt::sleep(Duration::from_secs(3600)).is_ok() {}
    Ok(())
}
