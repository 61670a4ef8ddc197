//! What encryption costs under the lock of the core: prints figures, checks none.
//!
//! `cargo test --release -p trireme-tls --test cost -- --ignored --nocapture`

use std::io::IoSlice;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use trireme_tls::testing::{NOW, Party};
use trireme_tls::{Credentials, Handshake, Progress, Role, Session};

/// Writes of one size.
const REPETITIONS: usize = 2_000;

fn pair(node: &Credentials) -> [Session<UnixStream>; 2] {
    let (near, far) = UnixStream::pair().unwrap();
    let begin = |(role, socket): (Role, UnixStream)| {
        socket.set_nonblocking(true).unwrap();
        Err(Handshake::new(node, role, socket).unwrap())
    };
    let mut sides = [(Role::Acceptor, near), (Role::Dialer, far)].map(begin);
    for _ in 0..10 {
        sides = sides.map(|side| {
            side.or_else(|handshake| match handshake.step().unwrap() {
                Progress::Waiting(handshake) => Err(handshake),
                Progress::Done(session) => Ok(session),
            })
        });
    }
    sides.map(Result::unwrap)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
#[ignore = "prints figures, checks none"]
fn cost_of_encryption() {
    let ca = Party::authority("ca");
    let [mut near, mut far] = pair(&ca.issue("node", NOW).credentials(&ca));
    let mut room = vec![0; 64 << 10];
    for bytes in [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10] {
        let payload = vec![7; bytes];
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for _ in 0..REPETITIONS {
            let began = Instant::now();
            let mut written = near
                .write_vectored(&[IoSlice::new(&payload)], bytes)
                .unwrap();
            writes.push(began.elapsed());
            assert_eq!(written, bytes);
            let began = Instant::now();
            while written > 0 {
                far.readable(false);
                written -= far.read(&mut room).unwrap();
                near.send().unwrap();
            }
            reads.push(began.elapsed());
        }
        let (write, read) = (median(writes), median(reads));
        println!("{bytes:6} bytes: written and sent in {write:?}, received and read in {read:?}");
    }
}
