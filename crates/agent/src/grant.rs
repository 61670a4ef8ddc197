//! The SQL that makes the agent's user.

/// Connections that the user may have at once: the agent's two, and two that die.
const MAX_CONNECTIONS: u32 = 4;

/// Statements for an administrator of the cluster. The user has no privilege: SHOW STATUS and SHOW VARIABLES need none.
///
/// Without a password the server knows the agent by the name of its process's owner (`unix_socket`).
pub fn grant(user: &str, password: Option<&str>) -> String {
    let identified = match password {
        Some(password) => format!("BY {}", quoted(password)),
        None => "VIA unix_socket".to_owned(),
    };
    let user = quoted(user);
    format!(
        "CREATE USER IF NOT EXISTS {user}@'localhost' IDENTIFIED {identified} WITH MAX_USER_CONNECTIONS {MAX_CONNECTIONS};\n"
    )
}

/// As a string of SQL, for the default sql_mode, in which a backslash escapes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::grant;

    #[test]
    fn the_user_has_no_privileges_and_few_connections() {
        let expected = "CREATE USER IF NOT EXISTS 'trireme-agent'@'localhost' IDENTIFIED VIA unix_socket \
                        WITH MAX_USER_CONNECTIONS 4;\n";
        assert_eq!(grant("trireme-agent", None), expected);
    }

    #[test]
    fn names_and_passwords_stay_within_their_quotes() {
        let text = grant("o'x", Some(r"a\'b"));
        assert!(
            text.contains(r"'o''x'@'localhost' IDENTIFIED BY 'a\\''b' WITH"),
            "{text}"
        );
    }
}
