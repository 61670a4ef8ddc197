//! New-Order (clause 2.4): places an order of five to fifteen lines.

use trireme_testbed::sql::Prepared;
use trireme_testbed::{Sql, SqlError};

use super::Ended;
use crate::tpcc::input::Line;
use crate::tpcc::rows::Cents;

pub struct NewOrder {
    warehouse: Prepared,
    district: Prepared,
    next_order: Prepared,
    customer: Prepared,
    order: Prepared,
    open_order: Prepared,
    item: Prepared,
    stock: Prepared,
    take: Prepared,
    line: Prepared,
}

impl NewOrder {
    pub fn prepare(sql: &mut Sql) -> Result<Self, SqlError> {
        Ok(Self {
            warehouse: sql.prepare("SELECT w_tax FROM warehouse WHERE w_id = ?")?,
            district: sql.prepare(
                "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
            )?,
            next_order: sql.prepare(
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
            )?,
            customer: sql.prepare(
                "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            order: sql.prepare(
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, NOW(), ?, ?)",
            )?,
            open_order: sql.prepare("INSERT INTO new_order VALUES (?, ?, ?)")?,
            item: sql.prepare(
                "SELECT CAST(i_price * 100 AS UNSIGNED), i_name, i_data FROM item WHERE i_id = ?",
            )?,
            stock: sql.prepare(
                "SELECT s_quantity, s_data, ELT(?, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
                 s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10) \
                 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE",
            )?,
            take: sql.prepare(
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
            )?,
            line: sql.prepare("INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)")?,
        })
    }

    /// Places an order of a customer, who is given by warehouse, district and number.
    pub fn run(
        &self,
        sql: &mut Sql,
        (w, d, c): (u32, u32, u32),
        lines: &[Line],
    ) -> Result<Ended, SqlError> {
        let _tax: String = sql.row(&self.warehouse, (w,))?;
        let (order, _tax): (u32, String) = sql.row(&self.district, (w, d))?;
        sql.change(&self.next_order, (w, d))?;
        let _discount: (String, String, String) = sql.row(&self.customer, (w, d, c))?;
        let local = lines.iter().all(|line| line.supplier == w);
        sql.change(&self.order, (order, d, w, c, lines.len(), local))?;
        sql.change(&self.open_order, (order, d, w))?;
        for (number, line) in (1u32..).zip(lines) {
            let found: Vec<(u32, String, String)> = sql.rows(&self.item, (line.item,))?;
            let Some((price_cents, ..)) = found.first() else {
                return Ok(Ended::RolledBack);
            };
            let stock = (d, line.supplier, line.item);
            let (quantity, _, info): (u32, String, String) = sql.row(&self.stock, stock)?;
            let rest = rest(quantity, line.quantity);
            let remote = line.supplier != w;
            let taken = (rest, line.quantity, remote, line.supplier, line.item);
            sql.change(&self.take, taken)?;
            let amount = Cents(price_cents * line.quantity).to_string();
            let row = (
                order,
                d,
                w,
                number,
                line.item,
                line.supplier,
                line.quantity,
                amount,
                info,
            );
            sql.change(&self.line, row)?;
        }
        Ok(Ended::Committed)
    }
}

/// The remaining stock. It is refilled if fewer than ten pieces would remain.
fn rest(quantity: u32, wanted: u32) -> u32 {
    if quantity >= wanted + 10 {
        quantity - wanted
    } else {
        quantity + 91 - wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stock_is_filled_up_below_ten() {
        assert_eq!(rest(20, 10), 10);
        assert_eq!(rest(19, 10), 100);
        assert_eq!(rest(10, 1), 100);
    }
}
