pub(crate) const MISTAKE: &str = "a view without a majority is shown during a pause: its server ends the pause by the state that it is in \
                                  by then, and leaves the node desynced or standing still for good";
