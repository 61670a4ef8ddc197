//! A server of the cluster: its state is read, and its provider options are set, through SQL.

use std::time::Duration;

use trireme_agent::{Database, DatabaseError, Endpoint, Login, Sample, quoted};
use trireme_node::options;
use trireme_node::url::HostPort;

use super::ChangeOverError;
use super::plan::State;

const PORT: u16 = 3306;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads `host`, `host:port`, or the path of a Unix socket.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, String> {
    if text.starts_with('/') {
        return Ok(Endpoint::Socket(text.into()));
    }
    let address: HostPort = text
        .parse()
        .map_err(|error| format!("{error}; or the path of a Unix socket"))?;
    Ok(Endpoint::Tcp {
        port: address.port_or(PORT),
        host: address.host,
    })
}

/// A server, as the change needs it.
pub(super) trait Node {
    /// Its address.
    fn endpoint(&self) -> &Endpoint;

    /// Reads its state.
    fn state(&mut self) -> Result<State, ChangeOverError>;

    /// Sets provider options.
    fn set_options(&mut self, options: &str) -> Result<(), DatabaseError>;

    /// Waits until this node has applied everything that was committed before the call. The node asks the leader for
    /// that position, and so uses its links.
    fn reach_others(&mut self) -> Result<(), ChangeOverError>;
}

/// A connection to one server.
pub(super) struct Server {
    endpoint: Endpoint,
    database: Database,
}

impl Server {
    pub fn new(login: &Login) -> Server {
        Server {
            endpoint: login.endpoint.clone(),
            database: Database::new(login.clone(), TIMEOUT),
        }
    }
}

impl Node for Server {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn state(&mut self) -> Result<State, ChangeOverError> {
        let sql = |source| ChangeOverError::Sql {
            server: self.endpoint.clone(),
            source,
        };
        let sample = self.database.whole_sample().map_err(sql)?;
        read(&sample).map_err(|reason| ChangeOverError::Odd {
            server: self.endpoint.clone(),
            reason,
        })
    }

    fn set_options(&mut self, options: &str) -> Result<(), DatabaseError> {
        let statement = format!("SET GLOBAL wsrep_provider_options = {}", quoted(options));
        self.database.rows(&statement, 0).map(drop)
    }

    fn reach_others(&mut self) -> Result<(), ChangeOverError> {
        self.database
            .catch_up()
            .map_err(|source| ChangeOverError::Sql {
                server: self.endpoint.clone(),
                source,
            })
    }
}

fn read(sample: &Sample) -> Result<State, String> {
    let status = |name: &str| sample.status(name);
    let variable = |name: &str| sample.variable(name);
    let pairs = options::split(variable("wsrep_provider_options"));
    let pairs = pairs.map_err(|error| format!("wsrep_provider_options: {error}"))?;
    let option = |name: &str| {
        let found = pairs.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let yes = |name: &str| options::parse_bool(option(name)) == Some(true);
    let number = |name: &str| status(name).parse().unwrap_or(0);
    Ok(State {
        name: variable("wsrep_node_name").to_owned(),
        provider: status("wsrep_provider_name").to_owned(),
        member: status("wsrep_gcomm_uuid").to_owned(),
        history: status("wsrep_cluster_state_uuid").to_owned(),
        size: number("wsrep_cluster_size"),
        is_synced: status("wsrep_cluster_status") == "Primary"
            && status("wsrep_local_state_comment") == "Synced",
        is_leader: status("wsrep_trireme_is_leader") == "1",
        plaintext_links: number("wsrep_trireme_plaintext_links"),
        member_links: status("wsrep_trireme_member_links").parse().ok(),
        dials_tls: yes("socket.ssl"),
        accepts_both: yes("socket.dynamic"),
        has_files: !option("socket.ssl_cert").is_empty() && !option("socket.ssl_key").is_empty(),
        is_required: yes("repl.require_encryption"),
        has_secret: !option("repl.secret_file").is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        let read = |text: &str| parse_endpoint(text).map(|endpoint| endpoint.to_string());
        assert_eq!(read("db1").unwrap(), "db1:3306");
        assert_eq!(read("[2001:db8::1]:3307").unwrap(), "[2001:db8::1]:3307");
        assert_eq!(
            read("/run/mysqld/mysqld.sock").unwrap(),
            "/run/mysqld/mysqld.sock"
        );
        assert!(read("").is_err() && read("db1:x").is_err());
    }

    #[test]
    fn what_a_node_says_is_read() {
        let pairs = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect::<Vec<_>>()
        };
        let status = pairs(&[
            ("wsrep_cluster_status", "Primary"),
            ("wsrep_local_state_comment", "Synced"),
            ("wsrep_cluster_size", "3"),
            ("wsrep_trireme_is_leader", "1"),
            ("wsrep_trireme_plaintext_links", "2"),
            ("wsrep_trireme_member_links", "1"),
        ]);
        let options = "gcache.size = 1G; socket.dynamic = YES; socket.ssl_cert = /a\\;b; socket.ssl_key = /k; ";
        let variables = pairs(&[("wsrep_provider_options", options)]);
        let state = read(&Sample::new(status, variables)).unwrap();
        assert!(state.is_leader && state.is_synced && state.accepts_both && state.has_files);
        assert!(!state.dials_tls && !state.is_required && !state.has_secret);
        assert_eq!((state.size, state.plaintext_links), (3, 2));
        assert_eq!((state.member_links, state.others()), (Some(1), 2));
        let older = read(&Sample::new(Vec::new(), Vec::new())).unwrap();
        assert_eq!(older.member_links, None);
    }
}
