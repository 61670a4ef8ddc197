//! Status codes of calls and callbacks, log levels, member and view states.

c_enum! {
    /// The result of a provider call (`wsrep_status_t`). The server's reaction to each code differs per call.
    WsrepStatus {
        /// Success.
        OK = 0,
        /// A minor warning; the error was logged.
        WARNING = 1,
        /// The provider does not know the transaction.
        TRX_MISSING = 2,
        /// The transaction must be rolled back, the server goes on (certification failure, wait timed out).
        TRX_FAIL = 3,
        /// The transaction was the victim of a brute-force abort: roll back, perhaps replay.
        BF_ABORT = 4,
        /// The data exceeds the largest supported size.
        SIZE_EXCEEDED = 5,
        /// The operation could not be done on this connection; for a write-set: it was not ordered.
        CONN_FAIL = 6,
        /// The node cannot go on replicating; also the code of a refused option.
        NODE_FAIL = 7,
        /// The server must abort.
        FATAL = 8,
        /// The provider does not implement the call.
        NOT_IMPLEMENTED = 9,
        /// The operation is not allowed.
        NOT_ALLOWED = 10,
    }
}

c_enum! {
    /// The result of a callback into the server (`wsrep_cb_status_t`): any positive value is a critical failure.
    CbStatus {
        /// The callback did its work.
        SUCCESS = 0,
        /// A critical failure: this node's state no longer follows the group's.
        FAILURE = 1,
    }
}

impl CbStatus {
    /// Returns true if the callback succeeded.
    pub fn is_success(self) -> bool {
        self == CbStatus::SUCCESS
    }
}

c_enum! {
    /// Severity of a log line (`wsrep_log_level_t`).
    LogLevel {
        /// The server must stop.
        FATAL = 0,
        /// An operation failed.
        ERROR = 1,
        /// Unexpected, but nothing failed.
        WARN = 2,
        /// For the reader's information.
        INFO = 3,
        /// For developers.
        DEBUG = 4,
    }
}

c_enum! {
    /// State of a group member (`wsrep_member_status_t`).
    MemberStatus {
        /// Not known yet.
        UNDEFINED = 0,
        /// Incomplete state, asked for a state transfer.
        JOINER = 1,
        /// Complete state, gives a state transfer or is desynced.
        DONOR = 2,
        /// Complete state, catching up.
        JOINED = 3,
        /// Complete state, in step with the group.
        SYNCED = 4,
        /// Failed.
        ERROR = 5,
    }
}

c_enum! {
    /// State of a view (`wsrep_view_status_t`).
    ViewStatus {
        /// The view has quorum.
        PRIMARY = 0,
        /// The view lacks quorum.
        NON_PRIMARY = 1,
        /// The node is connected to no other node.
        DISCONNECTED = 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_names_known_codes_and_numbers_unknown_ones() {
        assert_eq!(format!("{:?}", WsrepStatus::BF_ABORT), "BF_ABORT");
        assert_eq!(format!("{:?}", WsrepStatus(77)), "WsrepStatus(77)");
    }

    #[test]
    fn any_nonzero_callback_status_is_a_failure() {
        assert!(CbStatus(0).is_success());
        assert!(!CbStatus(1).is_success());
        assert!(!CbStatus(42).is_success());
        assert!(!CbStatus(-1).is_success());
    }
}
