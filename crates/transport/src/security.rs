//! How connections are protected.

use trireme_tls::Credentials;

/// What a mesh dials, and what it accepts. The default is plain TCP, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Security {
    credentials: Option<Credentials>,
    dials_tls: bool,
    accepts_both: bool,
}

impl Security {
    /// TLS is dialed if `dials_tls` says so, and never anything else then. The same kind is accepted; the other one, too,
    /// if `accepts_both` says so.
    pub fn new(credentials: Credentials, dials_tls: bool, accepts_both: bool) -> Security {
        Security {
            credentials: Some(credentials),
            dials_tls,
            accepts_both,
        }
    }

    /// What this node shows in a call; none: it calls without TLS.
    pub(crate) fn to_dial(&self) -> Option<&Credentials> {
        self.credentials.as_ref().filter(|_| self.dials_tls)
    }

    /// What this node shows to those who call with TLS; none: it does not take them.
    pub(crate) fn to_accept(&self) -> Option<&Credentials> {
        let accepts = self.dials_tls || self.accepts_both;
        self.credentials.as_ref().filter(|_| accepts)
    }

    /// Whether anything may travel in plaintext: peers may connect so, or are dialed so.
    pub fn accepts_plain(&self) -> bool {
        self.to_dial().is_none() || self.accepts_both
    }
}
