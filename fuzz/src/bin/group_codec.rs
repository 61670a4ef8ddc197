//! Messages of the group from other members, and its entries and checkpoints in the log.
#![no_main]

use bytes::Bytes;
use trireme_group::{
    decode, decode_checkpoint, decode_entry, encode, encode_checkpoint, encode_entry,
};

trireme_fuzz::fuzz!(|bytes| {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok(message) = decode(bytes.clone()) {
        assert_eq!(
            decode(encode(&message)).expect("what was encoded is a message"),
            message
        );
    }
    if let Ok(entry) = decode_entry(bytes.clone()) {
        let again = decode_entry(encode_entry(&entry));
        assert_eq!(again.expect("what was encoded is an entry"), entry);
    }
    if let Ok(checkpoint) = decode_checkpoint(bytes) {
        let again = decode_checkpoint(encode_checkpoint(&checkpoint));
        assert_eq!(again.expect("what was encoded is a checkpoint"), checkpoint);
    }
});
