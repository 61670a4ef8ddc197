//! The reasons why there is no report: one line each, with the remedy. Pure.

use trireme_agent::DatabaseError;

use crate::text::shown;

/// The reason why there is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The server refuses the login or a query, or does not answer.
    #[error("{}", of_database(.0))]
    Database(#[from] DatabaseError),
    /// The server runs another provider.
    #[error(
        "the server at {endpoint} runs {}, not Trireme: ask a server whose wsrep_provider is libtrireme.so",
        shown(.provider)
    )]
    Foreign {
        /// The address that was asked.
        endpoint: String,
        /// The server's provider.
        provider: String,
    },
    /// The server is not a node of a cluster.
    #[error(
        "the server at {endpoint} is no node of a cluster: wsrep_on is OFF, or wsrep_provider is none, or the library was \
         not loaded (see its error log)"
    )]
    Alone {
        /// The address that was asked.
        endpoint: String,
    },
}

/// MariaDB's error, with the remedy.
fn of_database(error: &DatabaseError) -> String {
    let remedy = match error {
        DatabaseError::Refused(1044 | 1045 | 1698, _) => {
            "give --user and --password-file FILE (or TRIREME_PASSWORD); `trireme agent grant` prints the SQL of a user"
        }
        DatabaseError::Refused(1130, _) => {
            "the user may not come from this host: use --socket on the server's machine, or make a user with \
             `trireme agent grant --from HOST`"
        }
        DatabaseError::Refused(1040, _) => {
            "connections are used up: end some, or raise max_connections"
        }
        DatabaseError::Refused(1203 | 1226, _) => {
            "this user's own limit (MAX_USER_CONNECTIONS, max_user_connections): end its other sessions, or raise it by \
             ALTER USER"
        }
        DatabaseError::Refused(1227 | 1142 | 1370, _) => {
            "the user lacks a privilege: `trireme agent grant --doctor` prints the SQL"
        }
        DatabaseError::Refused(1047, _) => {
            "the node waits or joins: ask `trireme why-waiting --dir DATADIR` on its machine"
        }
        DatabaseError::Refused(3159, _) => {
            "use --socket: over TCP this server wants TLS, which this program lacks"
        }
        DatabaseError::Refused(..) => "see the server's error log",
        DatabaseError::Silent { .. } => {
            "is the server up, and is this its address? SQL is closed while a node starts, joins or waits: ask \
             `trireme why-waiting --dir DATADIR` on its machine"
        }
    };
    format!("{}; {remedy}", shown(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_one_line_with_its_remedy() {
        let refused = |code, text: &str| {
            let error = DatabaseError::Refused(code, text.to_owned());
            Refusal::Database(error).to_string()
        };
        assert!(refused(1045, "Access denied").contains("--password-file"));
        assert!(refused(1040, "Too many").contains("raise max_connections"));
        for code in [1203, 1226] {
            assert!(refused(code, "exceeded").contains("ALTER USER"));
        }
        assert!(refused(1047, "WSREP").contains("why-waiting"));
        assert!(refused(9999, "a\nb\u{1b}[2J").lines().count() == 1);
        let silent = Refusal::Database(DatabaseError::Silent {
            endpoint: "/s".to_owned(),
            reason: "gone".to_owned(),
        });
        assert!(silent.to_string().contains("why-waiting"));
        let foreign = Refusal::Foreign {
            endpoint: "/s".to_owned(),
            provider: "Galera\u{1b}".to_owned(),
        };
        assert!(
            foreign
                .to_string()
                .contains("runs Galera\\u{1b}, not Trireme")
        );
    }
}
