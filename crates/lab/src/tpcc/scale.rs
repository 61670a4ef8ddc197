//! The numbers of rows after the load, by clause 1.2 of the standard. They grow with the number of warehouses.

/// The districts of each warehouse.
pub const DISTRICTS: u32 = 10;

/// The numbers of rows in the tables after the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    warehouses: u32,
    items: u32,
    customers: u32,
}

impl Scale {
    /// The standard's numbers for `warehouses` warehouses.
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

    /// The number of warehouses.
    pub fn warehouses(self) -> u32 {
        self.warehouses
    }

    /// The number of items, and of rows of `stock` for each warehouse.
    pub fn items(self) -> u32 {
        self.items
    }

    /// The customers of each district. Each has placed one order.
    pub fn customers(self) -> u32 {
        self.customers
    }

    /// The first order of each district that has not been delivered.
    pub fn first_open_order(self) -> u32 {
        self.customers * 7 / 10 + 1
    }

    /// The largest number that a customer's last name is made of. Every district has a customer for each number up to
    /// it.
    pub fn largest_name(self) -> u32 {
        self.customers / 3 - 1
    }

    /// The rows of `orders`, and of `history`, after the load.
    pub fn orders(self) -> u64 {
        u64::from(self.warehouses) * u64::from(DISTRICTS) * u64::from(self.customers)
    }

    /// Roughly the size of the loaded data in a server's data directory, in MiB.
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
