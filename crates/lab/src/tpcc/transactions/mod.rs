//! The five transactions of clause 2, as prepared statements on one connection.
//!
//! A transaction that fails stays open on the connection. [`Transactions::roll_back`] ends it, and then the same input can
//! be retried.

mod customers;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use std::path::Path;
use std::time::Duration;

use trireme_testbed::{Sql, SqlError};

use super::input::Input;
use delivery::Delivery;
use new_order::NewOrder;
use order_status::OrderStatus;
use payment::Payment;
use stock_level::StockLevel;

/// The end of a transaction that met no conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was committed.
    Committed,
    /// It was rolled back because of its input: an item does not exist.
    RolledBack,
}

/// A client's connection.
pub struct Session {
    sql: Sql,
    new_order: NewOrder,
    payment: Payment,
    order_status: OrderStatus,
    delivery: Delivery,
    stock_level: StockLevel,
}

impl Session {
    /// Connects and prepares all statements. `isolation`: a level as in `SET TRANSACTION`. Each statement fails after
    /// `timeout`.
    pub fn open(socket: &Path, isolation: &str, timeout: Duration) -> Result<Self, SqlError> {
        let mut sql = Sql::connect_socket(socket, timeout)?;
        sql.exec("USE tpcc")?;
        sql.exec(&format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"
        ))?;
        // This saves a statement at the beginning of each transaction.
        sql.exec("SET SESSION autocommit=0")?;
        Ok(Self {
            new_order: NewOrder::prepare(&mut sql)?,
            payment: Payment::prepare(&mut sql)?,
            order_status: OrderStatus::prepare(&mut sql)?,
            delivery: Delivery::prepare(&mut sql)?,
            stock_level: StockLevel::prepare(&mut sql)?,
            sql,
        })
    }
}

/// Runs transactions; a test has one without a server.
pub trait Transactions {
    /// Runs a transaction to its end.
    fn run(&mut self, input: &Input) -> Result<Ended, SqlError>;

    /// Ends a transaction that failed.
    fn roll_back(&mut self) -> Result<(), SqlError>;
}

impl Transactions for Session {
    fn run(&mut self, input: &Input) -> Result<Ended, SqlError> {
        let sql = &mut self.sql;
        let ended = match input {
            Input::NewOrder {
                warehouse,
                district,
                customer,
                lines,
            } => self
                .new_order
                .run(sql, (*warehouse, *district, *customer), lines)?,
            Input::Payment {
                warehouse,
                district,
                customer,
                cents,
            } => self
                .payment
                .run(sql, (*warehouse, *district), customer, *cents)?,
            Input::OrderStatus(customer) => self.order_status.run(sql, customer)?,
            Input::Delivery { warehouse, carrier } => {
                self.delivery.run(sql, *warehouse, *carrier)?
            }
            Input::StockLevel {
                warehouse,
                district,
                threshold,
            } => self
                .stock_level
                .run(sql, (*warehouse, *district), *threshold)?,
        };
        match ended {
            Ended::Committed => self.sql.exec("COMMIT")?,
            Ended::RolledBack => self.sql.exec("ROLLBACK")?,
        };
        Ok(ended)
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.sql.exec("ROLLBACK").map(drop)
    }
}
