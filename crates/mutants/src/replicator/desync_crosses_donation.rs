pub(crate) const MISTAKE: &str = "a desync that a Synced server asked for is granted when its node has become a donor: FLUSH TABLES WITH READ \
                                  LOCK does not take it back, and the node stays desynced for good";
