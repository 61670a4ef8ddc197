//! Makes the SQL that creates the agent's user.

/// The connections that the user may have at once: the agent's two, and two that are being closed.
const MAX_CONNECTIONS: u32 = 4;

/// The user to make.
#[derive(Clone, Debug)]
pub struct Grantee<'a> {
    /// Its name.
    pub user: &'a str,
    /// The user's host, with SQL's wildcards; `localhost` means the socket.
    pub host: &'a str,
    /// The user's password. None: the server knows the user by the owner of its process (`unix_socket`), from localhost
    /// only.
    pub password: Option<&'a str>,
    /// Whether the user may see all connections, and tables without primary key (`trireme doctor` needs both).
    pub process: bool,
}

/// The error for a user without password from another host: only the socket shows the owner of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a user from another host needs a password: --password-file FILE, or TRIREME_AGENT_PASSWORD"
)]
pub struct NeedsPassword;

/// Returns the statements, for an administrator of the cluster. The agent's user gets no privilege, because SHOW STATUS
/// and SHOW VARIABLES need none.
pub fn grant(grantee: &Grantee<'_>) -> Result<String, NeedsPassword> {
    let identified = match grantee.password {
        Some(password) => format!("BY {}", quoted(password)),
        None if grantee.host == "localhost" => "VIA unix_socket".to_owned(),
        None => return Err(NeedsPassword),
    };
    let user = format!("{}@{}", quoted(grantee.user), quoted(grantee.host));
    let limited = format!("IDENTIFIED {identified} WITH MAX_USER_CONNECTIONS {MAX_CONNECTIONS}");
    // The second statement gives a user that is there this password.
    let mut text =
        format!("CREATE USER IF NOT EXISTS {user} {limited};\nALTER USER {user} {limited};\n");
    if grantee.process {
        text += &format!("GRANT PROCESS ON *.* TO {user};\n");
    }
    Ok(text)
}

/// Quotes a text for SQL under the default sql_mode, where a backslash escapes.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: Grantee<'_> = Grantee {
        user: "trireme-agent",
        host: "localhost",
        password: None,
        process: false,
    };

    #[test]
    fn the_user_has_no_privileges_and_few_connections() {
        let expected = "CREATE USER IF NOT EXISTS 'trireme-agent'@'localhost' IDENTIFIED VIA unix_socket \
                        WITH MAX_USER_CONNECTIONS 4;\n\
                        ALTER USER 'trireme-agent'@'localhost' IDENTIFIED VIA unix_socket \
                        WITH MAX_USER_CONNECTIONS 4;\n";
        assert_eq!(grant(&AGENT).as_deref(), Ok(expected));
    }

    #[test]
    fn names_and_passwords_stay_within_their_quotes() {
        let user = Grantee {
            user: "o'x",
            host: "10.0.0.'",
            password: Some(r"a\'b"),
            ..AGENT
        };
        let text = grant(&user).unwrap();
        assert!(
            text.contains(r"'o''x'@'10.0.0.''' IDENTIFIED BY 'a\\''b' WITH"),
            "{text}"
        );
    }

    #[test]
    fn the_doctor_may_see_processes_and_no_more() {
        let doctor = Grantee {
            process: true,
            ..AGENT
        };
        let text = grant(&doctor).unwrap();
        assert!(
            text.ends_with("GRANT PROCESS ON *.* TO 'trireme-agent'@'localhost';\n"),
            "{text}"
        );
    }

    #[test]
    fn from_elsewhere_nobody_comes_without_a_password() {
        let far = Grantee { host: "%", ..AGENT };
        assert_eq!(grant(&far), Err(NeedsPassword));
    }
}
