//! `trireme agent`: its arguments, and its life until a signal ends it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use trireme_agent::{Agent, AgentError, Login};
use trireme_testbed::interrupt;

/// May hold the password, instead of a file.
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
    /// Where to answer HTTP, host:port. Whoever reaches it can read the status: choose a network you trust.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8077")]
    listen: String,
}

#[derive(Subcommand)]
enum AgentCommand {
    /// Print the SQL that makes the agent's user: trireme agent grant | sudo mariadb
    Grant(UserArgs),
}

#[derive(Args)]
struct UserArgs {
    /// The SQL user, without privileges.
    #[arg(long, value_name = "NAME", default_value = "trireme-agent")]
    user: String,
    /// A file with the password (or TRIREME_AGENT_PASSWORD in the environment) [default: none: the server knows the user by
    /// the name of the process's owner].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Why the command ends.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The file of the password.
    #[error("cannot read {}: {source}", .path.display())]
    Password {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The agent does not start.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

/// Answers until SIGINT or SIGTERM; or prints SQL.
pub fn run(args: AgentArgs) -> Result<(), CommandError> {
    if let Some(AgentCommand::Grant(user)) = args.command {
        let password = password(user.password_file.as_deref())?;
        print!("{}", trireme_agent::grant(&user.user, password.as_deref()));
        return Ok(());
    }
    let login = Login {
        socket: args.socket,
        user: args.user.user,
        password: password(args.user.password_file.as_deref())?,
    };
    let socket = login.socket.display().to_string();
    let agent = Agent::start(login, &args.listen)?;
    eprintln!(
        "trireme agent: http://{} tells of the server at {socket}",
        agent.address()
    );
    while interrupt::sleep(Duration::from_secs(3600)).is_ok() {}
    Ok(())
}

/// From the file, or else from the environment. The last line's end is not part of it.
fn password(file: Option<&Path>) -> Result<Option<String>, CommandError> {
    let Some(path) = file else {
        return Ok(std::env::var(PASSWORD)
            .ok()
            .filter(|password| !password.is_empty()));
    };
    let text = std::fs::read_to_string(path).map_err(|source| CommandError::Password {
        path: path.to_owned(),
        source,
    })?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}
