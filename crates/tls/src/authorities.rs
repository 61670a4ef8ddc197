//! The authorities that a node trusts, with their revocation lists. Comes in: certificates, and the file of
//! `socket.ssl_crl`. Goes out: the store that OpenSSL verifies a peer's certificate against.

use std::cmp::Ordering;

use openssl::error::ErrorStack;
use openssl::ssl::SslFiletype;
use openssl::stack::StackRef;
use openssl::x509::store::{X509Lookup, X509Store, X509StoreBuilder, X509StoreRef};
use openssl::x509::verify::X509VerifyFlags;
use openssl::x509::{X509, X509Crl, X509NameRef, X509Ref, X509StoreContext, X509VerifyResult};

use crate::{TlsError, files};

const OPTION: &str = "socket.ssl_crl";
const BEGIN: &str = "-----BEGIN X509 CRL-----";

/// Makes the store of these trusted certificates, and of the revocation lists in the file `crl` (empty: no lists).
///
/// Without a list of a root only the peer's own certificate is looked up. With one, each certificate of the chain is,
/// so each authority in the chain must have a list.
pub fn authorities(anchors: Vec<X509>, crl: &str) -> Result<X509Store, TlsError> {
    let mut store = X509StoreBuilder::new()?;
    if !crl.is_empty() {
        let pem = files::read(OPTION, crl)?; // its errors are more precise than OpenSSL's
        let malformed = |error: &ErrorStack| {
            files::malformed(OPTION, crl, "revocation list", files::short(error))
        };
        let lookup = store.add_lookup(X509Lookup::file())?;
        let loaded = lookup.load_crl_file(crl, SslFiletype::PEM);
        loaded.map_err(|error| malformed(&error))?;
        let lists = revocation_lists(&pem).map_err(|error| malformed(&error))?;
        let has_list = |root: &X509| {
            let mut issuers = lists.iter().map(|list| list.issuer_name());
            issuers.any(|issuer| is_same_name(issuer, root.subject_name()))
        };
        let mut flags = X509VerifyFlags::CRL_CHECK;
        if anchors
            .iter()
            .any(|anchor| is_root(anchor) && has_list(anchor))
        {
            flags |= X509VerifyFlags::CRL_CHECK_ALL;
        }
        store.set_flags(flags)?;
    }
    for anchor in anchors {
        store.add_cert(anchor)?;
    }
    Ok(store.build())
}

/// Reads all revocation lists of a PEM file. Text between them may have any encoding.
pub fn revocation_lists(pem: &[u8]) -> Result<Vec<X509Crl>, ErrorStack> {
    let text = String::from_utf8_lossy(pem);
    let begins = text.match_indices(BEGIN).map(|(at, _)| at);
    begins
        .map(|at| X509Crl::from_pem(&text.as_bytes()[at..]))
        .collect()
}

/// Verifies a certificate. Returns None if it passes, or else OpenSSL's result and the certificate that does not pass.
pub fn verify(
    store: &X509StoreRef,
    leaf: &X509Ref,
    chain: &StackRef<X509>,
) -> Result<Option<(X509VerifyResult, Option<X509>)>, ErrorStack> {
    let result = X509StoreContext::new()?.init(store, leaf, chain, |context| {
        Ok(match context.verify_cert()? {
            true => None,
            false => {
                let refused = context.current_cert().map(ToOwned::to_owned);
                Some((context.error(), refused))
            }
        })
    });
    drop(ErrorStack::get()); // its errors must not reach the next session of this thread
    result
}

/// Whether two names are equal, as OpenSSL compares them.
pub fn is_same_name(a: &X509NameRef, b: &X509NameRef) -> bool {
    a.try_cmp(b).is_ok_and(Ordering::is_eq)
}

fn is_root(cert: &X509Ref) -> bool {
    is_same_name(cert.subject_name(), cert.issuer_name())
}
