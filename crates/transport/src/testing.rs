//! For tests: frames made by hand, somebody in the middle of connections, and free ports. Panics where the system fails.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::{process, thread};

/// Returns a frame as the documentation of the wire format has it, with a checksum of its own.
pub fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_le_bytes();
    let crc = crc32c::crc32c(&[&len[..], &[kind], payload].concat());
    [&len[..], &crc.to_le_bytes(), &[kind], payload].concat()
}

/// Returns a port of 127.0.0.1 that nobody listens on. Tests of one process never get the same port. It is below those
/// that the system gives outgoing connections: one of these would be in the way of a later listener.
pub fn free_port() -> u16 {
    const PORTS: Range<u32> = 10_000..30_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        // Processes that run at the same time begin at different places.
        let at = process::id()
            .wrapping_mul(101)
            .wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = (PORTS.start + at % PORTS.len() as u32) as u16;
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// The bytes that passed on each connection: what the caller said, and what it heard.
pub type Sessions = Arc<Mutex<Vec<[Vec<u8>; 2]>>>;

/// Puts somebody between callers and `to`, who listens at the returned address. `change` may touch what passes. Its
/// arguments are the direction (0 is the caller's), the number of bytes that passed before, and the next bytes.
pub fn in_the_middle(
    to: SocketAddr,
    change: impl Fn(usize, usize, &mut [u8]) + Clone + Send + 'static,
) -> (SocketAddr, Sessions) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sessions = Sessions::default();
    let shared = Arc::clone(&sessions);
    thread::spawn(move || {
        for at in 0.. {
            let Ok((caller, _)) = listener.accept() else {
                return;
            };
            let Ok(called) = TcpStream::connect(to) else {
                return; // the test has ended
            };
            shared.lock().unwrap().push(Default::default());
            let ways = [(&caller, &called), (&called, &caller)];
            for (way, (from, to)) in ways.into_iter().enumerate() {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (sessions, change) = (Arc::clone(&shared), change.clone());
                thread::spawn(move || {
                    let (mut buffer, mut passed) = ([0; 4096], 0);
                    while let Ok(len @ 1..) = from.read(&mut buffer) {
                        sessions.lock().unwrap()[at][way].extend_from_slice(&buffer[..len]);
                        change(way, passed, &mut buffer[..len]);
                        passed += len;
                        if to.write_all(&buffer[..len]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both); // it may be over already
                });
            }
        }
    });
    (address, sessions)
}
