//! A session: the encrypted stream between two members, on a non-blocking socket. Encrypted bytes that the socket does
//! not take wait in the `Wire`.

use std::io::{self, IoSlice, Read, Write};

use openssl::error::ErrorStack;
use openssl::ssl::{Error, ErrorCode, SslStream};

use crate::credentials::{Trust, secret_in_use};
use crate::failure::subject;
use crate::identity::EXPORTER_LABEL;
use crate::wire::Wire;
use crate::{Credentials, Failure, Role, certificate_fingerprint};

/// The most bytes in one record; so one call of OpenSSL encrypts no more.
pub const MAX_RECORD_BYTES: usize = 16 << 10;
/// The most bytes that one write encrypts: four records, which take about 15 us (docs/wire-transport.md).
const MAX_WRITE_BYTES: usize = 4 * MAX_RECORD_BYTES;

/// A TLS session on a non-blocking socket. Its I/O errors contain a [`Failure`].
#[derive(Debug)]
pub struct Session<S> {
    stream: SslStream<Wire<S>>,
    trust: Trust,
    role: Role,
    /// The buffer that joins small pieces into one record.
    record: Vec<u8>,
    /// The last read took everything that had come in.
    is_emptied: bool,
}

impl<S: Read + Write> Session<S> {
    pub(crate) fn new(stream: SslStream<Wire<S>>, trust: Trust, role: Role) -> Self {
        Self {
            stream,
            trust,
            role,
            record: Vec::new(),
            is_emptied: false,
        }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        self.stream.get_ref().socket()
    }

    /// The socket.
    pub fn socket_mut(&mut self) -> &mut S {
        self.stream.get_mut().socket_mut()
    }

    /// Describes the session for a log line: the cipher, and the subject of the peer's certificate or the secret in
    /// use.
    pub fn describe(&self) -> String {
        let ssl = self.stream.ssl();
        let cipher = ssl
            .current_cipher()
            .map_or("no cipher", |cipher| cipher.name());
        if let Some(identity) = secret_in_use(ssl) {
            // Two nodes with the same file log the same digits. They reveal nothing of the secret.
            return format!("TLS 1.3 {cipher}, shared secret {identity:.16}");
        }
        let Some(cert) = ssl.peer_certificate() else {
            return format!("TLS 1.3 {cipher}");
        };
        format!(
            "TLS 1.3 {cipher}, certificate {} with SHA-256 {}",
            subject(&cert),
            certificate_fingerprint(&cert).unwrap_or_default()
        )
    }

    /// The reason why this session must end under these credentials, if it began with others: a certificate of the
    /// peer's chain is revoked. None: it may go on.
    pub fn revocation(&self, credentials: &Credentials) -> Option<String> {
        credentials.revocation(self.stream.ssl(), self.role)
    }

    /// This node's role in the handshake, and the exporter, which is different in every session. A claim is bound to
    /// both.
    pub fn binding(&self) -> io::Result<(Role, [u8; 32])> {
        let mut exporter = [0; 32];
        let ssl = self.stream.ssl();
        ssl.export_keying_material(&mut exporter, EXPORTER_LABEL, None)?;
        Ok((self.role, exporter))
    }

    /// Notes that the socket may have more to read. `trusts_short`: a read that does not fill its buffer has emptied
    /// the socket.
    pub fn readable(&mut self, trusts_short: bool) {
        self.stream.get_mut().readable(trusts_short);
    }

    /// Whether the last read took everything that had come in.
    pub fn is_emptied(&self) -> bool {
        self.is_emptied
    }

    /// Whether bytes have come in that `poll` will not report again, because they have left the socket.
    pub fn has_buffered(&self) -> bool {
        self.stream.get_ref().has_incoming() || self.stream.ssl().pending() > 0
    }

    /// Whether encrypted bytes wait until the socket takes them.
    pub fn has_unsent(&self) -> bool {
        self.stream.get_ref().unsent_bytes() > 0
    }

    /// Fills `buffer` with the bytes that are there; `Ok(0)` if the peer has ended the session.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        self.is_emptied = false;
        while filled < buffer.len() {
            drop(ErrorStack::get()); // errors that this thread left behind in other work
            match self.stream.ssl_read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(len) => {
                    filled += len;
                    self.stream.get_mut().yielded();
                    // Saves the call of OpenSSL that would find nothing.
                    if self.stream.get_ref().is_empty() && self.stream.ssl().pending() == 0 {
                        self.is_emptied = true;
                        break;
                    }
                }
                Err(error) if error.code() == ErrorCode::WANT_READ => {
                    self.is_emptied = true;
                    match filled {
                        0 => return Err(io::ErrorKind::WouldBlock.into()),
                        _ => break,
                    }
                }
                // The bytes before the end are returned first; the next call meets the same end.
                Err(_) if filled > 0 => break,
                Err(error) => {
                    return match self.failure(&error) {
                        Failure::Closed => Ok(0),
                        failure => Err(failure.into()),
                    };
                }
            }
        }
        Ok(filled)
    }

    /// Encrypts at most `limit_bytes`, sends, and returns how many bytes it took. `WouldBlock` if the socket is full.
    /// Bytes that were taken but not sent go out with the next [`Session::send`] or write.
    pub fn write_vectored(
        &mut self,
        slices: &[IoSlice<'_>],
        limit_bytes: usize,
    ) -> io::Result<usize> {
        self.stream.get_mut().send()?;
        drop(ErrorStack::get()); // errors that this thread left behind in other work
        let mut record = std::mem::take(&mut self.record);
        let encrypted = self.encrypt_slices(slices, limit_bytes, &mut record);
        self.record = record; // keeps its memory
        self.send()?;
        encrypted
    }

    /// Encrypts the slices in full records, as long as there are enough bytes.
    fn encrypt_slices(
        &mut self,
        slices: &[IoSlice<'_>],
        limit_bytes: usize,
        record: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let mut left = limit_bytes.min(MAX_WRITE_BYTES);
        let mut slices = slices.iter();
        let mut front: &[u8] = &[];
        let mut taken = 0;
        loop {
            let room = left.min(MAX_RECORD_BYTES);
            record.clear();
            while front.len() < room - record.len() {
                record.extend_from_slice(front);
                front = match slices.next() {
                    Some(slice) => slice,
                    None => &[],
                };
                if front.is_empty() && slices.len() == 0 {
                    break;
                }
            }
            let (now, later) = front.split_at(front.len().min(room - record.len()));
            front = later;
            let len = record.len() + now.len();
            if len == 0 {
                return Ok(taken);
            }
            match record.is_empty() {
                true => self.encrypt(now)?, // without a copy
                false => {
                    record.extend_from_slice(now);
                    self.encrypt(record)?;
                }
            }
            taken += len;
            left -= len;
        }
    }

    /// Encrypts one record. The wire always has room for it: `write_vectored` starts with an empty wire.
    fn encrypt(&mut self, record: &[u8]) -> io::Result<()> {
        match self.stream.ssl_write(record) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(&error).into()),
        }
    }

    /// Gives the socket as many encrypted bytes as it takes.
    pub fn send(&mut self) -> io::Result<()> {
        match self.stream.get_mut().send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }

    /// Tells the peer that no more bytes follow.
    pub fn finish(&mut self) {
        // If the session has failed, there is nothing to tell the peer.
        let _ = self.stream.shutdown();
        let _ = self.send();
    }

    fn failure(&self, error: &Error) -> Failure {
        let ended = self.stream.get_ref().has_ended();
        Failure::of(error, self.stream.ssl(), ended, &self.trust)
    }
}
