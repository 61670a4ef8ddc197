//! The protection of connections: whether the mesh dials and accepts plain TCP, TLS, or both.

use trireme_mutants::{Mutant, planted};
use trireme_tls::Credentials;

use crate::stream::Stream;

/// The kinds of connections that a mesh dials and accepts. The default is plain TCP, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Security {
    credentials: Option<Credentials>,
    dials_tls: bool,
    accepts_both: bool,
}

impl Security {
    /// With `dials_tls` the mesh dials only TLS, else only plain TCP. It accepts the kind that it dials; with
    /// `accepts_both`, also the other kind.
    pub fn new(credentials: Credentials, dials_tls: bool, accepts_both: bool) -> Security {
        Security {
            credentials: Some(credentials),
            dials_tls,
            accepts_both,
        }
    }

    /// Returns this node's credentials for its own calls; none: it calls without TLS.
    pub(crate) fn to_dial(&self) -> Option<&Credentials> {
        self.credentials.as_ref().filter(|_| self.dials_tls)
    }

    /// Returns this node's credentials for callers with TLS; none: it does not accept TLS.
    pub(crate) fn to_accept(&self) -> Option<&Credentials> {
        let accepts = self.dials_tls || self.accepts_both;
        self.credentials.as_ref().filter(|_| accepts)
    }

    /// Returns true if bytes may travel in plaintext: the mesh accepts or dials plain TCP.
    pub fn accepts_plain(&self) -> bool {
        self.to_dial().is_none() || self.accepts_both
    }

    /// Returns the reason why a TLS connection that began under other settings may neither become nor stay a link: its
    /// peer's certificate is revoked.
    pub(crate) fn revocation(&self, stream: &Stream) -> Option<String> {
        stream.revocation(self.credentials.as_ref()?)
    }

    /// Returns true if a connection of this kind, TLS or plain TCP, may become or stay a link.
    pub(crate) fn permits(&self, is_tls: bool) -> bool {
        match is_tls {
            true => self.to_accept().is_some(),
            false => self.accepts_plain() || planted(Mutant::PlainTakenUnderTls),
        }
    }
}
