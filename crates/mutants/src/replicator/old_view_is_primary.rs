pub(crate) const MISTAKE: &str = "after a pause, a view from before the node lost the primary component makes it a member \
                                  of that again: it reports so, and takes writes that cannot commit";
