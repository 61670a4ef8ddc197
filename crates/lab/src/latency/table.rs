//! The table of the parts that need no sysbench: sysbench's own table, filled by the server itself.

use std::path::PathBuf;

use trireme_testbed::Server;

use super::error::LatencyError;
use super::site::ROWS;
use crate::work_dir;

/// The statements that make the table.
fn statements() -> [String; 3] {
    [
        "CREATE DATABASE sbtest".to_string(),
        "CREATE TABLE sbtest.sbtest1 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, \
         c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))"
            .to_string(),
        format!(
            "INSERT INTO sbtest.sbtest1 SELECT seq, 1 + FLOOR({ROWS} * RAND(seq)), RPAD(SHA2(seq, 512), 119, '0'), \
             RPAD(SHA1(seq), 59, '0') FROM sbtest.seq_1_to_{ROWS}"
        ),
    ]
}

/// Returns a data directory of `server` with the table.
pub fn template(server: Server) -> Result<PathBuf, LatencyError> {
    let announcement = format!("preparing a table of {ROWS} rows");
    work_dir::template(&format!("rows-{ROWS}"), server, &announcement, |cluster| {
        cluster.start()?;
        let mut sql = cluster.sql(0)?;
        for statement in statements() {
            sql.exec(&statement)?;
        }
        drop(sql);
        Ok(cluster.stop()?)
    })
}
