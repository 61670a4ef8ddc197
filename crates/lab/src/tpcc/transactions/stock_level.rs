//! Stock-Level (clause 2.8): counts the items of a district's last twenty orders that run short. It only reads.

use trireme_testbed::sql::Prepared;
use trireme_testbed::{Sql, SqlError};

use super::Ended;

/// The number of orders to examine.
const ORDERS: u32 = 20;

pub struct StockLevel {
    next_order: Prepared,
    count: Prepared,
}

impl StockLevel {
    pub fn prepare(sql: &mut Sql) -> Result<Self, SqlError> {
        Ok(Self {
            next_order: sql
                .prepare("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?")?,
            count: sql.prepare(
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock \
                 ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?",
            )?,
        })
    }

    pub fn run(
        &self,
        sql: &mut Sql,
        (w, d): (u32, u32),
        threshold: u32,
    ) -> Result<Ended, SqlError> {
        let next: u32 = sql.row(&self.next_order, (w, d))?;
        let first = next.saturating_sub(ORDERS);
        let _short: u64 = sql.row(&self.count, (w, d, first, next, threshold))?;
        Ok(Ended::Committed)
    }
}
