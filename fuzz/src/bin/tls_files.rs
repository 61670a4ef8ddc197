//! The files that an operator names: certificates, keys, revocation lists, passwords, secrets.
//!
//! The first byte of the input says which file is bad, and whether it holds the input, or a good file that the input
//! changes: two bytes position, one byte to combine with (0: the file ends there).
#![no_main]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use trireme_tls::testing::{NOW, Party};
use trireme_tls::{Credentials, Files, days_left};

const CHANGES_A_GOOD_ONE: u8 = 128;
const SECRETS: &str =
    "a secret of at least thirty-two bytes\nanother one of at least thirty-two bytes\n";

struct Place {
    files: Files,
    /// What is good in each of the files.
    cert: Vec<u8>,
    key: Vec<u8>,
    /// The file that is bad.
    bad: PathBuf,
}

fn place() -> &'static Place {
    static MADE: OnceLock<Place> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("trireme-fuzz-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory can be made");
        let ca = Party::authority("ca");
        let files = ca.issue("node", NOW).files(&ca, &dir, "node");
        let bad = dir.join("bad");
        fs::write(&bad, "").expect("a file can be written");
        fs::set_permissions(&bad, fs::Permissions::from_mode(0o600)).expect("it is ours");
        Place {
            cert: fs::read(&files.cert).expect("it was just written"),
            key: fs::read(&files.key).expect("likewise"),
            files,
            bad,
        }
    })
}

fn changed(good: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        match (bytes.get_mut(at), change[2]) {
            (None, _) => {}
            (Some(_), 0) => bytes.truncate(at),
            (Some(byte), change) => *byte ^= change,
        }
    }
    bytes
}

fn told(result: Result<(), impl std::fmt::Display>, bad: &str) {
    if let Err(error) = result {
        let text = error.to_string();
        assert!(text.contains(bad) || text.starts_with("OpenSSL"), "{text}");
    }
}

trireme_fuzz::fuzz!(|bytes| {
    let Some((how, rest)) = bytes.split_first() else {
        return;
    };
    let place = place();
    let which = (how & !CHANGES_A_GOOD_ONE) % 6;
    let good: &[u8] = match which {
        1 => &place.key,
        4 | 5 => SECRETS.as_bytes(),
        _ => &place.cert,
    };
    let content = match how & CHANGES_A_GOOD_ONE {
        0 => rest.to_vec(),
        _ => changed(good, rest),
    };
    fs::write(&place.bad, content).expect("it is ours");
    let bad = place.bad.to_str().expect("a path of ours");
    let mut files = place.files.clone();
    match which {
        0 => files.cert = bad.to_owned(),
        1 => files.key = bad.to_owned(),
        2 => files.ca = bad.to_owned(),
        3 => files.crl = bad.to_owned(),
        4 => files.password = bad.to_owned(),
        _ => return told(Credentials::of_secret(bad).map(drop), bad),
    }
    told(Credentials::read(&files).map(drop), bad);
    told(days_left("socket.ssl_ca", bad).map(drop), bad);
});
