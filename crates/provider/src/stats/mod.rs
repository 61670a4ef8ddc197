//! Status variables (`SHOW STATUS LIKE 'wsrep_%'`), and how they are handed to the server.

#[cfg(test)]
mod tests;
mod variables;

use std::borrow::Cow;

use trireme_node::one_line;
use trireme_wsrep_abi::{CBlock, StatsVar, VarType, VarValue};

pub use variables::{GroupStats, NodeStats, OwnStats};

enum Value<'a> {
    Int(i64),
    Double(f64),
    Text(Cow<'a, str>),
    /// The variable does not exist now.
    Absent,
}

impl From<&i64> for Value<'_> {
    fn from(value: &i64) -> Self {
        Value::Int(*value)
    }
}

impl From<&u64> for Value<'_> {
    fn from(value: &u64) -> Self {
        Value::Int(i64::try_from(*value).unwrap_or(i64::MAX))
    }
}

impl From<&f64> for Value<'_> {
    fn from(value: &f64) -> Self {
        Value::Double(*value)
    }
}

impl From<&bool> for Value<'_> {
    fn from(value: &bool) -> Self {
        Value::Text(Cow::Borrowed(if *value { "true" } else { "false" }))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    /// Names and addresses of members are among the texts: they are cleaned, and none is cut.
    fn from(value: &'a String) -> Self {
        Value::Text(Cow::Owned(one_line(value, value.len())))
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Self {
        value.as_ref().map_or(Value::Absent, Value::from)
    }
}

/// All statistics of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// The variables that always exist.
    pub node: NodeStats,
    /// The variables that exist only while connected.
    pub group: Option<GroupStats>,
    /// Trireme's own; only while connected.
    pub own: Option<OwnStats>,
}

impl Stats {
    /// Returns the variables for `stats_get`: one malloc'ed block with the array and, behind it, the text values; names
    /// are static. NULL when memory is out. Free it with [`free_vars`].
    pub fn to_vars(&self) -> *mut StatsVar {
        let mut vars = Vec::with_capacity(112);
        self.node.append_to(&mut vars);
        if let Some(group) = &self.group {
            group.append_to(&mut vars);
        }
        if let Some(own) = &self.own {
            own.append_to(&mut vars);
        }
        let array_bytes = (vars.len() + 1) * size_of::<StatsVar>();
        let text_bytes: usize = vars
            .iter()
            .map(|(_, value)| {
                if let Value::Text(text) = value {
                    text.len() + 1
                } else {
                    0
                }
            })
            .sum();
        let Some(mut block) = CBlock::new(array_bytes + text_bytes) else {
            return std::ptr::null_mut();
        };
        let base = block.as_mut_ptr();
        let mut next_text = array_bytes;
        for (i, (name, value)) in vars.iter().enumerate() {
            let (var_type, value) = match value {
                Value::Int(number) => (VarType::INT64, VarValue { int64: *number }),
                Value::Double(number) => (VarType::DOUBLE, VarValue { double: *number }),
                Value::Text(text) => {
                    let start = next_text;
                    next_text += text.len() + 1;
                    // SAFETY: `text_bytes` counted this text and its NUL, which is there since the block is zeroed.
                    let string = unsafe {
                        std::ptr::copy_nonoverlapping(text.as_ptr(), base.add(start), text.len());
                        base.add(start)
                    };
                    (
                        VarType::STRING,
                        VarValue {
                            string: string.cast(),
                        },
                    )
                }
                Value::Absent => continue, // none is in the list
            };
            // SAFETY: the block starts with room for `vars.len() + 1` variables and is aligned for any C type; the last
            // one stays zero, that is, without name.
            unsafe {
                base.cast::<StatsVar>().add(i).write(StatsVar {
                    name: name.as_ptr(),
                    var_type,
                    value,
                })
            };
        }
        block.into_raw().cast()
    }
}

/// Frees what [`Stats::to_vars`] returned; NULL is allowed.
///
/// # Safety
/// `vars` must come from [`Stats::to_vars`] and not be used again.
pub unsafe fn free_vars(vars: *mut StatsVar) {
    // SAFETY: the block comes from malloc and the caller gives it up.
    unsafe { libc::free(vars.cast()) }
}
