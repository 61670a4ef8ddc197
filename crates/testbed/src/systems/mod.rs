//! The systems that can be measured, each in a file of its own behind the trait [`System`].
//!
//! A system configures, joins, settles and checks its servers; [`Deployed`] is a running one. Each is set up as its own
//! documentation advises, and [`Durability`] demands the same of all of them.

mod deployed;
mod error;
mod galera;
mod group_replication;
mod plain;
mod provider;
mod semisync;
mod trireme;
mod wsrep;

use std::ops::RangeInclusive;
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

/// The moment when a commit is on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Some time after it is acknowledged, on every node.
    Lazy,
    /// Before it is acknowledged, on the node of its client; the others may still have it in memory.
    Origin,
    /// Before it is acknowledged, on every node that acknowledges it.
    Full,
}

/// The nodes of a system that accept writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Every node.
    All,
    /// Only the first node.
    First,
}

/// A method to keep the same rows on several servers, or a single server.
pub trait System {
    /// The name in options and reports.
    fn name(&self) -> &str;

    /// One sentence for reports: the way of commits, and the advice that its settings follow.
    fn about(&self) -> &'static str;

    /// The server program of the system.
    fn server(&self) -> Server {
        Server::MariaDb
    }

    /// The wsrep provider of its servers, if they have one.
    fn library(&self) -> Option<&Path> {
        None
    }

    /// The number of servers that it has if `wanted` are requested.
    fn nodes(&self, wanted: usize) -> usize {
        wanted
    }

    /// Adds the system's own settings to those of its servers.
    fn configure(&self, durability: Durability, settings: &mut Settings);

    /// Joins servers that have just started, if they do not join by themselves.
    fn connect(&self, _cluster: &mut Cluster) -> Result<(), DeployError> {
        Ok(())
    }

    /// Lets the restarted node `i` take part as before, if it does not do so by itself.
    fn rejoin(&self, _cluster: &Cluster, _i: usize) -> Result<(), DeployError> {
        Ok(())
    }

    /// Waits until every node has every acknowledged commit. The load must have stopped.
    fn settle(&self, cluster: &mut Cluster) -> Result<(), DeployError> {
        cluster.wait_caught_up(CATCH_UP)?;
        Ok(())
    }

    /// Fails if the system has not replicated since its start in the way that its name promises.
    fn check(&self, _cluster: &Cluster) -> Result<(), DeployError> {
        Ok(())
    }
}

/// The systems by name.
pub const NAMES: [&str; 10] = [
    "plain",
    "plain-binlog",
    "semisync",
    SEMISYNC_SOURCE_FLUSH,
    "galera",
    "trireme",
    "trireme-encrypted",
    "plain-mysql",
    "group-replication",
    "group-replication-single",
];

/// Semi-synchronous replication whose replicas never flush before the answer, also in [`Durability::Full`].
pub const SEMISYNC_SOURCE_FLUSH: &str = "semisync-source-flush";

/// The numbers of nodes that the system `name` can have. A single replica or member would show only its server.
pub fn sizes(name: &str) -> RangeInclusive<usize> {
    match name {
        "plain" | "plain-binlog" | "plain-mysql" => 1..=1,
        "semisync" | SEMISYNC_SOURCE_FLUSH | "group-replication" | "group-replication-single" => {
            2..=usize::MAX
        }
        _ => 1..=usize::MAX,
    }
}

/// Whether the system `name` is one server: a reference beside clusters of any size.
pub fn is_single(name: &str) -> bool {
    sizes(name) == (1..=1)
}

/// The system without replication on the same server program as `system`.
pub fn plain_of(system: &str) -> &'static str {
    match system {
        "plain-mysql" | "group-replication" | "group-replication-single" => "plain-mysql",
        _ => "plain",
    }
}

/// The nodes of the system `name` that accept writes.
pub fn writers(name: &str) -> Writers {
    match name {
        "semisync" | SEMISYNC_SOURCE_FLUSH | "group-replication-single" => Writers::First,
        _ if is_single(name) => Writers::First,
        _ => Writers::All,
    }
}

/// Whether the system `name` runs under Galera, either the distribution's or one named by its path.
pub fn is_galera(name: &str) -> bool {
    let path = name.split_once('=').map(|(_, path)| Path::new(path));
    path.map_or(name == "galera", packages::is_galera)
}

/// Whether the servers of the system `name` have wsrep's settings, and all of them accept writes.
pub fn has_wsrep(name: &str) -> bool {
    matches!(name, "galera" | "trireme" | "trireme-encrypted") || name.contains('=')
}

/// Whether the system `name` has a setting that makes other nodes flush a commit before it is acknowledged. Without
/// one, [`Durability::Full`] means the same as [`Durability::Origin`].
pub fn flushes_everywhere(name: &str) -> bool {
    let has_none = matches!(
        name,
        SEMISYNC_SOURCE_FLUSH | "group-replication" | "group-replication-single"
    );
    !has_none && !is_galera(name)
}

/// Returns the system `name`; `NAME=PROVIDER_PATH` is the one under that provider. Trireme's provider is `provider`, or
/// the library beside this program. Fails if a part of the system is not installed.
pub fn find(name: &str, provider: Option<&Path>) -> Result<Box<dyn System>, SystemError> {
    let system: Box<dyn System> = match name {
        "plain" => Box::new(plain::Plain::MariaDb),
        "plain-binlog" => Box::new(plain::Plain::MariaDbWithBinlog),
        "semisync" => Box::new(semisync::SemiSync {
            replica_flushes: true,
        }),
        SEMISYNC_SOURCE_FLUSH => Box::new(semisync::SemiSync {
            replica_flushes: false,
        }),
        "galera" => Box::new(galera::Galera::installed()?),
        "trireme" => Box::new(trireme::Trireme::with(provider, false)?),
        "trireme-encrypted" => Box::new(trireme::Trireme::with(provider, true)?),
        "plain-mysql" => Box::new(plain::Plain::MySql),
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

/// The setting of the binary log for `durability`, the same in every system that has one.
fn sync_binlog(durability: Durability) -> &'static str {
    match durability {
        Durability::Lazy => "--sync-binlog=0",
        Durability::Origin | Durability::Full => "--sync-binlog=1",
    }
}

/// The settings of InnoDB for `durability`, the same in every system.
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

/// Makes the error of a statement on this node.
fn failed(node: &Node) -> impl Fn(SqlError) -> DeployError + '_ {
    |source| DeployError::Sql {
        node: node.name.clone(),
        source,
    }
}

/// The pause in a loop that waits for servers.
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
        assert!(reason("oracle").unwrap().contains("plain-binlog, semisync"));
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
        assert_eq!(mysql.collect::<Vec<_>>(), NAMES[7..]);
        let wsrep = NAMES.into_iter().filter(|name| has_wsrep(name));
        let expected = ["galera", "trireme", "trireme-encrypted"];
        assert_eq!(wsrep.collect::<Vec<_>>(), expected);
        assert!(has_wsrep("mine=/x/libtrireme.so"));
    }

    #[test]
    fn a_system_has_its_sizes() {
        let single = NAMES.into_iter().filter(|name| is_single(name));
        let expected = ["plain", "plain-binlog", "plain-mysql"];
        assert_eq!(single.collect::<Vec<_>>(), expected);
        for (name, one, two) in [
            ("plain-binlog", true, false),
            ("semisync", false, true),
            (SEMISYNC_SOURCE_FLUSH, false, true),
            ("group-replication", false, true),
            ("galera", true, true),
            ("mine=/x/libtrireme.so", true, true),
        ] {
            let sizes = sizes(name);
            assert_eq!((sizes.contains(&1), sizes.contains(&2)), (one, two));
        }
    }

    #[test]
    fn a_provider_is_found_by_its_path() {
        assert!(is_galera("galera") && is_galera("other=/usr/lib/libgalera_smm.so"));
        assert!(!is_galera("trireme") && !is_galera("other=/usr/lib/libtrireme.so"));
        assert!(flushes_everywhere("trireme") && flushes_everywhere("semisync"));
        assert!(flushes_everywhere("mine=/x/libtrireme.so"));
        assert!(!flushes_everywhere("galera") && !flushes_everywhere("old=/x/libgalera_smm.so"));
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
