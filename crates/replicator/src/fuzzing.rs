//! The decoders, as the fuzz targets call them. A decoded value must survive an encoding and a second decoding.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::control::Control;
use crate::message::Message;
use crate::peer_message::PeerMessage;

#[cfg(any(test, feature = "fuzzing"))]
pub mod change;

#[cfg(any(test, feature = "fuzzing"))]
pub use crate::tests::liar::{Counts, run};

/// Decodes the payload of a submission.
pub fn message(bytes: Bytes) {
    match Message::decode(&bytes) {
        Ok(Message::WriteSet(write_set)) => {
            assert!(write_set.keys().iter().count() <= bytes.len());
        }
        Ok(message) => {
            let again = message.encode();
            let copy = Message::decode(&again).expect("what was encoded is a message");
            assert_eq!(copy.encode(), again);
        }
        Err(_) => {}
    }
}

/// Decodes a peer message.
pub fn peer_message(bytes: Bytes) {
    if let Ok(message) = PeerMessage::decode(bytes) {
        let copy = PeerMessage::decode(message.encode());
        assert_eq!(copy.expect("what was encoded is a message"), message);
    }
}

/// Decodes a control state, after correcting its digest.
pub fn control(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= 9 {
        let digest = xxh3_64(&bytes[9..]);
        bytes[1..9].copy_from_slice(&digest.to_le_bytes());
    }
    if let Ok(control) = Control::decode(Bytes::from(bytes)) {
        let again = control.encode();
        let copy = Control::decode(again.clone()).expect("what was encoded is a control state");
        assert_eq!(copy.encode(), again);
    }
}
