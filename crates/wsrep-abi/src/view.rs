//! Views of the group as the server reads them: a header and, right after it, the members.

use std::ffi::{c_char, c_int};

use crate::ids::{Gtid, Seqno, Uuid};
use crate::status::ViewStatus;

/// Room for a member's name, its NUL included.
pub const MEMBER_NAME_LEN_BYTES: usize = 32;
/// Room for a member's client address, its NUL included.
pub const INCOMING_LEN_BYTES: usize = 256;

/// One member (`wsrep_member_info_t`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemberInfo {
    /// Its id; the same from its connect to its final view.
    pub id: Uuid,
    /// Its name, NUL-terminated.
    pub name: [c_char; MEMBER_NAME_LEN_BYTES],
    /// Its address for clients, NUL-terminated.
    pub incoming: [c_char; INCOMING_LEN_BYTES],
}

/// The fixed part of a view (`wsrep_view_info_t` without its trailing member array).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewInfoHeader {
    /// History and seqno of the view.
    pub state_id: Gtid,
    /// Number of the view; -1 for a non-primary one.
    pub view: Seqno,
    /// Tells whether the view has quorum.
    pub status: ViewStatus,
    /// Capabilities that all its members have ([`crate::cap`]).
    pub capabilities: u32,
    /// Index of this node among the members, -1 if it is not one of them.
    pub my_idx: c_int,
    /// Number of members that follow the header.
    pub memb_num: c_int,
    /// Application protocol of the view.
    pub proto_ver: c_int,
}

/// The fields of a view's header that are not counted from its members: the input of [`ViewBuffer::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewHeader {
    /// History and seqno of the view.
    pub state_id: Gtid,
    /// Number of the view; -1 for a non-primary one.
    pub view: Seqno,
    /// Tells whether the view has quorum.
    pub status: ViewStatus,
    /// Capabilities that all its members have ([`crate::cap`]).
    pub capabilities: u32,
    /// Index of this node among the members, `None` if it is not one of them.
    pub my_idx: Option<usize>,
    /// Application protocol of the view.
    pub proto_ver: i32,
}

/// A member, as [`ViewBuffer::new`] takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Member id.
    pub id: Uuid,
    /// Node name, cut to 31 bytes in the buffer.
    pub name: String,
    /// Address for clients, cut to 255 bytes in the buffer.
    pub incoming: String,
}

/// A `wsrep_view_info_t` of any number of members, owned.
#[derive(Clone)]
pub struct ViewBuffer {
    /// 8-byte words, so that the structs inside are aligned.
    words: Vec<u64>,
}

const WORD_BYTES: usize = size_of::<u64>();
const HEADER_WORDS: usize = size_of::<ViewInfoHeader>() / WORD_BYTES;
const MEMBER_WORDS: usize = size_of::<MemberInfo>() / WORD_BYTES;

impl ViewBuffer {
    /// Lays out a view. Names and addresses end at their first NUL and are cut, at a character boundary, to the room
    /// that the ABI has. An index outside the members becomes -1.
    pub fn new(header: &ViewHeader, members: &[Member]) -> ViewBuffer {
        // A C reader may copy `sizeof(wsrep_view_info_t)`, which counts one member, so there is always room for one.
        let mut words = vec![0_u64; HEADER_WORDS + MEMBER_WORDS * members.len().max(1)];
        let raw_header = ViewInfoHeader {
            state_id: header.state_id,
            view: header.view,
            status: header.status,
            capabilities: header.capabilities,
            my_idx: header
                .my_idx
                .filter(|&idx| idx < members.len())
                .map_or(-1, |idx| idx as c_int),
            memb_num: members.len() as c_int,
            proto_ver: header.proto_ver,
        };
        // SAFETY: `words` is 8-aligned and has HEADER_WORDS words for the header.
        unsafe {
            words
                .as_mut_ptr()
                .cast::<ViewInfoHeader>()
                .write(raw_header)
        };
        for (i, member) in members.iter().enumerate() {
            let raw_member = MemberInfo {
                id: member.id,
                name: c_text(&member.name),
                incoming: c_text(&member.incoming),
            };
            // SAFETY: `words` has MEMBER_WORDS words for each member after the header, 8-aligned.
            unsafe {
                words
                    .as_mut_ptr()
                    .add(HEADER_WORDS + MEMBER_WORDS * i)
                    .cast::<MemberInfo>()
                    .write(raw_member)
            };
        }
        ViewBuffer { words }
    }

    /// Returns the pointer for callbacks: valid as long as this buffer.
    pub fn as_ptr(&self) -> *const ViewInfoHeader {
        self.words.as_ptr().cast()
    }

    /// The header.
    pub fn header(&self) -> &ViewInfoHeader {
        // SAFETY: `new` wrote a header there.
        unsafe { &*self.as_ptr() }
    }

    /// The members.
    pub fn members(&self) -> &[MemberInfo] {
        // SAFETY: `new` wrote `memb_num` members after the header; it took the number from a slice's length.
        unsafe {
            std::slice::from_raw_parts(
                self.words.as_ptr().add(HEADER_WORDS).cast::<MemberInfo>(),
                self.header().memb_num as usize,
            )
        }
    }
}

impl MemberInfo {
    /// The name as text.
    pub fn name(&self) -> String {
        text(&self.name)
    }

    /// The client address as text.
    pub fn incoming(&self) -> String {
        text(&self.incoming)
    }
}

/// `text` as a NUL-terminated array.
fn c_text<const N: usize>(text: &str) -> [c_char; N] {
    let text = text.split('\0').next().unwrap_or("");
    let mut end = text.len().min(N - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut array = [0; N];
    for (to, from) in array.iter_mut().zip(text[..end].bytes()) {
        *to = from as c_char;
    }
    array
}

fn text(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array
        .iter()
        .map(|&c| c as u8)
        .take_while(|&b| b != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(my_idx: Option<usize>) -> ViewHeader {
        ViewHeader {
            state_id: Gtid {
                uuid: Uuid { bytes: [7; 16] },
                seqno: 42,
            },
            view: 3,
            status: ViewStatus::PRIMARY,
            capabilities: 0x2d17f,
            my_idx,
            proto_ver: 4,
        }
    }

    fn member(id: u8, name: &str, incoming: &str) -> Member {
        Member {
            id: Uuid { bytes: [id; 16] },
            name: name.into(),
            incoming: incoming.into(),
        }
    }

    #[test]
    fn a_view_is_laid_out_as_c_reads_it() {
        let members = [
            member(1, "node1", "127.0.0.1:3306"),
            member(2, "node2", "[::1]:3307"),
        ];
        let buffer = ViewBuffer::new(&header(Some(1)), &members);
        // SAFETY: the buffer holds 56 + 2 * 304 bytes.
        let raw = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), 56 + 2 * 304) };
        assert_eq!(raw[..16], [7; 16]);
        assert_eq!(raw[16..24], 42_i64.to_ne_bytes());
        assert_eq!(raw[24..32], 3_i64.to_ne_bytes());
        assert_eq!(raw[32..36], 0_i32.to_ne_bytes());
        assert_eq!(raw[36..40], 0x2d17f_u32.to_ne_bytes());
        assert_eq!(raw[40..44], 1_i32.to_ne_bytes());
        assert_eq!(raw[44..48], 2_i32.to_ne_bytes());
        assert_eq!(raw[48..52], 4_i32.to_ne_bytes());
        let second = 56 + 304;
        assert_eq!(raw[second..second + 16], [2; 16]);
        assert_eq!(&raw[second + 16..second + 22], b"node2\0");
        assert_eq!(&raw[second + 48..second + 59], b"[::1]:3307\0");
        assert_eq!(buffer.members()[0].name(), "node1");
    }

    #[test]
    fn the_final_view_has_no_members() {
        let buffer = ViewBuffer::new(
            &ViewHeader {
                status: ViewStatus::NON_PRIMARY,
                view: -1,
                ..header(Some(0))
            },
            &[],
        );
        assert_eq!((buffer.header().memb_num, buffer.header().my_idx), (0, -1));
        assert!(buffer.members().is_empty());
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let buffer = ViewBuffer::new(
            &header(None),
            &[member(1, &"ä".repeat(40), &"x".repeat(300))],
        );
        assert_eq!(buffer.members()[0].name(), "ä".repeat(15));
        assert_eq!(buffer.members()[0].incoming(), "x".repeat(255));
        assert_eq!(
            ViewBuffer::new(&header(None), &[member(1, "a\0b", "")]).members()[0].name(),
            "a"
        );
    }

    proptest! {
        #[test]
        fn texts_are_always_terminated(name in any::<String>(), incoming in ".{0,400}") {
            let buffer = ViewBuffer::new(&header(None), &[member(1, &name, &incoming)]);
            let member = buffer.members()[0];
            prop_assert_eq!(member.name[MEMBER_NAME_LEN_BYTES - 1], 0);
            prop_assert_eq!(member.incoming[INCOMING_LEN_BYTES - 1], 0);
            prop_assert!(name.starts_with(&member.name()));
        }
    }
}
