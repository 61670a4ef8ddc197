//! The systems that can be measured, each in a file of its own behind the trait [`System`].
//!
//! A system says how its servers are configured, joined, settled and checked; [`Deployed`] is one that runs. Each is set up
//! as its own documentation advises, and [`Durability`] asks the same of all of them.

mod deployed;
mod error;
mod galera;
mod group_replication;
mod plain;
mod provider;
mod semisync;
mod trireme;
mod wsrep;

use std::path::Path;
use std::time::Duration;

pub use deployed::Deployed;
pub use error::{DeployError, SystemError};
pub use wsrep::Wsrep;

use crate::cluster::Cluster;
use crate::cluster_error::ClusterError;
use crate::interrupt;
use crate::node::Node;
use crate::packages::{self, PackageError};
use crate::server::Server;
use crate::settings::Settings;
use crate::sql::{Sql, SqlError};
use crate::verify::CATCH_UP;

/// When a commit is on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Some time after it is acknowledged, on every node.
    Lazy,
    /// Before it is acknowledged, on the node of its client; the others may still have it in memory.
    Origin,
    /// Before it is acknowledged, on every node that acknowledges it.
    Full,
}

/// Which nodes of a system take writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Every node.
    All,
    /// The first node alone.
    First,
}

/// A way to keep the same rows on several servers, or a single server.
pub trait System {
    /// Its name in options and reports.
    fn name(&self) -> &str;

    /// One sentence for reports: how commits travel, and which advice its settings follow.
    fn about(&self) -> &'static str;

    /// The server program below it.
    fn server(&self) -> Server {
        Server::MariaDb
    }

    /// How many servers it has when `wanted` are asked for.
    fn nodes(&self, wanted: usize) -> usize {
        wanted
    }

    /// Adds what the system needs to the settings of its servers.
    fn configure(&self, durability: Durability, settings: &mut Settings);

    /// Joins servers that have just started, unless they have done so by themselves.
    fn connect(&self, _cluster: &mut Cluster) -> Result<(), DeployError> {
        Ok(())
    }

    /// Has node `i`, which was started again, take part as before, unless it does so by itself.
    fn rejoin(&self, _cluster: &Cluster, _i: usize) -> Result<(), DeployError> {
        Ok(())
    }

    /// Waits until every node has every acknowledged commit. The load must have stopped.
    fn settle(&self, cluster: &mut Cluster) -> Result<(), DeployError> {
        cluster.wait_caught_up(CATCH_UP)?;
        Ok(())
    }

    /// Fails if the system has not done since its start what its name says.
    fn check(&self, _cluster: &Cluster) -> Result<(), DeployError> {
        Ok(())
    }
}

/// The systems by name.
pub const NAMES: [&str; 8] = [
    "plain",
    "semisync",
    "galera",
    "trireme",
    "trireme-encrypted",
    "plain-mysql",
    "group-replication",
    "group-replication-single",
];

/// The system without replication that has the same server as `system`.
pub fn plain_of(system: &str) -> &'static str {
    match system {
        "plain-mysql" | "group-replication" | "group-replication-single" => "plain-mysql",
        _ => "plain",
    }
}

/// Which nodes of the system called `name` take writes.
pub fn writers(name: &str) -> Writers {
    match name {
        "plain" | "plain-mysql" | "semisync" | "group-replication-single" => Writers::First,
        _ => Writers::All,
    }
}

/// Whether the system called `name` runs under Galera, from the distribution or by a path.
pub fn is_galera(name: &str) -> bool {
    let path = name.split_once('=').map(|(_, path)| Path::new(path));
    path.map_or(name == "galera", packages::is_galera)
}

/// Whether the servers of the system called `name` take the settings of wsrep, and all of them take writes.
pub fn has_wsrep(name: &str) -> bool {
    matches!(name, "galera" | "trireme" | "trireme-encrypted") || name.contains('=')
}

/// Whether the system called `name` has a setting by which other nodes flush a commit before it is acknowledged. Where it has
/// none, [`Durability::Full`] is [`Durability::Origin`] once more. A provider named by its path keeps its defaults.
pub fn flushes_everywhere(name: &str) -> bool {
    let has_none = matches!(
        name,
        "galera" | "group-replication" | "group-replication-single"
    );
    !has_none && !name.contains('=')
}

/// The system called `name`, or the one under a provider if it is `NAME=PROVIDER_PATH`; Trireme's provider is `provider`, or
/// the library beside this program. Fails when one of its parts is not installed.
pub fn find(name: &str, provider: Option<&Path>) -> Result<Box<dyn System>, SystemError> {
    let system: Box<dyn System> = match name {
        "plain" => Box::new(plain::Plain(Server::MariaDb)),
        "semisync" => Box::new(semisync::SemiSync),
        "galera" => Box::new(galera::Galera::installed()?),
        "trireme" => Box::new(trireme::Trireme::with(provider, false)?),
        "trireme-encrypted" => Box::new(trireme::Trireme::with(provider, true)?),
        "plain-mysql" => Box::new(plain::Plain(Server::MySql)),
        "group-replication" | "group-replication-single" => {
            Box::new(group_replication::GroupReplication {
                writers: writers(name),
            })
        }
        "pxc" => {
            return Err(SystemError::CannotBeHad {
                name: name.to_string(),
            });
        }
        _ => match provider::Provider::parse(name) {
            Some(provider) => Box::new(provider?),
            None => return Err(SystemError::Unknown(name.to_string())),
        },
    };
    match system.server().program() {
        Ok(_) => Ok(system),
        Err(source @ PackageError::MySql(_)) => Err(SystemError::OnRequest {
            name: name.to_string(),
            source,
        }),
        Err(source) => Err(source.into()),
    }
}

/// The settings of InnoDB that `durability` asks of every system.
fn innodb(durability: Durability) -> &'static str {
    match durability {
        Durability::Lazy => "--innodb-flush-log-at-trx-commit=0",
        Durability::Origin | Durability::Full => "--innodb-flush-log-at-trx-commit=1",
    }
}

/// Adds arguments to those of the servers.
fn add(settings: &mut Settings, arguments: &[&str]) {
    let arguments = arguments.iter().map(|argument| argument.to_string());
    settings.mariadbd_args.extend(arguments);
}

fn connection(node: &Node) -> Result<Sql, DeployError> {
    node.sql()
        .map_err(|error| DeployError::Cluster(Box::new(error.into())))
}

/// Names the node whose statement failed.
fn failed(node: &Node) -> impl Fn(SqlError) -> DeployError + '_ {
    |source| DeployError::Sql {
        node: node.name.clone(),
        source,
    }
}

/// One turn of a loop that waits for servers.
fn pause() -> Result<(), DeployError> {
    interrupt::sleep(Duration::from_millis(50))
        .map_err(|interrupted| DeployError::Cluster(Box::new(interrupted.into())))
}

impl From<ClusterError> for DeployError {
    fn from(error: ClusterError) -> Self {
        Self::Cluster(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_says_so() {
        let reason = |name| find(name, None).err().map(|error| error.to_string());
        assert!(reason("pxc").unwrap().contains("--systems"));
        assert!(reason("pxc").unwrap().contains("package sources"));
        assert!(reason("oracle").unwrap().contains("plain, semisync"));
    }

    #[test]
    fn group_replication_is_there_or_names_the_command_that_gets_it() {
        for name in [
            "group-replication",
            "group-replication-single",
            "plain-mysql",
        ] {
            match find(name, None) {
                Ok(system) => assert_eq!(system.name(), name),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.starts_with(name), "{text}");
                    assert!(text.contains("scripts/mysql-root.sh"), "{text}");
                    assert!(error.leaves_a_row() && !text.contains('\n'), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_single_primary_takes_all_writes() {
        assert_eq!(writers("group-replication-single"), Writers::First);
        assert_eq!(writers("group-replication"), Writers::All);
        assert_eq!(writers("trireme"), Writers::All);
        let mysql = NAMES
            .into_iter()
            .filter(|name| plain_of(name) == "plain-mysql");
        assert_eq!(mysql.collect::<Vec<_>>(), NAMES[5..]);
        let wsrep = NAMES.into_iter().filter(|name| has_wsrep(name));
        let expected = ["galera", "trireme", "trireme-encrypted"];
        assert_eq!(wsrep.collect::<Vec<_>>(), expected);
        assert!(has_wsrep("mine=/x/libtrireme.so"));
    }

    #[test]
    fn a_provider_is_found_by_its_path() {
        assert!(is_galera("galera") && is_galera("other=/usr/lib/libgalera_smm.so"));
        assert!(!is_galera("trireme") && !is_galera("other=/usr/lib/libtrireme.so"));
        assert!(flushes_everywhere("trireme") && flushes_everywhere("semisync"));
        assert!(!flushes_everywhere("galera") && !flushes_everywhere("mine=/x/libtrireme.so"));
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!("mine={}", file.path().display());
        let system = find(&text, None).unwrap();
        let mut settings = Settings::new("/nonexistent", 3, None);
        system.configure(Durability::Lazy, &mut settings);
        assert_eq!(system.name(), text);
        assert!(settings.provider.is_some());
        assert!(find("=/x", None).is_err() && find("a=/nonexistent", None).is_err());
    }

    #[test]
    fn a_missing_library_names_its_remedy() {
        let missing = find("trireme", Some(Path::new("/nonexistent/libx.so")));
        let text = missing.err().unwrap().to_string();
        assert!(
            text.contains("--provider") && !text.contains('\n'),
            "{text}"
        );
    }
}
