//! Recovers the position up to which a stopped server's database has committed. As the service's start script does, it
//! reads the output of `mariadbd --wsrep-recover`. Without this position a provider that has lost its own record (after
//! a kill) must take a full SST.

use std::fmt;
use std::str::FromStr;

/// A GTID in the form of `--wsrep-start-position`: a cluster UUID and a seqno, perhaps followed by a MariaDB GTID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The cluster UUID; all zeros if the database has none.
    pub uuid: String,
    /// The last committed write-set; -1 if unknown.
    pub seqno: i64,
    /// `,domain-server-seqno` as the server printed it, or empty.
    rest: String,
}

/// The error for a text that is no position.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no position (uuid:seqno)")]
pub struct NotAPosition(String);

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let bad = || NotAPosition(text.to_string());
        let (gtid, rest) = match text.find(',') {
            Some(comma) => text.split_at(comma),
            None => (text, ""),
        };
        let (uuid, seqno) = gtid.rsplit_once(':').ok_or_else(bad)?;
        if uuid.len() != 36 || !uuid.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
            return Err(bad());
        }
        let seqno = seqno.parse().map_err(|_| bad())?;
        Ok(Self {
            uuid: uuid.to_string(),
            seqno,
            rest: rest.to_string(),
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}{}", self.uuid, self.seqno, self.rest)
    }
}

/// Finds the position in the output of `mariadbd --wsrep-recover`.
pub fn parse_output(output: &str) -> Option<Position> {
    let marker = "WSREP: Recovered position:";
    let line = output
        .lines()
        .rev()
        .find_map(|line| line.split_once(marker))?
        .1;
    line.trim().parse().ok()
}

/// Whether a `grastate.dat` allows its node to bootstrap the cluster, because the node left last.
pub fn is_safe_to_bootstrap(grastate: &str) -> bool {
    grastate
        .lines()
        .filter_map(|line| line.split_once(':'))
        .any(|(key, value)| key.trim() == "safe_to_bootstrap" && value.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "37bb872a-ad73-11e6-819f-f3b71d9c5ada";

    #[test]
    fn the_recovered_position_is_found_and_given_back_unchanged() {
        let output = format!(
            "2024-01-01 [Note] InnoDB: started\n2024-01-01 [Note] WSREP: Recovered position: {UUID}:345628,0-1-7\n"
        );
        let position = parse_output(&output).unwrap();
        assert_eq!((position.uuid.as_str(), position.seqno), (UUID, 345_628));
        assert_eq!(position.to_string(), format!("{UUID}:345628,0-1-7"));
    }

    #[test]
    fn a_new_database_has_none() {
        let zero = "00000000-0000-0000-0000-000000000000:-1";
        assert_eq!(
            parse_output(&format!("WSREP: Recovered position: {zero}"))
                .unwrap()
                .seqno,
            -1
        );
        assert_eq!(parse_output("nothing of the kind"), None);
        assert!("nonsense:1".parse::<Position>().is_err());
        assert!(format!("{UUID}:x").parse::<Position>().is_err());
    }

    #[test]
    fn the_last_to_leave_may_bootstrap() {
        assert!(is_safe_to_bootstrap(
            "# GALERA saved state\nseqno:   7\nsafe_to_bootstrap: 1\n"
        ));
        assert!(!is_safe_to_bootstrap("safe_to_bootstrap: 0\n"));
        assert!(!is_safe_to_bootstrap(""));
    }
}
