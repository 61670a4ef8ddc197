//! A large entry is read a part at a time.

use trireme_log::{Durability, Log, LogConfig, LogError, Peek};

fn log(dir: &std::path::Path) -> Log {
    let config = LogConfig::new(dir.into(), 1 << 20, [7; 16], Durability::Os);
    Log::create(config).unwrap()
}

#[test]
fn parts_and_the_checksum_of_the_rest_are_those_of_what_was_appended() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = log(dir.path());
    let payload: Vec<u8> = (0..1003u32).map(|at| (at * 7) as u8).collect();
    log.append(5, &[b"small"]).unwrap();
    log.append(6, &[&payload]).unwrap();
    for place in ["buffer", "file"] {
        assert_eq!(log.len_at(6), Some(1003));
        for head_bytes in [0, 63, 1003, 2000] {
            let head = &payload[..payload.len().min(head_bytes)];
            let expected = Peek {
                head: head.to_vec(),
                len: 1003,
                rest_crc: crc32c::crc32c(&payload[head.len()..]),
            };
            let peek = log.peek(6, head_bytes as u32).unwrap().unwrap();
            assert_eq!(peek, expected, "{place}, {head_bytes} bytes");
        }
        assert_eq!(log.read_part(6, 0..10).unwrap().unwrap(), payload[..10]);
        assert_eq!(
            log.read_part(6, 900..2000).unwrap().unwrap(),
            payload[900..]
        );
        assert_eq!(log.read_part(6, 1003..1100).unwrap().unwrap(), []);
        log.write_out().unwrap();
    }
    assert_eq!((log.len_at(7), log.peek(7, 1).unwrap()), (None, None));
    assert_eq!(log.read_part(7, 0..1).unwrap(), None);
}

#[test]
fn a_damaged_header_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = log(dir.path());
    log.append(1, &[&[1; 100]]).unwrap();
    log.write_out().unwrap();
    let path = dir.path().join("trireme-000000000001.log");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[128 + 12] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(log.peek(1, 10), Err(LogError::Corrupt { .. })));
}
