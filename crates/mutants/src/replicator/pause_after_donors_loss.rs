pub(crate) const MISTAKE: &str = "a pause that a donor's script waits for is granted when its server is a donor no more: nobody takes it back, \
                                  and the node stands still for good";
