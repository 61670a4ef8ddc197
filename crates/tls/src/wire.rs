//! The bytes between OpenSSL and the socket of a session: a buffer for each direction, so that neither direction waits
//! for the other.

use std::io::{self, Read, Write};

/// The most bytes that one read takes from the socket: four records.
const INCOMING_BYTES: usize = 64 << 10;
/// The most encrypted bytes that wait for the socket. OpenSSL's own messages (alerts, key updates) fit in beside the
/// records.
const OUTGOING_LIMIT_BYTES: usize = 128 << 10;

/// The most bytes that come in without any plaintext. OpenSSL reads on through records without any, such as key updates,
/// for as long as the socket has some: a peer that sends nothing else would hold its reader for ever.
const BARREN_LIMIT_BYTES: usize = 128 << 10;

/// Keeps incoming bytes until OpenSSL reads them, and outgoing bytes until the socket takes them. So OpenSSL's writes
/// never wait for the socket, and its reads never wait for a write.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    socket: S,
    incoming: Vec<u8>,
    /// How many bytes of `incoming` the socket has filled, and how many of these OpenSSL has taken.
    filled: usize,
    taken: usize,
    /// The number of bytes that have come in since the last plaintext.
    barren_bytes: usize,
    /// The socket is empty until `poll` reports it readable again.
    is_drained: bool,
    /// A read that does not fill the buffer has emptied the socket.
    trusts_short: bool,
    has_ended: bool,
    outgoing: Vec<u8>,
    sent: usize,
}

impl<S: Read + Write> Wire<S> {
    pub fn new(socket: S) -> Self {
        Self {
            socket,
            incoming: Vec::new(),
            filled: 0,
            taken: 0,
            barren_bytes: 0,
            is_drained: false,
            trusts_short: false,
            has_ended: false,
            outgoing: Vec::new(),
            sent: 0,
        }
    }

    pub fn socket(&self) -> &S {
        &self.socket
    }

    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Notes that the socket may have more to read.
    pub fn readable(&mut self, trusts_short: bool) {
        self.is_drained = false;
        self.trusts_short = trusts_short;
    }

    /// Notes that OpenSSL has found plaintext in what came in.
    pub fn yielded(&mut self) {
        self.barren_bytes = 0;
    }

    /// Whether the socket's other side has closed it.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub fn has_incoming(&self) -> bool {
        self.taken < self.filled
    }

    /// Whether OpenSSL has taken everything that had come in, and `poll` will report more.
    pub fn is_empty(&self) -> bool {
        self.is_drained && !self.has_incoming()
    }

    /// The number of encrypted bytes that the socket has not taken.
    pub fn unsent_bytes(&self) -> usize {
        self.outgoing.len() - self.sent
    }

    /// Gives the socket as many bytes as it takes; `WouldBlock` if some are left.
    pub fn send(&mut self) -> io::Result<()> {
        while self.sent < self.outgoing.len() {
            match self.socket.write(&self.outgoing[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => self.sent += len,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
        Ok(())
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.barren_bytes > BARREN_LIMIT_BYTES {
            return Err(io::Error::other(
                "the peer sends TLS records without any data; no member does that",
            ));
        }
        self.incoming.resize(INCOMING_BYTES, 0); // resizes only the first time
        let read = loop {
            match self.socket.read(&mut self.incoming) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        (self.taken, self.filled) = (0, *read.as_ref().unwrap_or(&0));
        self.is_drained = self.trusts_short && self.filled < INCOMING_BYTES;
        self.barren_bytes += self.filled;
        self.has_ended |= matches!(read, Ok(0));
        read
    }
}

impl<S: Read + Write> Read for Wire<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.has_incoming() {
            if self.is_drained {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.fill()?;
        }
        let len = buffer.len().min(self.filled - self.taken);
        buffer[..len].copy_from_slice(&self.incoming[self.taken..self.taken + len]);
        self.taken += len;
        Ok(len)
    }
}

impl<S: Read + Write> Write for Wire<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unsent_bytes() >= OUTGOING_LIMIT_BYTES {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that never stops sending.
    struct Endless;

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            Ok(buffer.len())
        }
    }

    impl Write for Endless {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// OpenSSL would read key updates from it for ever.
    #[test]
    fn bytes_without_plaintext_come_to_an_end() {
        let mut wire = Wire::new(Endless);
        let mut buffer = [0; 16 << 10];
        for _ in 0..100 {
            assert_eq!(wire.read(&mut buffer).unwrap(), buffer.len());
            wire.yielded();
        }
        let taken = std::iter::from_fn(|| wire.read(&mut buffer).ok()).take(1_000);
        let bytes: usize = taken.sum();
        assert!(
            (BARREN_LIMIT_BYTES..2 * BARREN_LIMIT_BYTES).contains(&bytes),
            "{bytes}"
        );
    }
}
