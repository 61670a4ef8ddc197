//! Checks the TLS files of a node: as the node itself does, and further (names, remaining days, revocation). Comes in:
//! paths. Goes out: a [`Report`].

use std::fs;
use std::os::unix::fs::MetadataExt;

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::error::ErrorStack;
use openssl::stack::Stack;
use openssl::x509::{X509, X509CrlRef, X509Ref};
use trireme_tls::{
    Credentials, Files, PRIVATE_REMEDY, authorities, certificate_fingerprint, days_until,
    exposed_mode, verify,
};

use crate::{certificate, revocation};

/// Demands on the certificate that the files alone do not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Names or addresses that the certificate must have.
    pub names: Vec<String>,
    /// The least number of days for which the certificate must still be valid.
    pub days_left: u32,
}

/// The results of a check, one line each: passed and failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    good: Vec<String>,
    bad: Vec<String>,
}

impl Report {
    /// The lines of the checks that passed.
    pub fn good(&self) -> &[String] {
        &self.good
    }

    /// The lines of the checks that failed, with the remedy.
    pub fn bad(&self) -> &[String] {
        &self.bad
    }

    pub(crate) fn say(&mut self, line: impl Into<String>) {
        self.good.push(line.into());
    }

    pub(crate) fn complain(&mut self, line: impl Into<String>) {
        self.bad.push(line.into());
    }

    /// Adds the line to the passed or to the failed checks.
    pub(crate) fn judge(&mut self, is_good: bool, line: String, remedy: &str) {
        match is_good {
            true => self.say(line),
            false => self.complain(format!("{line}; {remedy}")),
        }
    }
}

/// Checks the files of a node.
pub fn check_files(files: &Files, expected: &Expectation) -> Report {
    let mut report = Report::default();
    for (option, file) in [
        ("socket.ssl_key", &files.key),
        ("socket.ssl_password_file", &files.password),
    ] {
        if !file.is_empty() {
            check_mode(&mut report, option, file);
        }
    }
    match Credentials::read(files) {
        Ok(_) => report.say("certificate, key and authorities can be used as they are"),
        // The certificates are still checked.
        Err(error) => report.complain(error.to_string()),
    }
    let (_, trusted) = files.trusted();
    let (Some(chain), Some(anchors)) = (certificate::read(&files.cert), certificate::read(trusted))
    else {
        return report; // the loop above has reported the reason
    };
    if let Err(error) = check_certificates(&mut report, files, expected, chain, anchors) {
        report.complain(format!("OpenSSL fails: {error}"));
    }
    report
}

/// Checks that no more users may read a key than need to.
fn check_mode(report: &mut Report, option: &str, file: &str) {
    let Ok(found) = fs::metadata(file) else {
        return; // reading the file will report the error
    };
    let mode = found.mode() & 0o7777;
    let line = format!("{option}: '{file}' has mode {mode:04o}");
    report.judge(exposed_mode(&found).is_none(), line, PRIVATE_REMEDY);
}

fn check_certificates(
    report: &mut Report,
    files: &Files,
    expected: &Expectation,
    chain: Vec<X509>,
    anchors: Vec<X509>,
) -> Result<(), ErrorStack> {
    let Some((leaf, between)) = chain.split_first() else {
        return Ok(());
    };
    for cert in &chain {
        check_end(report, &files.cert, cert, expected.days_left)?;
    }
    if !files.ca.is_empty() {
        for cert in &anchors {
            check_end(report, &files.ca, cert, expected.days_left)?;
        }
    }
    // If the file cannot be read, the verdict below says so.
    for list in revocation::lists(&files.crl).unwrap_or_default() {
        check_list(report, &files.crl, &list, expected.days_left)?;
    }
    let names = certificate::names(leaf);
    report.say(format!(
        "'{}': {} is for {}; SHA-256 {}",
        files.cert,
        certificate::subject(leaf),
        names.join(", "),
        certificate_fingerprint(leaf)?
    ));
    for name in &expected.names {
        let has = names.iter().any(|found| found.eq_ignore_ascii_case(name));
        let line = format!(
            "'{}': the certificate is {}for {name}",
            files.cert,
            if has { "" } else { "not " }
        );
        report.judge(
            has,
            line,
            "have one made with that name: trireme tls renew NODE=NAME,...",
        );
    }
    let verdict = verdict(leaf, between, anchors, &files.crl)?;
    let line = match &verdict {
        None => format!(
            "'{}': the certificate leads to an authority that this node trusts",
            files.cert
        ),
        Some(why) => format!(
            "'{}': peers with the same authorities refuse the certificate: {why}",
            files.cert
        ),
    };
    report.judge(
        verdict.is_none(),
        line,
        "compare socket.ssl_cert with socket.ssl_ca and socket.ssl_crl",
    );
    Ok(())
}

/// Checks the remaining days of a certificate.
pub(crate) fn check_end(
    report: &mut Report,
    place: &str,
    cert: &X509Ref,
    days_left: u32,
) -> Result<(), ErrorStack> {
    let dated = Dated {
        who: certificate::subject(cert),
        from: cert.not_before(),
        to: cert.not_after(),
        renewal: "renew it: trireme tls renew",
    };
    dated.judge(report, place, days_left)
}

/// Checks the remaining days of a revocation list.
fn check_list(
    report: &mut Report,
    place: &str,
    list: &X509CrlRef,
    days_left: u32,
) -> Result<(), ErrorStack> {
    let who = format!("the revocation list of {}", revocation::issuer(list));
    let Some(to) = list.next_update() else {
        report.say(format!("'{place}': {who} has no end"));
        return Ok(());
    };
    let dated = Dated {
        who,
        from: list.last_update(),
        to,
        renewal: "have that authority make a new one (openssl ca -gencrl), copy it and reload; if no node has a certificate of \
                  that authority, remove the list",
    };
    dated.judge(report, place, days_left)
}

/// Something with a first and a last day.
struct Dated<'a> {
    who: String,
    from: &'a Asn1TimeRef,
    to: &'a Asn1TimeRef,
    /// The remedy when it ends.
    renewal: &'a str,
}

impl Dated<'_> {
    fn judge(&self, report: &mut Report, place: &str, days_left: u32) -> Result<(), ErrorStack> {
        let days = days_until(self.to)?;
        let is_begun = self.from <= Asn1Time::days_from_now(0)?;
        let (who, from, to) = (&self.who, self.from, self.to);
        let line = match (is_begun, days) {
            (false, _) => format!("'{place}': {who} is not valid before {from}"),
            (true, ..0) => format!("'{place}': {who} has expired on {to}"),
            (true, days) => format!("'{place}': {who} is valid until {to}, {days} days more"),
        };
        let remedy = match is_begun {
            true => self.renewal,
            false => "correct this machine's clock, or have it made anew",
        };
        report.judge(is_begun && days >= i64::from(days_left), line, remedy);
        Ok(())
    }
}

/// Returns the reason why a node with these authorities refuses a certificate; None if it accepts it.
pub(crate) fn verdict(
    leaf: &X509Ref,
    between: &[X509],
    anchors: Vec<X509>,
    crl: &str,
) -> Result<Option<String>, ErrorStack> {
    let store = match authorities(anchors, crl) {
        Ok(store) => store,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let mut chain = Stack::new()?;
    for cert in between {
        chain.push(cert.clone())?;
    }
    let refused = verify(&store, leaf, &chain)?;
    Ok(refused.map(|(result, _)| result.error_string().to_owned()))
}
