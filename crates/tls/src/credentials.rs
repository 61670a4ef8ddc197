//! The credentials of this node: its certificate or shared secret, and the peers that it trusts. Comes in: an
//! operator's files. Goes out: one OpenSSL context for accepting and one for dialing.

use std::sync::LazyLock;

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{
    Ssl, SslContext, SslContextBuilder, SslContextRef, SslMethod, SslOptions, SslRef,
    SslSessionCacheMode, SslVerifyMode, SslVersion,
};
use openssl::stack::Stack;
use openssl::x509::X509;

use crate::Role;
use crate::authorities::{authorities, verify};
use crate::error::TlsError;
use crate::secret::{Secret, Secrets};
use crate::{failure, files};

/// The cipher suites, the fastest first on processors with AES instructions.
const SUITES: &str = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/// With a secret, the only cipher suite: OpenSSL allows no other for a TLS 1.3 key that the older callbacks set.
const SUITE_OF_SECRETS: &str = "TLS_AES_128_GCM_SHA256";

/// The index, in a session, of the identity of the secret that the session uses.
static SECRET_IN_USE: LazyLock<Result<Index<Ssl, String>, ErrorStack>> =
    LazyLock::new(Ssl::new_ex_index);

/// The operator's files: a path for each option, empty if the option is not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// `socket.ssl_cert`: the certificate, then the intermediate certificates up to the CA.
    pub cert: String,
    /// `socket.ssl_key`.
    pub key: String,
    /// `socket.ssl_ca`: the certificates to trust. If it is empty, the node trusts those of `cert`.
    pub ca: String,
    /// `socket.ssl_crl`: revocation lists.
    pub crl: String,
    /// `socket.ssl_password_file`: the first line of the file is the password of the key.
    pub password: String,
    /// `socket.ssl_cipher`. Names of TLS 1.2 and older have no effect.
    pub cipher: String,
}

impl Files {
    /// Whether both the certificate and its key are set.
    pub fn has_certificate(&self) -> bool {
        !self.cert.is_empty() && !self.key.is_empty()
    }

    /// The option that names the trusted certificates, and its file.
    pub fn trusted(&self) -> (&'static str, &str) {
        match self.ca.is_empty() {
            true => ("socket.ssl_cert", &self.cert),
            false => ("socket.ssl_ca", &self.ca),
        }
    }

    /// Reads the key, with its password if it is encrypted.
    pub fn read_key(&self) -> Result<PKey<Private>, TlsError> {
        files::key(&self.key, &self.password)
    }
}

/// Certificate, key and trusted certificates, or the shared secret, as the files had them when they were read. Clones
/// share the contexts.
#[derive(Clone)]
pub struct Credentials {
    accepting: SslContext,
    dialing: SslContext,
    trust: Trust,
    /// There are revocation lists.
    has_lists: bool,
}

/// The proof that a peer must give, with the file that it is checked against.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    /// A certificate that an authority in this file has signed.
    Authority(String),
    /// The shared secret in this file.
    Secret(String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads and checks the files.
    pub fn read(files: &Files) -> Result<Credentials, TlsError> {
        for (option, file) in [
            ("socket.ssl_cert", &files.cert),
            ("socket.ssl_key", &files.key),
        ] {
            if file.is_empty() {
                return Err(TlsError::Missing { option });
            }
        }
        let chain = files::certificates("socket.ssl_cert", &files.cert)?;
        let key = files.read_key()?;
        let mut context = SslContextBuilder::new(SslMethod::tls())?;
        present(&mut context, files, &chain, &key)?;
        trust(&mut context, files, chain)?;
        restrict(&mut context, &files.cipher)?;
        let context = context.build();
        Ok(Credentials {
            accepting: context.clone(),
            dialing: context,
            trust: Trust::Authority(files.trusted().1.to_owned()),
            has_lists: !files.crl.is_empty(),
        })
    }

    /// Reads and checks the file of a shared secret.
    pub fn of_secret(file: &str) -> Result<Credentials, TlsError> {
        let secrets = Secrets::read(file)?;
        let (mut accepting, mut dialing) = (without_certificate()?, without_certificate()?);
        // On the accepting side OpenSSL requires a session id context, because it verifies peers, before it takes a
        // key. The key of a dialer must have none.
        accepting.set_session_id_context(b"trireme")?;
        send(&mut dialing, secrets.sent().clone());
        accept(&mut accepting, secrets);
        Ok(Credentials {
            accepting: accepting.build(),
            dialing: dialing.build(),
            trust: Trust::Secret(file.to_owned()),
            has_lists: false,
        })
    }

    pub(crate) fn context(&self, role: Role) -> &SslContext {
        match role {
            Role::Acceptor => &self.accepting,
            Role::Dialer => &self.dialing,
        }
    }

    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns the reason why a session that began with other credentials must end: a certificate of the peer's chain
    /// is on a revocation list of these. Other faults count for new sessions only, so that a wrong or an expired file does
    /// not end all sessions at once.
    pub(crate) fn revocation(&self, ssl: &SslRef, role: Role) -> Option<String> {
        let context = self.context(role);
        let is_verified = std::ptr::eq::<SslContextRef>(ssl.ssl_context(), &**context);
        let Trust::Authority(ca) = &self.trust else {
            return None;
        };
        if is_verified || !self.has_lists {
            return None;
        }
        let leaf = ssl.peer_certificate()?;
        let result = Stack::new().and_then(|none| {
            let chain = ssl.peer_cert_chain().unwrap_or(&none);
            verify(context.cert_store(), &leaf, chain)
        });
        match result {
            Ok(Some((result, cert))) if result.as_raw() == failure::REVOKED => {
                let who = cert.map(|cert| failure::subject(&cert)).unwrap_or_default();
                Some(failure::untrusted(result, &who, ca))
            }
            Ok(_) => None,
            // The peer may try again, and the handshake then decides.
            Err(error) => Some(format!(
                "OpenSSL fails to look it up in socket.ssl_crl: {error}"
            )),
        }
    }
}

/// The identity of the secret that both sides have used.
pub(crate) fn secret_in_use(ssl: &SslRef) -> Option<&str> {
    let index = SECRET_IN_USE.as_ref().ok()?;
    ssl.ex_data(*index).map(String::as_str)
}

/// A context that shows no certificate and trusts none: a peer that answers with a certificate does not have the
/// secret.
fn without_certificate() -> Result<SslContextBuilder, TlsError> {
    let mut context = SslContextBuilder::new(SslMethod::tls())?;
    restrict(&mut context, SUITE_OF_SECRETS)?;
    context.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    Ok(context)
}

fn send(context: &mut SslContextBuilder, secret: Secret) {
    context.set_psk_client_callback(move |ssl, _hint, identity, key| {
        // OpenSSL has zeroed the buffer, so the identity ends with a zero.
        let name = secret.identity().as_bytes();
        match identity.get_mut(..name.len()) {
            Some(room) => room.copy_from_slice(name),
            None => return Ok(0),
        }
        use_secret(ssl, &secret, key)
    });
}

fn accept(context: &mut SslContextBuilder, secrets: Secrets) {
    context.set_psk_server_callback(move |ssl, identity, key| {
        match identity.and_then(|identity| secrets.find(identity)) {
            Some(secret) => use_secret(ssl, secret, key),
            None => Ok(0), // this node does not know the identity
        }
    });
}

fn use_secret(ssl: &mut SslRef, secret: &Secret, key: &mut [u8]) -> Result<usize, ErrorStack> {
    if let Ok(index) = SECRET_IN_USE.as_ref() {
        ssl.set_ex_data(*index, secret.identity().to_owned());
    }
    let len = secret.key().len();
    match key.get_mut(..len) {
        Some(room) => room.copy_from_slice(secret.key()),
        None => return Ok(0),
    }
    Ok(len)
}

fn present(
    context: &mut SslContextBuilder,
    files: &Files,
    chain: &[X509],
    key: &PKey<Private>,
) -> Result<(), TlsError> {
    // `files::certificates` returns at least one certificate.
    let Some((leaf, between)) = chain.split_first() else {
        return Ok(());
    };
    if !leaf.public_key()?.public_eq(key) {
        return Err(TlsError::WrongKey {
            key: files.key.clone(),
            cert: files.cert.clone(),
        });
    }
    files::check_dates(&files.cert, leaf)?;
    let refused = |error| TlsError::Refused {
        file: files.cert.clone(),
        why: files::short(&error),
    };
    context.set_certificate(leaf).map_err(refused)?;
    context.set_private_key(key).map_err(refused)?;
    for cert in between {
        context
            .add_extra_chain_cert(cert.clone())
            .map_err(refused)?;
    }
    Ok(())
}

fn trust(context: &mut SslContextBuilder, files: &Files, chain: Vec<X509>) -> Result<(), TlsError> {
    let (option, file) = files.trusted();
    let anchors = match files.ca.is_empty() {
        true => chain,
        false => files::certificates(option, file)?,
    };
    context.set_cert_store(authorities(anchors, &files.crl)?);
    let asks = SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT;
    context.set_verify_callback(asks, |is_good, chain| {
        if !is_good {
            failure::note_refused(chain.current_cert());
        }
        is_good
    });
    Ok(())
}

fn restrict(context: &mut SslContextBuilder, cipher: &str) -> Result<(), TlsError> {
    context.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    context.set_max_proto_version(Some(SslVersion::TLS1_3))?;
    let named = cipher
        .split([':', ',', ' '])
        .filter(|name| name.starts_with("TLS_"));
    let named: Vec<&str> = named.collect();
    let suites = match named.is_empty() {
        true => SUITES.to_owned(),
        false => named.join(":"),
    };
    context
        .set_ciphersuites(&suites)
        .map_err(|_| TlsError::Ciphers {
            names: suites.clone(),
        })?;
    // Each session has fresh keys, and no state of it outlives the session.
    context.set_session_cache_mode(SslSessionCacheMode::OFF);
    context.set_options(
        SslOptions::NO_TICKET | SslOptions::NO_COMPRESSION | SslOptions::NO_RENEGOTIATION,
    );
    context.set_num_tickets(0)?;
    Ok(())
}
