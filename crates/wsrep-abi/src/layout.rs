//! Compile-time proof that the structs have the layout of the C ABI on 64-bit Linux.
//!
//! The numbers are those of docs/server-contract-reference.md#layouts; they were checked against the C compiler's.

use crate::*;

/// Asserts a type's size, alignment and the offsets of its fields (every field, in order).
macro_rules! layout {
    ($type:ty, $size:literal, { $($field:ident $offset:literal),* $(,)? }) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(std::mem::offset_of!($type, $field) == $offset);)*
        };
    };
}

layout!(Uuid, 16, { bytes 0 });
const _: () = assert!(align_of::<Uuid>() == 8);
layout!(Gtid, 24, { uuid 0, seqno 16 });
layout!(Stid, 32, { node 0, trx 16, conn 24 });
layout!(TrxMeta, 64, { gtid 0, stid 24, depends_on 56 });
layout!(Buf, 16, { ptr 0, len 8 });
layout!(Key, 16, { parts 0, parts_num 8 });
layout!(WsHandle, 16, { trx_id 0, opaque 8 });
layout!(PoHandle, 8, { opaque 0 });

layout!(MemberInfo, 304, { id 0, name 16, incoming 48 });
// The C struct ends with one member, at offset 56: 360 bytes in all.
layout!(ViewInfoHeader, 56, {
    state_id 0, view 24, status 32, capabilities 36, my_idx 40, memb_num 44, proto_ver 48,
});

layout!(InitArgs, 144, {
    app_ctx 0, node_name 8, node_address 16, node_incoming 24, data_dir 32, options 40, proto_ver 48, state_id 56,
    state 64, logger_cb 72, connected_cb 80, view_cb 88, sst_request_cb 96, encrypt_cb 104, apply_cb 112,
    unordered_cb 120, sst_donate_cb 128, synced_cb 136,
});
layout!(EncCtx, 24, { key 0, iv 8, ctx 16 });

layout!(StatsVar, 24, { name 0, var_type 8, value 16 });
layout!(Parameter, 24, { flags 0, name 8, value 16 });
layout!(AllowlistServiceV1, 16, { allowlist_cb 0, context 8 });
layout!(EventServiceV1, 16, { event_cb 0, context 8 });
layout!(ConfigServiceV1, 8, { get_parameters 0 });
layout!(SeqCb, 16, { ctx 0, callback 8 });

layout!(Wsrep, 360, {
    version 0, init 8, capabilities 16, options_set 24, options_get 32, enc_set_key 40, connect 48, disconnect 56, recv 64, assign_read_view 72, certify 80, commit_order_enter 88, commit_order_leave 96, release 104, replay_trx 112, abort_certification 120, rollback 128, append_key 136, append_data 144, sync_wait 152, last_committed_id 160, free_connection 168, to_execute_start 176, to_execute_end 184, preordered_collect 192, preordered_commit 200, sst_sent 208, sst_received 216, snapshot 224, stats_get 232, stats_free 240, stats_reset 248, pause 256, resume 264, desync 272, resync 280, lock 288, unlock 296, is_locked 304, provider_name 312, provider_version 320, provider_vendor 328, free 336, dlh 344, ctx 352,
});

// Enums are C ints, the C bool is one byte.
const _: () = assert!(
    size_of::<WsrepStatus>() == 4 && size_of::<CbStatus>() == 4 && size_of::<LogLevel>() == 4
);
const _: () =
    assert!(size_of::<KeyType>() == 4 && size_of::<DataType>() == 4 && size_of::<VarType>() == 4);
const _: () = assert!(size_of::<bool>() == 1);
