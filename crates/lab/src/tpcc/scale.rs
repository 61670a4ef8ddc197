//! How many rows the tables hold after the load: clause 1.2 of the standard, which grows with the number of warehouses.

/// Districts of each warehouse.
pub const DISTRICTS: u32 = 10;

/// Cardinalities of the tables after the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    warehouses: u32,
    items: u32,
    customers: u32,
}

impl Scale {
    /// The standard's cardinalities for `warehouses` warehouses.
    pub fn standard(warehouses: u32) -> Self {
        Self {
            warehouses,
            items: 100_000,
            customers: 3000,
        }
    }

    /// Small tables for tests: 100 items, 30 customers in each district.
    pub fn small(warehouses: u32) -> Self {
        Self {
            warehouses,
            items: 100,
            customers: 30,
        }
    }

    /// Warehouses.
    pub fn warehouses(self) -> u32 {
        self.warehouses
    }

    /// Items, and rows of `stock` for each warehouse.
    pub fn items(self) -> u32 {
        self.items
    }

    /// Customers of each district. Each has placed one order.
    pub fn customers(self) -> u32 {
        self.customers
    }

    /// The first order of each district that has not been delivered.
    pub fn first_open_order(self) -> u32 {
        self.customers * 7 / 10 + 1
    }

    /// The largest number that a customer's last name is made of. Each number up to it has a customer in every district.
    pub fn largest_name(self) -> u32 {
        self.customers / 3 - 1
    }

    /// Rows of `orders`, and of `history`, after the load.
    pub fn orders(self) -> u64 {
        u64::from(self.warehouses) * u64::from(DISTRICTS) * u64::from(self.customers)
    }

    /// The size of the loaded data in a server's data directory, in MiB, roughly.
    pub fn data_mib(self) -> u64 {
        120 * u64::from(self.warehouses) + 40
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_numbers() {
        let scale = Scale::standard(2);
        assert_eq!(scale.first_open_order(), 2101);
        assert_eq!(scale.largest_name(), 999);
        assert_eq!(scale.orders(), 60_000);
    }
}
