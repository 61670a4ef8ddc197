//! The rows of the tables after the load (clause 4.3.3), as `INSERT` statements of many rows.
//!
//! The load is divided into [`Unit`]s. Each has its own random numbers, so that the tables hold the same rows for any
//! number of loading connections.

use std::fmt::{self, Write};

use super::random::{Phase, Random, last_name};
use super::scale::{DISTRICTS, Scale};

/// The length from which a statement is sent, in bytes. The write-set of one statement stays below 1 MiB.
const STATEMENT_BYTES: usize = 200 << 10;

/// A part of the load that one connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// All items.
    Items,
    /// A warehouse and its districts.
    Warehouse(u32),
    /// The stock of a warehouse.
    Stock(u32),
    /// The customers of a district of a warehouse, with their payments.
    Customers(u32, u32),
    /// The orders of a district of a warehouse, with their lines.
    Orders(u32, u32),
}

/// All units, the largest first, so that connections end at about the same time.
pub fn units(scale: Scale) -> Vec<Unit> {
    let warehouses = || 1..=scale.warehouses();
    let districts = |unit: fn(u32, u32) -> Unit| {
        warehouses().flat_map(move |w| (1..=DISTRICTS).map(move |d| unit(w, d)))
    };
    let mut all: Vec<Unit> = warehouses().map(Unit::Stock).collect();
    all.push(Unit::Items);
    all.extend(districts(Unit::Orders));
    all.extend(districts(Unit::Customers));
    all.extend(warehouses().map(Unit::Warehouse));
    all
}

impl Unit {
    /// Passes the unit's statements to `send`, until that fails.
    pub fn write<E>(
        self,
        scale: Scale,
        send: &mut dyn FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut random = Random::new(self.seed());
        match self {
            Self::Items => items(scale, &mut random, send),
            Self::Warehouse(w) => warehouse(w, scale, &mut random, send),
            Self::Stock(w) => stock(w, scale, &mut random, send),
            Self::Customers(w, d) => customers((w, d), scale, &mut random, send),
            Self::Orders(w, d) => orders((w, d), scale, &mut random, send),
        }
    }

    fn seed(self) -> u64 {
        let (kind, w, d) = match self {
            Self::Items => (1, 0, 0),
            Self::Warehouse(w) => (2, w, 0),
            Self::Stock(w) => (3, w, 0),
            Self::Customers(w, d) => (4, w, d),
            Self::Orders(w, d) => (5, w, d),
        };
        kind << 48 | u64::from(w) << 16 | u64::from(d)
    }
}

/// Rows of one table, gathered into statements.
struct Insert {
    table: &'static str,
    text: String,
}

impl Insert {
    fn into(table: &'static str) -> Self {
        Self {
            table,
            text: String::new(),
        }
    }

    fn row<E>(
        &mut self,
        values: fmt::Arguments,
        send: &mut dyn FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        // Writing into a String cannot fail.
        let _ = match self.text.is_empty() {
            true => write!(
                self.text,
                "INSERT INTO tpcc.{} VALUES ({values})",
                self.table
            ),
            false => write!(self.text, ",({values})"),
        };
        match self.text.len() >= STATEMENT_BYTES {
            true => self.end(send),
            false => Ok(()),
        }
    }

    fn end<E>(&mut self, send: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        if self.text.is_empty() {
            return Ok(());
        }
        send(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

fn items<E>(
    scale: Scale,
    random: &mut Random,
    send: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut insert = Insert::into("item");
    for i in 1..=scale.items() {
        let (image, name) = (random.uniform(1, 10_000), random.text(14, 24));
        let (price, data) = (Cents(random.uniform(100, 10_000)), data(random));
        insert.row(format_args!("{i},{image},'{name}',{price},'{data}'"), send)?;
    }
    insert.end(send)
}

fn warehouse<E>(
    w: u32,
    scale: Scale,
    random: &mut Random,
    send: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut insert = Insert::into("warehouse");
    let (name, address, tax) = (random.text(6, 10), address(random), tax(random));
    // Each customer has paid 10.00, so that the balances add up.
    let district_paid = scale.customers() * 1000;
    let paid = Cents(district_paid * DISTRICTS);
    insert.row(
        format_args!("{w},'{name}',{address},0.{tax:04},{paid}"),
        send,
    )?;
    insert.end(send)?;
    let mut insert = Insert::into("district");
    for d in 1..=DISTRICTS {
        let (name, address) = (random.text(6, 10), self::address(random));
        let (tax, paid) = (self::tax(random), Cents(district_paid));
        let next = scale.customers() + 1;
        insert.row(
            format_args!("{d},{w},'{name}',{address},0.{tax:04},{paid},{next}"),
            send,
        )?;
    }
    insert.end(send)
}

fn stock<E>(
    w: u32,
    scale: Scale,
    random: &mut Random,
    send: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut insert = Insert::into("stock");
    for i in 1..=scale.items() {
        let quantity = random.uniform(10, 100);
        let districts: Vec<String> = (0..DISTRICTS).map(|_| random.text(24, 24)).collect();
        let (districts, data) = (districts.join("','"), data(random));
        insert.row(
            format_args!("{i},{w},{quantity},'{districts}',0,0,0,'{data}'"),
            send,
        )?;
    }
    insert.end(send)
}

fn customers<E>(
    (w, d): (u32, u32),
    scale: Scale,
    random: &mut Random,
    send: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut customer = Insert::into("customer");
    let mut history = Insert::into(
        "history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)",
    );
    for c in 1..=scale.customers() {
        let last = match c - 1 {
            number if number <= scale.largest_name() => last_name(number),
            _ => random.last_name(Phase::Load, scale.largest_name()),
        };
        let (first, address) = (random.text(8, 16), address(random));
        let phone = random.digits(16);
        let credit = if random.chance(10) { "BC" } else { "GC" };
        let (discount, data) = (random.uniform(0, 5000), random.text(300, 500));
        customer.row(
            format_args!(
                "{c},{d},{w},'{first}','OE','{last}',{address},'{phone}',NOW(),'{credit}',50000.00,\
             0.{discount:04},-10.00,10.00,1,0,'{data}'"
            ),
            send,
        )?;
        let text = random.text(12, 24);
        history.row(
            format_args!("{c},{d},{w},{d},{w},NOW(),10.00,'{text}'"),
            send,
        )?;
    }
    customer.end(send)?;
    history.end(send)
}

fn orders<E>(
    (w, d): (u32, u32),
    scale: Scale,
    random: &mut Random,
    send: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut order = Insert::into("orders");
    let mut line = Insert::into("order_line");
    let mut open = Insert::into("new_order");
    for (o, c) in (1..).zip(random.permutation(scale.customers())) {
        let delivered = o < scale.first_open_order();
        let lines = random.uniform(5, 15);
        let carrier = match delivered {
            true => random.uniform(1, 10).to_string(),
            false => "NULL".to_string(),
        };
        order.row(
            format_args!("{o},{d},{w},{c},NOW(),{carrier},{lines},1"),
            send,
        )?;
        for number in 1..=lines {
            let item = random.uniform(1, scale.items());
            let (date, amount) = match delivered {
                true => ("NOW()", Cents(0)),
                false => ("NULL", Cents(random.uniform(1, 999_999))),
            };
            let text = random.text(24, 24);
            line.row(
                format_args!("{o},{d},{w},{number},{item},{w},{date},5,{amount},'{text}'"),
                send,
            )?;
        }
        if !delivered {
            open.row(format_args!("{o},{d},{w}"), send)?;
        }
    }
    order.end(send)?;
    line.end(send)?;
    open.end(send)
}

/// A sum of money in hundredths, which is written as a decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cents(pub u32);

impl fmt::Display for Cents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// A tax of 0 to 20 %, in 1/10,000.
fn tax(random: &mut Random) -> u32 {
    random.uniform(0, 2000)
}

/// Two streets, city, state and zip code, quoted.
fn address(random: &mut Random) -> String {
    let streets = [0; 3].map(|_| random.text(10, 20));
    let state = random.text(2, 2);
    let zip = random.digits(4) + "11111";
    format!("'{}','{state}','{zip}'", streets.join("','"))
}

/// The data of an item or of its stock. Every tenth one contains the word ORIGINAL.
fn data(random: &mut Random) -> String {
    let mut text = random.text(26, 50);
    if random.chance(10) {
        let at = random.uniform(0, text.len() as u32 - 8) as usize;
        text.replace_range(at..at + 8, "ORIGINAL");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// The rows that the load puts into each table, by the text that begins its statements.
    fn rows(scale: Scale, table: &str) -> Vec<String> {
        let head = format!("INSERT INTO tpcc.{table} ");
        let mut found = Vec::new();
        for unit in units(scale) {
            let mut keep = |text: &str| -> Result<(), Infallible> {
                if let Some(rest) = text.strip_prefix(&head) {
                    let rows = rest.split_once("VALUES ").map_or(rest, |(_, rows)| rows);
                    found.extend(rows.split("),(").map(str::to_string));
                }
                Ok(())
            };
            let Ok(()) = unit.write(scale, &mut keep);
        }
        found
    }

    #[test]
    fn the_tables_have_the_standards_cardinalities() {
        let scale = Scale::standard(1);
        for (table, n) in [
            ("warehouse", 1),
            ("district", 10),
            ("customer", 30_000),
            ("history", 30_000),
            ("new_order", 9000),
            ("orders", 30_000),
            ("item", 100_000),
            ("stock", 100_000),
        ] {
            assert_eq!(rows(scale, table).len(), n, "{table}");
        }
        // Five to fifteen lines for each order.
        let lines = rows(scale, "order_line").len();
        assert!((295_000..305_000).contains(&lines), "{lines}");
    }

    #[test]
    fn a_unit_gives_the_same_rows_each_time() {
        let scale = Scale::small(2);
        assert_eq!(rows(scale, "stock"), rows(scale, "stock"));
        assert_eq!(rows(scale, "order_line"), rows(scale, "order_line"));
    }

    #[test]
    fn a_statement_is_sent_before_it_is_too_long() {
        let mut longest = 0;
        let mut measure = |text: &str| -> Result<(), Infallible> {
            longest = longest.max(text.len());
            Ok(())
        };
        let Ok(()) = Unit::Customers(1, 1).write(Scale::standard(1), &mut measure);
        assert!((STATEMENT_BYTES..STATEMENT_BYTES + 1000).contains(&longest));
    }

    #[test]
    fn money_has_two_digits_after_the_point() {
        assert_eq!(Cents(5).to_string(), "0.05");
        assert_eq!(Cents(123_456).to_string(), "1234.56");
    }
}
