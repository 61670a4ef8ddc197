//! A client's thread: transactions and total-order actions.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use trireme_wsrep_abi::{
    Buf, DataType, Gtid, Key, KeyType, Seqno, TrxMeta, WsHandle, WsrepStatus, flag,
};

use super::call;
use super::server::Server;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// An own transaction.
pub struct Transaction<'a> {
    server: &'a Server,
    pub handle: WsHandle,
    pub meta: TrxMeta,
    data: String,
}

// SAFETY: as below.
unsafe impl Send for Transaction<'_> {}
// SAFETY: what uses a handle without changing it only passes it to the provider, which allows any thread.
unsafe impl Sync for Transaction<'_> {}

impl<'a> Transaction<'a> {
    /// Inserts the row `key` of a table.
    pub fn new(server: &'a Server, key: &str, data: &str) -> Self {
        let mut transaction = Transaction {
            server,
            handle: WsHandle {
                trx_id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                opaque: ptr::null_mut(),
            },
            meta: TrxMeta::UNDEFINED,
            data: data.to_string(),
        };
        let parts = [
            Buf::new(b"db"),
            Buf::new(b"table"),
            Buf::new(key.as_bytes()),
        ];
        let key = Key {
            parts: parts.as_ptr(),
            parts_num: parts.len(),
        };
        let handle = &mut transaction.handle;
        let status = call!(
            server,
            append_key,
            handle,
            &key,
            1,
            KeyType::EXCLUSIVE,
            true
        );
        assert_eq!(status, WsrepStatus::OK);
        assert_eq!(transaction.append(data), WsrepStatus::OK);
        transaction
    }

    /// More data of it.
    pub fn append(&mut self, data: &str) -> WsrepStatus {
        let (handle, data) = (&mut self.handle, Buf::new(data.as_bytes()));
        call!(
            self.server,
            append_data,
            handle,
            &data,
            1,
            DataType::ORDERED,
            true
        )
    }

    pub fn certify(&mut self) -> WsrepStatus {
        let (handle, flags) = (&mut self.handle, flag::TRX_START | flag::TRX_END);
        let status = call!(self.server, certify, 7, handle, flags, &mut self.meta);
        let gtid = self.meta.gtid;
        let ordered = gtid.seqno > 0 && !gtid.uuid.is_nil();
        // Half an undefined GTID would count as ordered.
        assert!(ordered || gtid == Gtid::UNDEFINED, "{status:?} at {gtid}");
        assert!(ordered || status != WsrepStatus::OK);
        status
    }

    pub fn seqno(&self) -> Seqno {
        self.meta.gtid.seqno
    }

    pub fn enter(&self) -> WsrepStatus {
        call!(self.server, commit_order_enter, &self.handle, &self.meta)
    }

    fn leave(&self) {
        let status = call!(
            self.server,
            commit_order_leave,
            &self.handle,
            &self.meta,
            &Buf::EMPTY
        );
        assert_eq!(status, WsrepStatus::OK);
    }

    /// After a successful certify().
    pub fn commit(mut self) {
        assert_eq!(self.enter(), WsrepStatus::OK);
        self.server.commit_row(self.seqno(), &self.data);
        self.leave();
        self.release();
    }

    /// After a failed certify(): an ordered write-set takes its place.
    pub fn roll_back(mut self) {
        if self.seqno() > 0 {
            assert_eq!(self.enter(), WsrepStatus::OK);
            self.server.pass(self.seqno());
            self.leave();
        }
        self.release();
    }

    /// After BF_ABORT.
    pub fn replay(mut self) {
        let applier = self.server.replayer(&self.handle);
        let context = ptr::from_ref(&applier).cast_mut().cast();
        assert_eq!(
            call!(self.server, replay_trx, &self.handle, context),
            WsrepStatus::OK
        );
        self.release();
    }

    /// Another thread's abort_certification(): result and the victim's seqno.
    pub fn abort(server: &Server, bf_seqno: Seqno, victim: u64) -> (WsrepStatus, Seqno) {
        let mut seqno = 77;
        let status = call!(server, abort_certification, bf_seqno, victim, &mut seqno);
        (status, seqno)
    }

    fn release(&mut self) {
        assert_eq!(
            call!(self.server, release, &mut self.handle),
            WsrepStatus::OK
        );
        assert!(self.handle.opaque.is_null());
    }

    /// certify() and commit, or roll back. True if it has committed.
    pub fn run(mut self) -> bool {
        match self.certify() {
            WsrepStatus::OK => {
                self.commit();
                true
            }
            WsrepStatus::TRX_FAIL => {
                self.roll_back();
                false
            }
            other => panic!("certify: {other:?}"),
        }
    }
}

/// Executes a statement in total-order isolation; returns its seqno.
pub fn execute_isolated(server: &Server, statement: &str) -> Seqno {
    let conn = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let (status, seqno) = begin_isolated(server, conn, statement, flag::TRX_START | flag::TRX_END);
    assert_eq!(status, WsrepStatus::OK);
    server.commit_row(seqno, statement);
    assert_eq!(
        call!(server, to_execute_end, conn, &Buf::EMPTY),
        WsrepStatus::OK
    );
    seqno
}

/// What `to_execute_start` answers, and the seqno of the action.
pub fn begin_isolated(
    server: &Server,
    conn: u64,
    statement: &str,
    flags: u32,
) -> (WsrepStatus, Seqno) {
    let (part, action) = (Buf::new(b"db"), Buf::new(statement.as_bytes()));
    let key = Key {
        parts: &part,
        parts_num: 1,
    };
    let mut meta = TrxMeta::UNDEFINED;
    let status = call!(
        server,
        to_execute_start,
        conn,
        &key,
        1,
        &action,
        1,
        flags,
        &mut meta
    );
    (status, meta.gtid.seqno)
}
