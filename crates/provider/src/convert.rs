//! Conversions between the ABI's types and the node's.

use trireme_group::Uuid;
use trireme_replicator::{Answer, Apply, Gtid};
use trireme_wsrep_abi::{self as abi, Stid, TrxMeta};

pub fn uuid_to_abi(uuid: Uuid) -> abi::Uuid {
    abi::Uuid { bytes: uuid.0 }
}

pub fn gtid_to_abi(gtid: Gtid) -> abi::Gtid {
    abi::Gtid {
        uuid: uuid_to_abi(gtid.uuid),
        seqno: gtid.seqno,
    }
}

pub fn gtid_from_abi(gtid: &abi::Gtid) -> Gtid {
    Gtid {
        uuid: Uuid(gtid.uuid.bytes),
        seqno: gtid.seqno,
    }
}

/// Returns the meta data of a write-set that is being applied.
pub fn meta_of(apply: &Apply) -> TrxMeta {
    TrxMeta {
        gtid: gtid_to_abi(apply.gtid),
        stid: Stid {
            node: uuid_to_abi(apply.source.0),
            trx: apply.trx,
            conn: apply.conn,
        },
        depends_on: apply.depends_on,
    }
}

/// Returns the meta data of an own write-set after certify() or to_execute_start().
pub fn meta_of_answer(answer: &Answer, node: Uuid, trx: u64, conn: u64) -> TrxMeta {
    TrxMeta {
        gtid: gtid_to_abi(answer.gtid),
        stid: Stid {
            node: uuid_to_abi(node),
            trx,
            conn,
        },
        depends_on: answer.depends_on,
    }
}
