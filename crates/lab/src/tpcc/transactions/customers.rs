//! Finds the customer that a terminal names.

use trireme_testbed::sql::Prepared;
use trireme_testbed::{Sql, SqlError};

use crate::tpcc::input::{Customer, Who};

/// The statement that finds customers by last name.
pub struct Customers {
    by_name: Prepared,
}

impl Customers {
    pub fn prepare(sql: &mut Sql) -> Result<Self, SqlError> {
        let by_name = sql.prepare(
            "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
        )?;
        Ok(Self { by_name })
    }

    /// Returns the customer's number.
    pub fn number(&self, sql: &mut Sql, customer: &Customer) -> Result<u32, SqlError> {
        let name = match &customer.who {
            Who::Number(number) => return Ok(*number),
            Who::LastName(name) => name,
        };
        let key = (customer.warehouse, customer.district, name);
        let all: Vec<u32> = sql.rows(&self.by_name, key)?;
        // The middle one, rounded up when counted from 1.
        let middle = all.get(all.len().saturating_sub(1) / 2).copied();
        middle.ok_or_else(|| SqlError::Answer(format!("customers called {name}")))
    }
}
