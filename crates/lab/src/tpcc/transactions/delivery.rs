//! Delivery (clause 2.7): delivers the oldest open order of each district of a warehouse, all in one transaction. It
//! runs at once and is not queued.

use trireme_testbed::sql::Prepared;
use trireme_testbed::{Sql, SqlError};

use super::Ended;
use crate::tpcc::scale::DISTRICTS;

pub struct Delivery {
    oldest: Prepared,
    close: Prepared,
    customer: Prepared,
    carry: Prepared,
    date: Prepared,
    amount: Prepared,
    charge: Prepared,
}

impl Delivery {
    pub fn prepare(sql: &mut Sql) -> Result<Self, SqlError> {
        Ok(Self {
            oldest: sql.prepare(
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE",
            )?,
            close: sql.prepare(
                "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
            )?,
            // A locking read sees an order that was committed after the transaction's snapshot, as `oldest` does.
            customer: sql.prepare(
                "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? FOR UPDATE",
            )?,
            carry: sql.prepare(
                "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            )?,
            date: sql.prepare(
                "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            )?,
            amount: sql.prepare(
                "SELECT CAST(SUM(ol_amount) AS CHAR) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            )?,
            charge: sql.prepare(
                "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
        })
    }

    pub fn run(&self, sql: &mut Sql, w: u32, carrier: u32) -> Result<Ended, SqlError> {
        for d in 1..=DISTRICTS {
            let oldest: Vec<u32> = sql.rows(&self.oldest, (w, d))?;
            // A district without open orders is skipped.
            let Some(&order) = oldest.first() else {
                continue;
            };
            sql.change(&self.close, (w, d, order))?;
            let customer: u32 = sql.row(&self.customer, (w, d, order))?;
            sql.change(&self.carry, (carrier, w, d, order))?;
            sql.change(&self.date, (w, d, order))?;
            let amount: String = sql.row(&self.amount, (w, d, order))?;
            sql.change(&self.charge, (amount, w, d, customer))?;
        }
        Ok(Ended::Committed)
    }
}
