//! Prepared statements of a connection: the server parses them once, and executes them with values.

use mysql::prelude::Queryable;

use super::{Sql, SqlError};

pub use mysql::Params;
pub use mysql::prelude::FromRow;

/// A statement that one connection has prepared. No other connection can execute it.
#[derive(Debug, Clone)]
pub struct Prepared {
    statement: mysql::Statement,
    text: &'static str,
}

impl Sql {
    /// Prepares a statement on the server; each `?` is a parameter.
    pub fn prepare(&mut self, text: &'static str) -> Result<Prepared, SqlError> {
        let statement = self.conn.prep(text)?;
        Ok(Prepared { statement, text })
    }

    /// Executes a statement that returns no rows; returns the number of rows that it changed.
    pub fn change(
        &mut self,
        prepared: &Prepared,
        parameters: impl Into<Params>,
    ) -> Result<u64, SqlError> {
        self.conn.exec_drop(&prepared.statement, parameters)?;
        Ok(self.conn.affected_rows())
    }

    /// Executes a query and returns its rows. It is an error if a row does not have the types of `T`.
    pub fn rows<T: FromRow>(
        &mut self,
        prepared: &Prepared,
        parameters: impl Into<Params>,
    ) -> Result<Vec<T>, SqlError> {
        let rows = self.conn.exec_opt(&prepared.statement, parameters)?;
        let rows: Result<Vec<T>, _> = rows.into_iter().collect();
        rows.map_err(|_| SqlError::Answer(prepared.text.to_string()))
    }

    /// The only row of a query.
    pub fn row<T: FromRow>(
        &mut self,
        prepared: &Prepared,
        parameters: impl Into<Params>,
    ) -> Result<T, SqlError> {
        match <[T; 1]>::try_from(self.rows(prepared, parameters)?) {
            Ok([row]) => Ok(row),
            Err(_) => Err(SqlError::Answer(prepared.text.to_string())),
        }
    }
}
