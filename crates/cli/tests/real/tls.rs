//! Clusters whose group traffic is encrypted.

use std::path::Path;

use tempfile::TempDir;
use trireme_tls::testing::{NOW, Party};

use super::load::Load;
use super::lone::Lone;
use super::trial::{JOIN, SOON, Trial, provider};
use trireme_testbed::config::cluster_address;

/// Options that name a certificate of `ca`, in `dir`.
fn options(ca: &Party, dir: &Path) -> String {
    let files = ca.issue("node", NOW).files(ca, dir, "node");
    format!(
        "socket.ssl_cert={};socket.ssl_key={};socket.ssl_ca={}",
        files.cert, files.key, files.ca
    )
}

fn await_no_plaintext(trial: &Trial) {
    for i in 0..trial.nodes().len() {
        trial.await_status(i, "wsrep_trireme_plaintext_links", "0", SOON);
    }
}

#[test]
fn a_cluster_with_certificates_lives_and_takes_no_other() {
    let Some(path) = provider() else { return };
    let dir = TempDir::new().unwrap();
    let ca = Party::authority("ca");
    let secure = options(&ca, dir.path());
    let mut trial = Trial::start_under(path.clone(), 3, &secure).expect("the tests are on");
    await_no_plaintext(&trial);
    let load = Load::start(&trial, &[0, 1]);
    trial.kill_node(2).expect("node 3 can be killed");
    trial.await_size(0, 2, SOON);
    trial.start_node(2).expect("node 3 starts again");
    trial.await_size(0, 3, JOIN);
    // A node of another authority, and one without any.
    let address = cluster_address(
        &trial
            .nodes()
            .iter()
            .map(|node| node.ports)
            .collect::<Vec<_>>(),
    );
    let elsewhere = TempDir::new().unwrap();
    let foreign = options(&Party::authority("other"), elsewhere.path());
    for (options, wanted) in [(foreign.as_str(), "trust"), ("", "socket.ssl")] {
        let lone = Lone::join(&path, &address, |settings| {
            settings.provider_options = format!("{options};pc.wait_prim_timeout=PT5S");
        });
        lone.must_give_up(JOIN, &[]);
        lone.must_say(&[wanted]);
    }
    load.stop().assert_undisturbed();
    trial.assert_equal();
}

#[test]
fn a_live_cluster_goes_over_to_tls_and_to_another_certificate() {
    let Some(path) = provider() else { return };
    let dir = TempDir::new().unwrap();
    let plain = format!(
        "socket.ssl=no;{}",
        options(&Party::authority("ca"), dir.path())
    );
    let mut trial = Trial::start_under(path, 3, &plain).expect("the tests are on");
    for i in 0..3 {
        trial.await_status(i, "wsrep_trireme_plaintext_links", "2", SOON);
    }
    let load = Load::start(&trial, &[0, 1, 2]);
    for option in ["socket.dynamic=yes", "socket.ssl=yes", "socket.dynamic=no"] {
        (0..3).for_each(|i| trial.set_option(i, option));
    }
    await_no_plaintext(&trial);
    // New certificates of a new authority: no link is dropped for them, and the next ones need them.
    options(&Party::authority("new"), dir.path());
    (0..3).for_each(|i| trial.set_option(i, "socket.ssl_reload=1"));
    let refused = trial.try_exec(
        0,
        "SET GLOBAL wsrep_provider_options='socket.ssl_ca=/nowhere/ca.pem'",
    );
    assert!(refused.is_err());
    (0..3).for_each(|i| trial.await_size(i, 3, SOON));
    load.stop().assert_undisturbed();
    trial.kill_node(2).expect("node 3 can be killed");
    // As an operator writes it down in the end.
    trial.settings_mut().provider_options = plain.replace("socket.ssl=no", "socket.ssl=yes");
    trial.start_node(2).expect("node 3 starts again");
    trial.await_size(0, 3, JOIN);
    await_no_plaintext(&trial);
    trial.assert_equal();
}
