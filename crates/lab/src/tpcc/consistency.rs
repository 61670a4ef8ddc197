//! The standard's consistency conditions (clause 3.3.2), each as a query that counts violations.
//!
//! Condition 11 is left out, because it holds only for the data right after the load.

use std::time::Duration;

use trireme_testbed::{Node, Sql, SqlError};

use super::schema::ANALYZE;
use crate::frame::LabError;

/// The time limit of a query. Only a hanging server needs longer.
const QUERY: Duration = Duration::from_secs(120);

/// A consistency condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The number in clause 3.3.2.
    pub number: u32,
    /// The condition.
    pub text: &'static str,
    /// The query that counts the violations.
    query: &'static str,
}

/// The conditions.
pub const CONDITIONS: [Condition; 11] = [
    Condition {
        number: 1,
        text: "w_ytd of a warehouse is the sum of d_ytd of its districts",
        query: "SELECT COUNT(*) FROM tpcc.warehouse LEFT JOIN \
                (SELECT d_w_id, SUM(d_ytd) AS s FROM tpcc.district GROUP BY d_w_id) d ON d_w_id = w_id \
                WHERE NOT (w_ytd <=> s)",
    },
    Condition {
        number: 2,
        text: "d_next_o_id - 1 is the largest o_id of the district, and the largest no_o_id if there is any",
        query: "SELECT COUNT(*) FROM tpcc.district \
                LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS o FROM tpcc.orders GROUP BY o_w_id, o_d_id) o \
                ON o_w_id = d_w_id AND o_d_id = d_id \
                LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS n FROM tpcc.new_order GROUP BY no_w_id, no_d_id) n \
                ON no_w_id = d_w_id AND no_d_id = d_id \
                WHERE NOT (d_next_o_id - 1 <=> o) OR n <> d_next_o_id - 1",
    },
    Condition {
        number: 3,
        text: "the no_o_id of a district have no gaps",
        query: "SELECT COUNT(*) FROM (SELECT MAX(no_o_id) - MIN(no_o_id) + 1 AS span, COUNT(*) AS n \
                FROM tpcc.new_order GROUP BY no_w_id, no_d_id) x WHERE span <> n",
    },
    Condition {
        number: 4,
        text: "the sum of o_ol_cnt of a district is the number of its order lines",
        query: "SELECT COUNT(*) FROM \
                (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS s FROM tpcc.orders GROUP BY o_w_id, o_d_id) o LEFT JOIN \
                (SELECT ol_w_id, ol_d_id, COUNT(*) AS n FROM tpcc.order_line GROUP BY ol_w_id, ol_d_id) l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE NOT (s <=> n)",
    },
    Condition {
        number: 5,
        text: "an order has no carrier if and only if it is in new_order",
        query: "SELECT COUNT(*) FROM tpcc.orders LEFT JOIN tpcc.new_order \
                ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
                WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    },
    Condition {
        number: 6,
        text: "o_ol_cnt of an order is the number of its lines",
        query: "SELECT COUNT(*) FROM tpcc.orders LEFT JOIN \
                (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS n FROM tpcc.order_line \
                GROUP BY ol_w_id, ol_d_id, ol_o_id) l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE NOT (o_ol_cnt <=> n)",
    },
    Condition {
        number: 7,
        text: "a line has no delivery date if and only if its order has no carrier",
        query: "SELECT COUNT(*) FROM tpcc.order_line LEFT JOIN tpcc.orders \
                ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
                WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    },
    Condition {
        number: 8,
        text: "w_ytd of a warehouse is the sum of its payments",
        query: "SELECT COUNT(*) FROM tpcc.warehouse LEFT JOIN \
                (SELECT h_w_id, SUM(h_amount) AS s FROM tpcc.history GROUP BY h_w_id) h ON h_w_id = w_id \
                WHERE NOT (w_ytd <=> s)",
    },
    Condition {
        number: 9,
        text: "d_ytd of a district is the sum of its payments",
        query: "SELECT COUNT(*) FROM tpcc.district LEFT JOIN \
                (SELECT h_w_id, h_d_id, SUM(h_amount) AS s FROM tpcc.history GROUP BY h_w_id, h_d_id) h \
                ON h_w_id = d_w_id AND h_d_id = d_id WHERE NOT (d_ytd <=> s)",
    },
    Condition {
        number: 10,
        text: "c_balance of a customer is what was delivered less what was paid",
        query: "SELECT COUNT(*) FROM tpcc.customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS due FROM tpcc.orders JOIN tpcc.order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o \
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM tpcc.history \
                GROUP BY h_c_w_id, h_c_d_id, h_c_id) h \
                ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                WHERE c_balance <> COALESCE(due, 0) - COALESCE(paid, 0)",
    },
    Condition {
        number: 12,
        text: "c_balance + c_ytd_payment of a customer is what was delivered",
        query: "SELECT COUNT(*) FROM tpcc.customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS due FROM tpcc.orders JOIN tpcc.order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o \
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                WHERE c_balance + c_ytd_payment <> COALESCE(due, 0)",
    },
];

/// Counts the violations of each condition on a node, in the order of [`CONDITIONS`].
pub fn violations(node: &Node) -> Result<[u64; CONDITIONS.len()], LabError> {
    let failed = |source| LabError::Load {
        node: node.name.clone(),
        source,
    };
    // A server that died after the run is a fault of this run, and not of the machine.
    let mut sql = Sql::connect_socket(&node.socket(), QUERY).map_err(failed)?;
    sql.exec(ANALYZE).map_err(failed)?;
    let mut found = [0; CONDITIONS.len()];
    for (condition, violations) in CONDITIONS.iter().zip(&mut found) {
        *violations = count(&mut sql, condition.query).map_err(failed)?;
    }
    Ok(found)
}

/// Fails with the first violated condition.
pub fn judge(violations: &[u64]) -> Result<(), LabError> {
    match CONDITIONS.iter().zip(violations).find(|(_, n)| **n > 0) {
        None => Ok(()),
        Some((condition, &violations)) => Err(LabError::Inconsistent {
            number: condition.number,
            text: condition.text,
            violations,
        }),
    }
}

fn count(sql: &mut Sql, query: &str) -> Result<u64, SqlError> {
    let value = sql.value(query)?.and_then(|n| n.parse().ok());
    value.ok_or_else(|| SqlError::Answer(query.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_violated_condition_is_named() {
        let mut found = [0; CONDITIONS.len()];
        assert!(judge(&found).is_ok());
        found[2] = 7;
        found[9] = 1;
        let text = judge(&found).unwrap_err().to_string();
        assert!(
            text.starts_with("consistency condition 3 is violated: 7 times"),
            "{text}"
        );
    }

    #[test]
    fn a_server_that_died_before_concerns_one_cell() {
        let node = r#"{"name": "node1", "dir": "/nonexistent", "pid": null, "launched": true,
                       "ports": {"host": "127.0.0.1", "mysql": 1, "group": 2, "sst": 4}}"#;
        let node: Node = serde_json::from_str(node).unwrap();
        let error = violations(&node).unwrap_err();
        assert!(error.concerns_one_cell(), "{error}");
        assert!(error.to_string().starts_with("node1: "), "{error}");
    }

    #[test]
    fn conditions_one_to_four_are_among_them() {
        let numbers: Vec<u32> = CONDITIONS.iter().map(|c| c.number).collect();
        assert!(numbers.starts_with(&[1, 2, 3, 4]));
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
