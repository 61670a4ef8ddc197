//! Payment (clause 2.5): a customer pays a warehouse and one of its districts.

use trireme_testbed::sql::Prepared;
use trireme_testbed::{Sql, SqlError};

use super::Ended;
use super::customers::Customers;
use crate::tpcc::input::Customer;
use crate::tpcc::rows::Cents;

/// The longest `c_data`, in characters.
const DATA: usize = 500;

/// The parts of a name and address.
type Address = (String, String, String, String, String, String);

/// Credit, the three parts of the name, the five of the address, phone, credit limit, balance.
type CustomerRow = (
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
);

pub struct Payment {
    customers: Customers,
    pay_warehouse: Prepared,
    warehouse: Prepared,
    pay_district: Prepared,
    district: Prepared,
    customer: Prepared,
    data: Prepared,
    charge: Prepared,
    charge_bad: Prepared,
    history: Prepared,
}

impl Payment {
    pub fn prepare(sql: &mut Sql) -> Result<Self, SqlError> {
        Ok(Self {
            customers: Customers::prepare(sql)?,
            pay_warehouse: sql.prepare("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?")?,
            warehouse: sql.prepare(
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?",
            )?,
            pay_district: sql
                .prepare("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?")?,
            district: sql.prepare(
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
                 WHERE d_w_id = ? AND d_id = ?",
            )?,
            customer: sql.prepare(
                "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
                 c_phone, c_credit_lim, c_balance FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
            )?,
            data: sql.prepare(
                "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            charge: sql.prepare(
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            charge_bad: sql.prepare(
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            history: sql.prepare(
                "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
            )?,
        })
    }

    /// The customer pays `cents` to the district and its warehouse (warehouse, district).
    pub fn run(
        &self,
        sql: &mut Sql,
        (w, d): (u32, u32),
        customer: &Customer,
        cents: u32,
    ) -> Result<Ended, SqlError> {
        let amount = Cents(cents).to_string();
        sql.change(&self.pay_warehouse, (&amount, w))?;
        let warehouse: Address = sql.row(&self.warehouse, (w,))?;
        sql.change(&self.pay_district, (&amount, w, d))?;
        let district: Address = sql.row(&self.district, (w, d))?;
        let c = self.customers.number(sql, customer)?;
        let (cw, cd) = (customer.warehouse, customer.district);
        let found: CustomerRow = sql.row(&self.customer, (cw, cd, c))?;
        let (credit, ..) = found;
        if credit == "BC" {
            let old: String = sql.row(&self.data, (cw, cd, c))?;
            let mut data = format!("{c} {cd} {cw} {d} {w} {amount} | {old}");
            // The text has only characters of one byte: text of the load, and digits.
            data.truncate(DATA);
            sql.change(&self.charge_bad, (&amount, &amount, data, cw, cd, c))?;
        } else {
            sql.change(&self.charge, (&amount, &amount, cw, cd, c))?;
        }
        let text = format!("{}    {}", warehouse.0, district.0);
        sql.change(&self.history, (c, cd, cw, d, w, &amount, text))?;
        Ok(Ended::Committed)
    }
}
