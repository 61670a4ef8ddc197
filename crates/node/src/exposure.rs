//! The exposure of a node that speaks plaintext: whether other machines can reach it. It leads to a line in the log at
//! each start.

use trireme_replicator::Level;
use trireme_transport::Security;

use crate::options::Options;
use crate::setup::{self, SetupError};
use crate::url::is_loopback;

/// The plaintext addresses of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    listens: String,
    advertised: String,
    is_advertised: bool,
}

impl Exposure {
    /// Returns the exposure that the options make. `None` if all traffic is encrypted, or if no process outside this
    /// machine can reach the node.
    pub fn of(options: &Options, security: &Security) -> Result<Option<Exposure>, SetupError> {
        if !security.accepts_plain() {
            return Ok(None);
        }
        let listen = setup::listen_address(options)?;
        let advertised = setup::advertised_address(options, &listen);
        let host = advertised.rsplit_once(':').map_or("", |(host, _)| host);
        let is_advertised = !is_loopback(host);
        Ok(match is_loopback(&listen.host) {
            true if !is_advertised => None,
            _ => Some(Exposure {
                listens: listen.to_string(),
                advertised: advertised.clone(),
                is_advertised,
            }),
        })
    }

    /// Returns the level of the line: a warning if nodes beyond this machine are to reach the node. A node that listens
    /// on every address but advertises a loopback address belongs to a test cluster, such as MariaDB's suites, which
    /// fail on warnings.
    pub fn level(&self) -> Level {
        match self.is_advertised {
            true => Level::Warn,
            false => Level::Info,
        }
    }
}

impl std::fmt::Display for Exposure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "group traffic is plaintext: this node listens on {}, and is reached at {}; whoever reaches that port can read and \
             change the cluster's data. To encrypt it: trireme tls init, then socket.ssl_cert, socket.ssl_key and \
             socket.ssl_ca, or a shared secret (docs/security.md); repl.require_encryption=yes refuses plaintext",
            self.listens, self.advertised
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposure(node_address: &str, text: &str) -> Option<Exposure> {
        let options = Options::new("/", node_address, text).unwrap();
        Exposure::of(&options, &setup::security(&options).unwrap()).unwrap()
    }

    #[test]
    fn what_stays_on_this_machine_is_not_told() {
        for listen in [
            "127.0.0.1",
            "127.8.0.1:4567",
            "[::1]",
            "localhost",
            "[::ffff:127.0.0.1]",
        ] {
            let text = format!("gmcast.listen_addr=tcp://{listen}");
            assert_eq!(exposure("192.0.2.1", &text), None, "{listen}");
        }
    }

    #[test]
    fn an_address_beyond_this_machine_is_warned_of() {
        for (node, text) in [
            ("192.0.2.1", ""),
            ("", ""),
            ("db1.example.net:4567", "gmcast.listen_addr=tcp://[::]:4567"),
            ("127.0.0.1", "gmcast.listen_addr=tcp://192.0.2.1"),
            ("[2001:db8::1]", ""),
            ("192.0.2.1", "socket.dynamic=yes"),
        ] {
            let exposure = exposure(node, text).unwrap();
            assert_eq!(exposure.level(), Level::Warn, "{node} {text}");
            assert!(exposure.to_string().contains("trireme tls init"));
        }
    }

    #[test]
    fn a_cluster_of_tests_that_listens_everywhere_is_not_warned_of() {
        let exposure = exposure("127.0.0.1:19031", "").unwrap();
        assert_eq!(exposure.level(), Level::Info);
        assert!(exposure.to_string().contains("0.0.0.0:19031"));
    }
}
