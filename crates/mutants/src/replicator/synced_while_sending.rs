pub(crate) const MISTAKE: &str = "a node that came back to the group is Synced while a script of its server still sends: it may be chosen as a \
                                  donor once more, and the end of the first script counts as that of the second";
