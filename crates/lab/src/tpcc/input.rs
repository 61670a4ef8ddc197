//! Draws the input of the terminals: the mix of the five transaction types, and the input of each. Clauses 2.4.1 to
//! 2.8.1 and 5.2.3.

use super::random::{Phase, Random};
use super::scale::{DISTRICTS, Scale};

/// The five types of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Places an order.
    NewOrder,
    /// Takes a payment.
    Payment,
    /// Shows a customer's last order.
    OrderStatus,
    /// Delivers the oldest order of each district of a warehouse.
    Delivery,
    /// Counts items that run short.
    StockLevel,
}

impl Kind {
    /// All types, in the order of [`index`](Self::index).
    pub const ALL: [Self; 5] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    /// The index in arrays by type.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new_order",
            Self::Payment => "payment",
            Self::OrderStatus => "order_status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock_level",
        }
    }

    /// The share of all transactions, in percent.
    fn share(self) -> u32 {
        match self {
            Self::NewOrder => 45,
            Self::Payment => 43,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 4,
        }
    }

    fn draw(random: &mut Random) -> Self {
        let mut left = random.uniform(1, 100);
        for kind in Self::ALL {
            if left <= kind.share() {
                return kind;
            }
            left -= kind.share();
        }
        // The shares add up to 100.
        Self::NewOrder
    }
}

/// The way in which a terminal names a customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// By the number.
    Number(u32),
    /// By the last name: the middle one of the customers with this name.
    LastName(String),
}

/// A customer of a district.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    /// The customer's warehouse.
    pub warehouse: u32,
    /// The customer's district.
    pub district: u32,
    /// The number or the last name.
    pub who: Who,
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The item. If no item has this number, the transaction must roll back.
    pub item: u32,
    /// The warehouse that supplies the item.
    pub supplier: u32,
    /// The number of pieces.
    pub quantity: u32,
}

/// The input of a transaction. A transaction that met a conflict is retried with the same input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Places an order.
    NewOrder {
        /// The home warehouse.
        warehouse: u32,
        /// The district.
        district: u32,
        /// The customer's number.
        customer: u32,
        /// The lines.
        lines: Vec<Line>,
    },
    /// Takes a payment.
    Payment {
        /// The warehouse that is paid.
        warehouse: u32,
        /// The district that is paid.
        district: u32,
        /// The paying customer.
        customer: Customer,
        /// The sum, in hundredths.
        cents: u32,
    },
    /// Shows the last order.
    OrderStatus(Customer),
    /// Delivers the oldest orders.
    Delivery {
        /// The warehouse.
        warehouse: u32,
        /// The carrier's number.
        carrier: u32,
    },
    /// Counts the items that run short.
    StockLevel {
        /// The warehouse.
        warehouse: u32,
        /// The district.
        district: u32,
        /// The number of pieces below which an item runs short.
        threshold: u32,
    },
}

impl Input {
    /// Draws a transaction of the mix. Its warehouse is any one, because a connection serves the terminals of all
    /// warehouses.
    pub fn draw(random: &mut Random, scale: Scale) -> Self {
        let warehouse = random.uniform(1, scale.warehouses());
        let district = random.uniform(1, DISTRICTS);
        match Kind::draw(random) {
            Kind::NewOrder => Self::NewOrder {
                warehouse,
                district,
                customer: random.customer(scale.customers()),
                lines: lines(random, scale, warehouse),
            },
            Kind::Payment => {
                let (w, d) = match random.chance(15) && scale.warehouses() > 1 {
                    true => (
                        other(random, scale, warehouse),
                        random.uniform(1, DISTRICTS),
                    ),
                    false => (warehouse, district),
                };
                Self::Payment {
                    warehouse,
                    district,
                    customer: customer(random, scale, (w, d)),
                    cents: random.uniform(100, 500_000),
                }
            }
            Kind::OrderStatus => Self::OrderStatus(customer(random, scale, (warehouse, district))),
            Kind::Delivery => Self::Delivery {
                warehouse,
                carrier: random.uniform(1, 10),
            },
            Kind::StockLevel => Self::StockLevel {
                warehouse,
                district,
                threshold: random.uniform(10, 20),
            },
        }
    }

    /// The type of the transaction.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NewOrder { .. } => Kind::NewOrder,
            Self::Payment { .. } => Kind::Payment,
            Self::OrderStatus(_) => Kind::OrderStatus,
            Self::Delivery { .. } => Kind::Delivery,
            Self::StockLevel { .. } => Kind::StockLevel,
        }
    }
}

/// Draws five to fifteen lines; 1 % of them come from another warehouse. In 1 % of all orders the last item does not
/// exist.
fn lines(random: &mut Random, scale: Scale, home: u32) -> Vec<Line> {
    let mut lines: Vec<Line> = (0..random.uniform(5, 15))
        .map(|_| Line {
            item: random.item(scale.items()),
            supplier: match random.chance(1) && scale.warehouses() > 1 {
                true => other(random, scale, home),
                false => home,
            },
            quantity: random.uniform(1, 10),
        })
        .collect();
    if random.chance(1) {
        if let Some(last) = lines.last_mut() {
            last.item = scale.items() + 1;
        }
    }
    lines
}

/// Draws a customer; 60 % are named by last name.
fn customer(random: &mut Random, scale: Scale, (warehouse, district): (u32, u32)) -> Customer {
    let who = match random.chance(60) {
        true => Who::LastName(random.last_name(Phase::Run, scale.largest_name())),
        false => Who::Number(random.customer(scale.customers())),
    };
    Customer {
        warehouse,
        district,
        who,
    }
}

/// Draws another warehouse than `home`. There must be at least two.
fn other(random: &mut Random, scale: Scale, home: u32) -> u32 {
    let drawn = random.uniform(1, scale.warehouses() - 1);
    if drawn < home { drawn } else { drawn + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 100_000;

    fn draw(scale: Scale) -> Vec<Input> {
        let mut random = Random::new(5);
        (0..N).map(|_| Input::draw(&mut random, scale)).collect()
    }

    /// The share of the picked ones, in percent.
    fn percent<T>(all: &[T], pick: impl Fn(&T) -> bool) -> f64 {
        100.0 * all.iter().filter(|x| pick(x)).count() as f64 / all.len() as f64
    }

    #[test]
    fn the_mix_is_the_standards() {
        assert_eq!(Kind::ALL.map(Kind::share).iter().sum::<u32>(), 100);
        let all = draw(Scale::standard(3));
        for kind in Kind::ALL {
            let share = percent(&all, |input| input.kind() == kind);
            assert!((share - f64::from(kind.share())).abs() < 0.5, "{share}");
            assert_eq!(Kind::ALL[kind.index()], kind);
        }
    }

    #[test]
    fn one_order_in_a_hundred_rolls_back_and_one_line_is_remote() {
        let all = draw(Scale::standard(3));
        let orders: Vec<(u32, &Vec<Line>)> = all
            .iter()
            .filter_map(|input| match input {
                Input::NewOrder {
                    warehouse, lines, ..
                } => Some((*warehouse, lines)),
                _ => None,
            })
            .collect();
        let bad = percent(&orders, |(_, lines)| lines.iter().any(|l| l.item > 100_000));
        assert!((bad - 1.0).abs() < 0.3, "{bad}");
        let remote: Vec<bool> = orders
            .iter()
            .flat_map(|(home, lines)| lines.iter().map(|line| line.supplier != *home))
            .collect();
        let share = percent(&remote, |remote| *remote);
        assert!((share - 1.0).abs() < 0.2, "{share}");
    }

    #[test]
    fn payments_are_remote_and_by_name_as_often_as_they_shall() {
        let all = draw(Scale::standard(3));
        let payments: Vec<(u32, &Customer)> = all
            .iter()
            .filter_map(|input| match input {
                Input::Payment {
                    warehouse,
                    customer,
                    ..
                } => Some((*warehouse, customer)),
                _ => None,
            })
            .collect();
        let remote = percent(&payments, |(home, c)| c.warehouse != *home);
        assert!((remote - 15.0).abs() < 1.0, "{remote}");
        let by_name = percent(&payments, |(_, c)| matches!(c.who, Who::LastName(_)));
        assert!((by_name - 60.0).abs() < 1.0, "{by_name}");
    }

    #[test]
    fn one_warehouse_has_no_other() {
        for input in draw(Scale::standard(1)) {
            match input {
                Input::Payment { customer, .. } => assert_eq!(customer.warehouse, 1),
                Input::NewOrder { lines, .. } => {
                    assert!(lines.iter().all(|line| line.supplier == 1));
                }
                _ => {}
            }
        }
    }
}
