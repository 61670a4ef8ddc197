//! The nine tables with their indexes (clause 1.3), without foreign keys.
//!
//! `history` has a primary key, which the standard does not have: replication under wsrep needs one.

/// The database.
pub const DATABASE: &str = "tpcc";

/// Updates the optimizer's statistics on one node. Without them some joins take minutes.
pub const ANALYZE: &str = "ANALYZE LOCAL TABLE tpcc.warehouse, tpcc.district, tpcc.customer, tpcc.history, \
                           tpcc.new_order, tpcc.orders, tpcc.order_line, tpcc.item, tpcc.stock";

/// Drops and creates the database and its tables.
pub const STATEMENTS: [&str; 11] = [
    "DROP DATABASE IF EXISTS tpcc",
    "CREATE DATABASE tpcc CHARACTER SET latin1",
    "CREATE TABLE tpcc.warehouse (
        w_id INT NOT NULL,
        w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20), w_city VARCHAR(20),
        w_state CHAR(2), w_zip CHAR(9),
        w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2),
        PRIMARY KEY (w_id)) ENGINE=InnoDB",
    "CREATE TABLE tpcc.district (
        d_id TINYINT NOT NULL, d_w_id INT NOT NULL,
        d_name VARCHAR(10), d_street_1 VARCHAR(20), d_street_2 VARCHAR(20), d_city VARCHAR(20),
        d_state CHAR(2), d_zip CHAR(9),
        d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT,
        PRIMARY KEY (d_w_id, d_id)) ENGINE=InnoDB",
    "CREATE TABLE tpcc.customer (
        c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id INT NOT NULL,
        c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16),
        c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state CHAR(2), c_zip CHAR(9),
        c_phone CHAR(16), c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2),
        c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2),
        c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500),
        PRIMARY KEY (c_w_id, c_d_id, c_id),
        KEY by_name (c_w_id, c_d_id, c_last, c_first)) ENGINE=InnoDB",
    "CREATE TABLE tpcc.history (
        h_id BIGINT NOT NULL AUTO_INCREMENT,
        h_c_id INT, h_c_d_id TINYINT, h_c_w_id INT, h_d_id TINYINT, h_w_id INT,
        h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24),
        PRIMARY KEY (h_id)) ENGINE=InnoDB",
    "CREATE TABLE tpcc.new_order (
        no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id INT NOT NULL,
        PRIMARY KEY (no_w_id, no_d_id, no_o_id)) ENGINE=InnoDB",
    "CREATE TABLE tpcc.orders (
        o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id INT NOT NULL, o_c_id INT,
        o_entry_d DATETIME, o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT,
        PRIMARY KEY (o_w_id, o_d_id, o_id),
        KEY by_customer (o_w_id, o_d_id, o_c_id, o_id)) ENGINE=InnoDB",
    "CREATE TABLE tpcc.order_line (
        ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id INT NOT NULL, ol_number TINYINT NOT NULL,
        ol_i_id INT, ol_supply_w_id INT, ol_delivery_d DATETIME, ol_quantity TINYINT,
        ol_amount DECIMAL(6,2), ol_dist_info CHAR(24),
        PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)) ENGINE=InnoDB",
    "CREATE TABLE tpcc.item (
        i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50),
        PRIMARY KEY (i_id)) ENGINE=InnoDB",
    "CREATE TABLE tpcc.stock (
        s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity SMALLINT,
        s_dist_01 CHAR(24), s_dist_02 CHAR(24), s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24),
        s_dist_06 CHAR(24), s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24), s_dist_10 CHAR(24),
        s_ytd DECIMAL(8,0), s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50),
        PRIMARY KEY (s_w_id, s_i_id)) ENGINE=InnoDB",
];
