//! The arguments that name a server and the user to log in as.

use std::path::{Path, PathBuf};

use clap::Args;
use trireme_agent::{Endpoint, Login};

/// The environment variable that may hold the password, instead of a file.
pub const PASSWORD: &str = "TRIREME_PASSWORD";

/// The server to ask, and the user. The other members are asked over TCP, as the same user.
#[derive(Args)]
pub struct ServerArgs {
    /// The server's Unix socket [default: /run/mysqld/mysqld.sock].
    #[arg(long, value_name = "PATH", conflicts_with_all = ["host", "port"])]
    socket: Option<PathBuf>,
    /// The server's name or address, instead of a socket.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Its port.
    #[arg(long, value_name = "PORT", default_value_t = 3306, requires = "host")]
    port: u16,
    /// The SQL user [default: the name of the process's owner].
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A file with the password (or TRIREME_PASSWORD in the environment).
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// The password's file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", .path.display())]
pub struct PasswordError {
    path: PathBuf,
    source: std::io::Error,
}

impl ServerArgs {
    /// The login: endpoint, user and password.
    pub fn login(self) -> Result<Login, PasswordError> {
        let endpoint = match (self.socket, self.host) {
            (Some(path), _) => Endpoint::Socket(path),
            (None, Some(host)) => Endpoint::Tcp {
                host: host.trim_matches(['[', ']']).to_owned(),
                port: self.port,
            },
            (None, None) => Endpoint::Socket("/run/mysqld/mysqld.sock".into()),
        };
        Ok(Login {
            endpoint,
            user: self.user.unwrap_or_else(owner),
            password: password(self.password_file.as_deref(), PASSWORD)?,
        })
    }
}

/// The default user, which is also the default of the server's own clients.
fn owner() -> String {
    match rustix::process::geteuid().is_root() {
        true => "root".to_owned(),
        false => std::env::var("USER").unwrap_or_else(|_| "root".to_owned()),
    }
}

/// Returns the password: the first line of the file, or else the variable of the environment.
pub fn password(file: Option<&Path>, variable: &str) -> Result<Option<String>, PasswordError> {
    let Some(path) = file else {
        return Ok(std::env::var(variable)
            .ok()
            .filter(|password| !password.is_empty()));
    };
    let text = std::fs::read_to_string(path).map_err(|source| PasswordError {
        path: path.to_owned(),
        source,
    })?;
    let first = text.split(['\r', '\n']).next();
    Ok(Some(first.unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_first_line_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        for (text, wanted) in [
            ("a b", "a b"),
            ("secret\n", "secret"),
            ("secret\r\n", "secret"),
            ("secret\n# the user watch\n", "secret"),
            ("secret\r\nmore", "secret"),
            (" kept \n", " kept "),
            ("", ""),
            ("\nsecond", ""),
        ] {
            std::fs::write(&file, text).unwrap();
            let found = password(Some(&file), PASSWORD).unwrap();
            assert_eq!(found.as_deref(), Some(wanted), "{text:?}");
        }
    }
}
