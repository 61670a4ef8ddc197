//! What must not work: a clear word in the log, and no harm to a healthy cluster nearby.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use trireme_testbed::config::cluster_address;
use trireme_testbed::packages::{self, GALERA_PROVIDER};
use trireme_testbed::ports::{self, NodePorts};

use super::load::Load;
use super::lone::Lone;
use super::trial::{SOON, Trial, pause, provider};

/// Time for a server to start, fail to join and end.
const GIVES_UP: Duration = Duration::from_secs(60);

#[test]
fn an_unknown_option_is_refused() {
    let Some(path) = provider() else { return };
    let lone = Lone::start(&path, |settings| {
        settings.provider_options = "gcache.sise=1M".to_string()
    });
    lone.must_give_up(SOON, &["gcache.sise"]);
}

#[test]
fn a_port_in_use_is_named() {
    let Some(path) = provider() else { return };
    let port = ports::find_free(1).expect("free ports")[0].group;
    let _somebody = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
    let lone = Lone::start(&path, |settings| {
        settings.provider_options = format!("gmcast.listen_addr=tcp://127.0.0.1:{port}");
    });
    lone.must_give_up(SOON, &["in use"]);
    if !packages::is_galera(&path) {
        lone.must_say(&[&port.to_string(), "in use"]);
    }
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    let Some(path) = provider() else { return };
    // Where even root makes no files.
    let lone = Lone::start(&path, |settings| {
        settings.provider_options = "gcache.dir=/proc".to_string()
    });
    lone.must_give_up(SOON, &["/proc"]);
}

#[test]
fn another_clusters_name_is_refused() {
    let Some(mut trial) = Trial::start(2, "") else {
        return;
    };
    let Some(path) = provider() else { return };
    let load = Load::start(&trial, &[0, 1]);
    let lone = Lone::join(&path, &address(&trial), |settings| {
        settings
            .mariadbd_args
            .push("--wsrep-cluster-name=elsewhere".to_string());
    });
    lone.must_give_up(GIVES_UP, &[]);
    if !packages::is_galera(&path) {
        // On plain TCP the refusal tells a stranger its own name alone; the log of a member has both.
        lone.must_say(&["cluster names differ", "elsewhere"]);
        let both = |line: &str| line.contains("elsewhere") && line.contains("trireme-local");
        let told = (0..2).any(|i| trial.node(i).log_text().lines().any(both));
        assert!(told, "no member's log has both names");
    }
    load.stop().assert_undisturbed();
    trial.assert_equal();
    trial.await_size(0, 2, SOON);
}

#[test]
fn galera_is_told_apart_on_either_side() {
    let Some(path) = provider() else { return };
    let galera = PathBuf::from(GALERA_PROVIDER);
    if packages::is_galera(&path) || !galera.exists() {
        eprintln!("skipped: needs both providers");
        return;
    }
    disturb(&path, &galera);
    let lone = disturb(&galera, &path);
    lone.must_say(&["Galera"]);
}

/// A cluster under `healthy` goes on while a server under `stranger` tries to join it.
fn disturb(healthy: &Path, stranger: &Path) -> Lone {
    let trial = Trial::start_under(healthy.to_path_buf(), 2, "");
    let mut trial = trial.expect("the tests are on");
    let load = Load::start(&trial, &[0, 1]);
    let lone = Lone::join(stranger, &address(&trial), |_| {});
    lone.must_give_up(GIVES_UP, &[]);
    load.stop().assert_undisturbed();
    trial.assert_equal();
    trial.await_size(0, 2, SOON);
    if trial.is_trireme() {
        let told = (0..2).any(|i| {
            trial
                .node(i)
                .log_text()
                .contains("Trireme and Galera nodes cannot share a cluster")
        });
        assert!(told, "no node tells of the Galera node that knocks");
    }
    lone
}

fn address(trial: &Trial) -> String {
    let ports: Vec<NodePorts> = trial.nodes().iter().map(|node| node.ports).collect();
    cluster_address(&ports)
}

#[test]
fn garbage_on_the_group_port_does_no_harm() {
    let Some(mut trial) = Trial::start(2, "") else {
        return;
    };
    let load = Load::start(&trial, &[0, 1]);
    let ports: Vec<u16> = trial.nodes().iter().map(|node| node.ports.group).collect();
    let mut held = Vec::new();
    for port in ports {
        for garbage in garbage() {
            let address = (Ipv4Addr::LOCALHOST, port);
            let mut stream = TcpStream::connect(address).expect("the node listens");
            // It may hang up in the middle.
            let _ = stream.write_all(&garbage);
            let _ = stream.shutdown(Shutdown::Write);
            held.push(stream);
        }
        // Some who say nothing at all.
        held.extend((0..20).filter_map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()));
    }
    pause(Duration::from_secs(2));
    load.stop().assert_undisturbed();
    trial.assert_equal();
    for i in 0..2 {
        trial.await_size(i, 2, SOON);
    }
}

/// What strangers may send.
fn garbage() -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_u32;
    let mut noise = |bytes: usize| -> Vec<u8> {
        let next = || {
            // xorshift: the same noise in every run.
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        std::iter::repeat_with(next).take(bytes).collect()
    };
    vec![
        Vec::new(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        // The beginning of a TLS greeting.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        vec![0; 100],
        // A length of four gigabytes, wherever one is read.
        vec![0xff; 64],
        noise(10),
        noise(1_000),
        noise(1_000_000),
    ]
}
