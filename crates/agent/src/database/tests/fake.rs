//! A server of MariaDB's protocol, as far as the client speaks it: it lets everybody in, and answers each query by a
//! function.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::database::{Endpoint, Login};

/// The answer to a query.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// Rows of text; of none, the query has no result.
    Rows(Vec<Vec<String>>),
    /// An error with this number.
    Refused(u16),
    /// The end of the connection.
    Hangup,
    /// Nothing, with the connection open.
    Silence,
}

/// The record of a running server. It serves until the process ends.
pub(super) struct Server {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Server {
    /// The queries so far, of all connections.
    pub(super) fn queries(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().map(|(_, query)| query.clone()).collect()
    }

    /// The number of connections that have sent a query.
    pub(super) fn connections(&self) -> usize {
        let heard = self.heard.lock().unwrap();
        heard
            .iter()
            .map(|(connection, _)| *connection)
            .max()
            .unwrap_or(0)
    }
}

/// A login to the server.
pub(super) fn login(server: &Server) -> Login {
    Login {
        endpoint: Endpoint::Tcp {
            host: server.address.ip().to_string(),
            port: server.address.port(),
        },
        user: "u".to_owned(),
        password: None,
    }
}

/// Starts a server. `answer` gets the number of the connection, from 1 on, and the query.
pub(super) fn serve(answer: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (record, answer) = (Arc::clone(&heard), Arc::new(answer));
    thread::spawn(move || {
        for (i, stream) in listener.incoming().enumerate() {
            let (record, answer) = (Arc::clone(&record), Arc::clone(&answer));
            let stream = stream.unwrap();
            thread::spawn(move || {
                converse(stream, |query| {
                    record.lock().unwrap().push((i + 1, query.to_owned()));
                    answer(i + 1, query)
                })
            });
        }
    });
    Server { address, heard }
}

/// Serves one connection. None: it has ended.
fn converse(mut stream: TcpStream, answer: impl Fn(&str) -> Reply) -> Option<()> {
    const COM_QUERY: u8 = 3;
    send(&mut stream, 0, &greeting())?;
    receive(&mut stream)?;
    send(&mut stream, 2, OK)?;
    loop {
        let packet = receive(&mut stream)?;
        let (&COM_QUERY, query) = packet.split_first()? else {
            return None;
        };
        match answer(&String::from_utf8_lossy(query)) {
            Reply::Hangup => return None,
            Reply::Silence => thread::sleep(Duration::from_secs(600)),
            Reply::Refused(code) => {
                let mut packet = vec![0xff];
                packet.extend(code.to_le_bytes());
                packet.extend(b"#HY000refused");
                send(&mut stream, 1, &packet)?;
            }
            Reply::Rows(rows) => {
                for (packet, sequence) in result(&rows).iter().zip(1..) {
                    send(&mut stream, sequence, packet)?;
                }
            }
        }
    }
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];

/// The first packet: version 10 of the protocol, with the plain 4.1 authentication.
fn greeting() -> Vec<u8> {
    let mut packet = b"\x0a8.0.0\0\x01\0\0\0saltsalt\0".to_vec();
    packet.extend([0x00, 0x82, 33, 2, 0]); // PROTOCOL_41 and SECURE_CONNECTION; utf8; autocommit
    packet.extend([0x08, 0x00, 21]); // PLUGIN_AUTH
    packet.extend([0; 10]);
    packet.extend(b"saltsaltsalt\0mysql_native_password\0");
    packet
}

fn result(rows: &[Vec<String>]) -> Vec<Vec<u8>> {
    let Some(first) = rows.first() else {
        return vec![OK.to_vec()];
    };
    let mut packets = vec![vec![first.len() as u8]];
    for _ in first {
        let mut column = b"\x03def\0\0\0\x01c\0\x0c".to_vec();
        column.extend([33, 0, 0, 0, 1, 0, 0xfd, 0, 0, 0, 0, 0]);
        packets.push(column);
    }
    packets.push(EOF.to_vec());
    for row in rows {
        let mut packet = Vec::new();
        for value in row {
            packet.push(0xfc);
            packet.extend((value.len() as u16).to_le_bytes());
            packet.extend(value.as_bytes());
        }
        packets.push(packet);
    }
    packets.push(EOF.to_vec());
    packets
}

fn send(stream: &mut TcpStream, sequence: u8, payload: &[u8]) -> Option<()> {
    let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(sequence);
    packet.extend(payload);
    stream.write_all(&packet).ok()
}

fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}
