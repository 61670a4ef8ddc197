//! Order-Status (clause 2.6): shows a customer's last order. It only reads.

use trireme_testbed::sql::Prepared;
use trireme_testbed::{Sql, SqlError};

use super::Ended;
use super::customers::Customers;
use crate::tpcc::input::Customer;

pub struct OrderStatus {
    customers: Customers,
    customer: Prepared,
    last_order: Prepared,
    lines: Prepared,
}

impl OrderStatus {
    pub fn prepare(sql: &mut Sql) -> Result<Self, SqlError> {
        Ok(Self {
            customers: Customers::prepare(sql)?,
            customer: sql.prepare(
                "SELECT c_first, c_middle, c_last, c_balance FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            last_order: sql.prepare(
                "SELECT o_id, CAST(o_entry_d AS CHAR), o_carrier_id FROM orders \
                 WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
            )?,
            lines: sql.prepare(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, CAST(ol_delivery_d AS CHAR) \
                 FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            )?,
        })
    }

    pub fn run(&self, sql: &mut Sql, customer: &Customer) -> Result<Ended, SqlError> {
        let (w, d) = (customer.warehouse, customer.district);
        let c = self.customers.number(sql, customer)?;
        let _shown: (String, String, String, String) = sql.row(&self.customer, (w, d, c))?;
        let order: (u32, String, Option<u32>) = sql.row(&self.last_order, (w, d, c))?;
        let _lines: Vec<(u32, u32, u32, String, Option<String>)> =
            sql.rows(&self.lines, (w, d, order.0))?;
        Ok(Ended::Committed)
    }
}
