//! Bytes of connections, in and out: one hold of the core's lock moves only a bounded number.

use std::io;

use trireme_mutants::{Mutant, planted};
use trireme_tls::MAX_RECORD_BYTES;

use crate::connection::State;
use crate::mesh::Mesh;
use crate::poller::ReadyConnection;
use crate::{DownReason, MeshEvent};

/// Maximum of bytes read from one connection before the others get their turn.
const READ_BUDGET_BYTES: usize = 1 << 20;
/// The same maximum where the bytes are decrypted, under the lock.
const DECRYPT_BYTES: usize = 64 << 10;
/// Maximum of bytes encrypted per hold of the core's lock, over all links, but at least one record of each link: some
/// 15 us (docs/wire-transport.md).
const ENCRYPT_BYTES: usize = 64 << 10;

impl Mesh {
    /// Acts upon the readiness of a connection; ignores a connection that is gone.
    pub(crate) fn connection_ready(&mut self, ready: &ReadyConnection) {
        let Some(connection) = self.connections.get_mut(ready.token) else {
            return;
        };
        if connection.state == State::Connecting && !self.finish_connect(ready.token) {
            return;
        }
        if ready.writable {
            if let Some(connection) = self.connections.get_mut(ready.token) {
                connection.write_blocked = false;
                self.write(ready.token);
            }
        }
        if ready.readable {
            self.read(ready.token, ready.ending);
        }
    }

    /// Writes the queued bytes of a connection.
    pub(crate) fn write(&mut self, token: usize) {
        let limit_bytes = match planted(Mutant::AllEncryptedAtOnce) {
            true => usize::MAX,
            false => (ENCRYPT_BYTES / self.connections.links_len().max(1)).max(MAX_RECORD_BYTES),
        };
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let written = connection.write(limit_bytes);
        if let Err(error) = written {
            // Bytes that the peer sent before it closed may still wait to be read, for example its refusal.
            self.read(token, true);
            return self.drop_connection(token, DownReason::Io(error.to_string()));
        }
        let has_drained = connection.state == State::Up && connection.queue.take_drained();
        if has_drained && !planted(Mutant::GapNotTold) {
            if let Some(peer) = &connection.peer {
                self.reports.push(MeshEvent::Drained {
                    incarnation: peer.incarnation,
                });
            }
        }
        if matches!(written, Ok(false)) {
            self.connections.write_later(token);
        }
    }

    /// Reads until the stream is empty or others have waited long enough. `ending`: a short read does not prove that
    /// the stream is empty.
    pub(crate) fn read(&mut self, token: usize, ending: bool) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        connection.stream.readable(ending);
        let mut budget_bytes = match connection.stream.is_tls() {
            true => DECRYPT_BYTES,
            false => READ_BUDGET_BYTES,
        };
        loop {
            let Some(connection) = self.connections.get_mut(token) else {
                return;
            };
            let room_bytes = budget_bytes.min(self.read_buffer.len());
            match connection.stream.read(&mut self.read_buffer[..room_bytes]) {
                Ok(0) => return self.hung_up(token),
                Ok(len) => {
                    let emptied =
                        len < room_bytes && connection.stream.short_read_empties() && !ending;
                    if connection.state != State::Closing {
                        connection.decoder.push(&self.read_buffer[..len]);
                        self.take_frames(token);
                    }
                    if emptied {
                        return;
                    }
                    budget_bytes = budget_bytes.saturating_sub(len);
                    if budget_bytes == 0 {
                        self.connections.read_later(token);
                        return;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return self.drop_connection(token, DownReason::Io(e.to_string())),
            }
        }
    }

    fn take_frames(&mut self, token: usize) {
        while let Some(connection) = self.connections.get_mut(token) {
            let step = match connection.decoder.next_frame() {
                _ if connection.state == State::Closing => return,
                Ok(None) => return,
                Ok(Some((kind, payload))) => self.handle_frame(token, kind, payload),
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                return self.handle_invalid(token, error);
            }
        }
    }
}
