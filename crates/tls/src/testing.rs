//! For tests: certificate authorities, the certificates that they sign, and secrets. Panics where OpenSSL fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use openssl::asn1::{Asn1Integer, Asn1Time};
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::BasicConstraints;
use openssl::x509::{X509, X509Builder, X509NameBuilder};

use crate::{Credentials, Files};

const DAY_S: i64 = 24 * 60 * 60;

/// A certificate authority, or a holder of a certificate, with its key.
pub struct Party {
    cert: X509,
    key: PKey<Private>,
}

/// The validity of a certificate: its first and its last day, in days from now.
pub type Days = (i64, i64);

/// Valid since yesterday, for a month.
pub const NOW: Days = (-1, 30);

impl Party {
    /// An authority that trusts itself.
    pub fn authority(name: &str) -> Party {
        let key = new_key();
        let cert = certificate(name, &key, None, NOW, 2, true);
        Party { cert, key }
    }

    /// Signs an authority between this one and its holders.
    pub fn issue_authority(&self, name: &str) -> Party {
        self.issue_version(name, NOW, 2, true)
    }

    /// Signs a certificate.
    pub fn issue(&self, name: &str, days: Days) -> Party {
        self.issue_version(name, days, 2, false)
    }

    /// Signs a certificate of X.509 version 1.
    pub fn issue_v1(&self, name: &str) -> Party {
        self.issue_version(name, NOW, 0, false)
    }

    fn issue_version(&self, name: &str, days: Days, version: i32, is_ca: bool) -> Party {
        let key = new_key();
        let cert = certificate(name, &key, Some(self), days, version, is_ca);
        Party { cert, key }
    }

    /// Writes certificate and key into `dir`, under `name`.
    pub fn write(&self, dir: &Path, name: &str) -> (PathBuf, PathBuf) {
        let paths = (
            dir.join(format!("{name}.pem")),
            dir.join(format!("{name}.key")),
        );
        fs::write(&paths.0, self.cert.to_pem().unwrap()).unwrap();
        fs::write(&paths.1, self.key.private_key_to_pem_pkcs8().unwrap()).unwrap();
        paths
    }

    /// Writes certificate, key and the trusted `ca` into `dir`, and returns the options of a node that has them.
    pub fn files(&self, ca: &Party, dir: &Path, name: &str) -> Files {
        let (cert, key) = self.write(dir, name);
        let (trusted, _) = ca.write(dir, &format!("{name}-ca"));
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        Files {
            cert: text(cert),
            key: text(key),
            ca: text(trusted),
            ..Files::default()
        }
    }

    /// The credentials of a node that presents this certificate and trusts `ca`.
    pub fn credentials(&self, ca: &Party) -> Credentials {
        let credentials = in_dir(|dir| Credentials::read(&self.files(ca, dir, "node")));
        credentials.unwrap()
    }
}

/// The credentials of a node whose secret file has these lines.
pub fn secret(lines: &str) -> Credentials {
    let credentials = in_dir(|dir| {
        let file = dir.join("secret");
        fs::write(&file, lines).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        Credentials::of_secret(file.to_str().unwrap())
    });
    credentials.unwrap()
}

/// Runs the program `openssl ca` for the authority with these files, certificate and key. `dir` has the database of the
/// revoked certificates, which begins empty.
pub fn openssl_ca(dir: &Path, (cert, key): (&str, &str), arguments: &[&str]) {
    const CONFIG: &str = "[ca]\ndefault_ca = authority\n[authority]\ndatabase = index.txt\ndefault_md = sha256\n\
        default_crl_days = 30\n";
    fs::write(dir.join("ca.cnf"), CONFIG).unwrap();
    if !dir.join("index.txt").exists() {
        fs::write(dir.join("index.txt"), "").unwrap();
    }
    let output = Command::new("openssl")
        .args(["ca", "-config", "ca.cnf", "-cert", cert, "-keyfile", key])
        .args(arguments)
        .current_dir(dir)
        .output();
    let output = output.expect("the program openssl");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// Calls `read` with a temporary directory, and removes the directory.
fn in_dir<T>(read: impl FnOnce(&Path) -> T) -> T {
    let name = format!(
        "trireme-tls-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(&dir).unwrap();
    let what = read(&dir);
    let _ = fs::remove_dir_all(&dir); // only this test uses the directory
    what
}

fn new_key() -> PKey<Private> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

fn certificate(
    name: &str,
    key: &PKey<Private>,
    issuer: Option<&Party>,
    (from, to): Days,
    version: i32,
    is_ca: bool,
) -> X509 {
    let mut subject = X509NameBuilder::new().unwrap();
    subject.append_entry_by_text("CN", name).unwrap();
    let subject = subject.build();
    let mut serial = BigNum::new().unwrap();
    serial.rand(96, MsbOption::MAYBE_ZERO, false).unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64;
    let at = |days: i64| Asn1Time::from_unix(now + days * DAY_S).unwrap();
    let mut cert = X509Builder::new().unwrap();
    cert.set_version(version).unwrap();
    cert.set_serial_number(&Asn1Integer::from_bn(&serial).unwrap())
        .unwrap();
    cert.set_subject_name(&subject).unwrap();
    cert.set_issuer_name(issuer.map_or(&subject, |ca| ca.cert.subject_name()))
        .unwrap();
    cert.set_pubkey(key).unwrap();
    cert.set_not_before(&at(from)).unwrap();
    cert.set_not_after(&at(to)).unwrap();
    if is_ca {
        let is_ca = BasicConstraints::new().critical().ca().build().unwrap();
        cert.append_extension(is_ca).unwrap();
    }
    cert.sign(issuer.map_or(key, |ca| &ca.key), MessageDigest::sha256())
        .unwrap();
    cert.build()
}
