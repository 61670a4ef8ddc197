//! Reads the files that the options name, and checks their form, mode and dates.

use std::fs::File;
use std::io::{self, Read};

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, Private};
use openssl::x509::X509;

use crate::{TlsError, days_until, exposed_mode};

/// The largest file to read, in bytes. No certificate, key or revocation list is longer; a longer file is the wrong
/// file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Reads the file of an option.
pub(crate) fn read(option: &'static str, file: &str) -> Result<Vec<u8>, TlsError> {
    let opened = File::open(file).and_then(whole);
    opened.map_err(unreadable(option, file))
}

/// Reads a private file, if no more users may read it than need to. The mode is taken from the open file, so that a
/// file renamed into its place later changes nothing.
pub(crate) fn read_private(option: &'static str, file: &str) -> Result<Vec<u8>, TlsError> {
    let opened = File::open(file).map_err(unreadable(option, file))?;
    let about = opened.metadata().map_err(unreadable(option, file))?;
    match exposed_mode(&about) {
        None => whole(opened).map_err(unreadable(option, file)),
        Some(mode) => Err(TlsError::Open {
            option,
            file: file.to_owned(),
            mode,
        }),
    }
}

fn whole(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_FILE_BYTES {
        true => Err(io::Error::other("it has more than 4 MiB")),
        false => Ok(bytes),
    }
}

fn unreadable(option: &'static str, file: &str) -> impl FnOnce(io::Error) -> TlsError {
    let file = file.to_owned();
    move |source| TlsError::Unreadable {
        option,
        file,
        source,
    }
}

/// Reads all certificates of a file; at least one.
pub(crate) fn certificates(option: &'static str, file: &str) -> Result<Vec<X509>, TlsError> {
    let pem = read(option, file)?;
    let malformed = |found| malformed(option, file, "certificate", found);
    match X509::stack_from_pem(&pem) {
        Ok(found) if found.is_empty() => Err(malformed(what_is_there(&pem))),
        Ok(found) => Ok(found),
        Err(error) => Err(malformed(short(&error))),
    }
}

/// Reads the key of `socket.ssl_key`. If the key is encrypted, its password is read from `password_file`.
pub(crate) fn key(file: &str, password_file: &str) -> Result<PKey<Private>, TlsError> {
    const OPTION: &str = "socket.ssl_key";
    let pem = read(OPTION, file)?;
    let password = match password_file {
        "" => None,
        name => Some(first_line(read("socket.ssl_password_file", name)?)),
    };
    let mut asked = false;
    let read = PKey::private_key_from_pem_callback(&pem, |room| {
        asked = true;
        let password = password.as_deref().unwrap_or_default();
        if let Some(room) = room.get_mut(..password.len()) {
            room.copy_from_slice(password);
        }
        Ok(password.len())
    });
    match read {
        Ok(key) => Ok(key),
        Err(_) if asked => Err(TlsError::Locked {
            file: file.to_owned(),
            password: match password {
                Some(_) => "the password in socket.ssl_password_file is not the right one",
                None => "there is no password for it",
            },
        }),
        Err(error) => {
            let found = match what_is_there(&pem) {
                found if found.starts_with("its first") => short(&error),
                found => found,
            };
            Err(malformed(OPTION, file, "private key", found))
        }
    }
}

fn first_line(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    text.truncate(end.unwrap_or(text.len()));
    text
}

/// Fails if peers would refuse the certificate today, because of its dates.
pub(crate) fn check_dates(file: &str, cert: &X509) -> Result<(), TlsError> {
    let now = Asn1Time::days_from_now(0)?;
    let (file, text) = (file.to_owned(), |time: &Asn1TimeRef| time.to_string());
    if cert.not_after() < now {
        let at = text(cert.not_after());
        return Err(TlsError::Expired { file, at });
    }
    if cert.not_before() > now {
        let at = text(cert.not_before());
        return Err(TlsError::NotYetValid { file, at });
    }
    Ok(())
}

/// The days until the first certificate of a file expires; negative if one has expired. `option` names the file in
/// errors.
pub fn days_left(option: &'static str, file: &str) -> Result<i64, TlsError> {
    let mut days = i64::MAX;
    for cert in certificates(option, file)? {
        days = days.min(days_until(cert.not_after())?);
    }
    Ok(days)
}

pub(crate) fn malformed(
    option: &'static str,
    file: &str,
    wanted: &'static str,
    found: String,
) -> TlsError {
    TlsError::Malformed {
        option,
        file: file.to_owned(),
        wanted,
        found,
    }
}

/// Describes in a few words a file without the wanted object.
fn what_is_there(pem: &[u8]) -> String {
    let text = String::from_utf8_lossy(pem);
    let label = text
        .lines()
        .find_map(|line| line.strip_prefix("-----BEGIN "));
    match (pem.is_empty(), label) {
        (true, _) => "it is empty".to_owned(),
        (_, Some(label)) => {
            let label: String = label.trim_end_matches('-').chars().take(40).collect();
            format!("its first part is a {label:?}")
        }
        (_, None) => "it has no PEM header".to_owned(),
    }
}

/// The first reason in OpenSSL's error stack.
pub(crate) fn short(error: &ErrorStack) -> String {
    let reason = error.errors().first().and_then(|error| error.reason());
    reason.unwrap_or("unknown reason").to_owned()
}
