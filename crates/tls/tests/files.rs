//! What is wrong with an operator's files is told in one line, with option, file and remedy.

use std::fs;
use std::path::Path;

use openssl::pkey::PKey;
use openssl::symm::Cipher;
use tempfile::{TempDir, tempdir};
use trireme_tls::testing::{NOW, Party};
use trireme_tls::{Credentials, Files};

fn good() -> (TempDir, Files) {
    let dir = tempdir().unwrap();
    let ca = Party::authority("ca");
    let files = ca.issue("node", NOW).files(&ca, dir.path(), "node");
    (dir, files)
}

/// Checks the line that credentials of these files are refused with.
fn refused(files: &Files, wanted: &[&str]) {
    let text = Credentials::read(files).unwrap_err().to_string();
    assert!(!text.contains('\n'), "{text}");
    for part in wanted {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

fn truncate(file: &str) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

#[test]
fn good_files_are_taken() {
    let (_dir, files) = good();
    Credentials::read(&files).unwrap();
}

#[test]
fn what_is_not_set_is_named() {
    let (_dir, files) = good();
    for option in ["socket.ssl_cert", "socket.ssl_key"] {
        let mut files = files.clone();
        match option {
            "socket.ssl_cert" => files.cert.clear(),
            _ => files.key.clear(),
        }
        refused(&files, &[option, "is not set"]);
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let (dir, files) = good();
    let missing = dir.path().join("missing.pem").to_str().unwrap().to_owned();
    type Set = fn(&mut Files, String);
    let set: [(&str, Set); 5] = [
        ("socket.ssl_cert", |files, to| files.cert = to),
        ("socket.ssl_key", |files, to| files.key = to),
        ("socket.ssl_ca", |files, to| files.ca = to),
        ("socket.ssl_crl", |files, to| files.crl = to),
        ("socket.ssl_password_file", |files, to| files.password = to),
    ];
    for (option, set) in set {
        let mut files = files.clone();
        set(&mut files, missing.clone());
        refused(&files, &[option, "missing.pem", "correct the path"]);
        set(&mut files, dir.path().to_str().unwrap().to_owned());
        refused(&files, &[option, "check the file"]);
    }
}

#[test]
fn truncated_and_foreign_files_are_named() {
    for option in ["socket.ssl_cert", "socket.ssl_key", "socket.ssl_ca"] {
        let (_dir, files) = good();
        let file = match option {
            "socket.ssl_cert" => &files.cert,
            "socket.ssl_key" => &files.key,
            _ => &files.ca,
        };
        truncate(file);
        refused(&files, &[option, file, "copy the file anew"]);
        for (text, found) in [("", "it is empty"), ("hello", "no PEM header")] {
            fs::write(file, text).unwrap();
            refused(&files, &[option, file, found]);
        }
    }
    let (_dir, mut files) = good();
    std::mem::swap(&mut files.cert, &mut files.key);
    refused(
        &files,
        &["socket.ssl_cert", "its first part is a \"PRIVATE KEY\""],
    );
}

#[test]
fn a_key_of_another_certificate_is_named() {
    let (dir, mut files) = good();
    let (_, other) = Party::authority("other").write(dir.path(), "other");
    files.key = other.to_str().unwrap().to_owned();
    refused(&files, &["socket.ssl_key", "other.key", "node.pem"]);
}

#[test]
fn an_encrypted_key_asks_for_its_password() {
    let (dir, mut files) = good();
    let key = PKey::private_key_from_pem(&fs::read(&files.key).unwrap()).unwrap();
    let locked = key
        .private_key_to_pem_pkcs8_passphrase(Cipher::aes_256_cbc(), b"sesame")
        .unwrap();
    fs::write(&files.key, locked).unwrap();
    refused(
        &files,
        &["node.key", "is encrypted", "there is no password"],
    );
    let password = |text: &str| write(dir.path(), "password", text);
    files.password = password("wrong\n");
    refused(
        &files,
        &["node.key", "not the right one", "socket.ssl_password_file"],
    );
    files.password = password(&"long".repeat(5_000));
    refused(&files, &["node.key"]);
    files.password = password("sesame\nand a comment\n");
    Credentials::read(&files).unwrap();
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn ciphers_of_older_versions_have_no_effect_and_unknown_ones_of_this_are_named() {
    let (_dir, mut files) = good();
    for cipher in [
        "AES256-SHA",
        "AES256-SHA:HIGH:!aNULL",
        "TLS_AES_256_GCM_SHA384:AES256-SHA",
    ] {
        files.cipher = cipher.to_owned();
        Credentials::read(&files).unwrap();
    }
    files.cipher = "TLS_NO_SUCH_THING".to_owned();
    refused(&files, &["socket.ssl_cipher", "TLS_NO_SUCH_THING"]);
}

#[test]
fn a_list_of_revocations_must_be_one() {
    let (dir, mut files) = good();
    files.crl = write(dir.path(), "crl.pem", "nothing");
    refused(&files, &["socket.ssl_crl", "crl.pem", "revocation list"]);
}
