//! The parsers of users' texts, for the fuzz targets.

use crate::options::{Options, Phase};
use crate::url::ClusterUrl;

/// Checks provider options at startup and at run time: printed options can be set again.
pub fn options(node_address: &str, text: &str) {
    let Ok(mut options) = Options::new("/data", node_address, text) else {
        return;
    };
    let printed = options.to_string();
    let again = options.apply_string(&printed, Phase::Runtime);
    again.expect("an option string can be set again");
    assert_eq!(options.to_string(), printed);
    if options.apply_string(text, Phase::Runtime).is_err() {
        assert_eq!(options.to_string(), printed);
    }
    let _ = options.listen_address();
    let _ = crate::runtime::replicator_options(&options, "");
    let _ = options.for_connection(&ClusterUrl::default());
    assert!(options.visible().count() > 0);
}

/// Checks a cluster address: its hosts, printed, are hosts again.
pub fn cluster_url(text: &str) {
    let Ok(url) = text.parse::<ClusterUrl>() else {
        return;
    };
    let _ = url.is_bootstrap();
    for peer in &url.peers {
        let again = peer.to_string().parse().as_ref() == Ok(peer);
        assert!(again, "{peer}");
    }
}
