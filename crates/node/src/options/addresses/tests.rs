use super::Options;
use crate::options::tests::{change, options};
use crate::options::{OptionError, Phase, Typed};
use crate::url::ClusterUrl;

#[test]
fn a_bad_node_address_hinders_nothing_but_connecting() {
    for address in ["[::1", "127.0.0.1:@OPT.port"] {
        let mut options = Options::new("/", address, "pc.weight=2").unwrap();
        assert_eq!(options.int("pc.weight"), 2);
        assert!(matches!(
            options.for_connection(&ClusterUrl::default()),
            Err(OptionError::NodeAddress(_))
        ));
    }
}

#[test]
fn addresses_follow_from_the_node_address() {
    let listens = |node_address: &str, text: &str| {
        let options = Options::new("/d/", node_address, text).unwrap();
        options.listen_address().unwrap().to_string()
    };
    assert_eq!(listens("10.1.2.3", ""), "0.0.0.0:4567");
    assert_eq!(listens("127.0.0.1:77", ""), "0.0.0.0:77");
    assert_eq!(listens("127.0.0.1:77", "base_port=99"), "0.0.0.0:99");
    assert_eq!(
        listens("[::1]:5", "gmcast.listen_addr=tcp://[::]:6"),
        "[::]:6"
    );
    assert_eq!(
        listens("h:5", "gmcast.listen_addr=127.0.0.2;ist.recv_addr=[::1]:9"),
        "127.0.0.2:5"
    );
    assert_eq!(listens("", ""), "0.0.0.0:4567");
    assert!(
        !Options::new("/d/", "", "")
            .unwrap()
            .to_string()
            .contains("base_host")
    );
}

#[test]
fn a_certificate_and_a_key_turn_tls_on() {
    let tls = options("socket.ssl_cert=/c.pem;socket.ssl_key=/k.pem");
    assert!(tls.bool("socket.ssl"));
    assert!(tls.to_string().ends_with(
        "socket.ssl = YES; socket.ssl_cert = /c.pem; socket.ssl_cipher = ; socket.ssl_key = /k.pem; socket.ssl_reload = 1; "
    ));
    let mut plain = options("socket.ssl=no;socket.ssl_cert=/c.pem;socket.ssl_key=/k.pem");
    assert!(!plain.bool("socket.ssl") && !plain.is_shown("socket.ssl_reload"));
    // FLUSH SSL repeats the shown value; so does setting the whole string. Both reload.
    let mut tls = tls;
    assert_eq!(
        tls.apply_string("socket.ssl_reload=1", Phase::Runtime),
        Ok(vec![change("socket.ssl_reload", Typed::Bool(true))])
    );
    let text = tls.to_string();
    assert_eq!(
        tls.apply_string(&text, Phase::Runtime),
        Ok(vec![change("socket.ssl_reload", Typed::Bool(true))])
    );
    assert_eq!(tls.to_string(), text);
    // A live cluster may go over to TLS; an address would be forgotten by the next change.
    assert_eq!(
        plain.apply_string("socket.ssl=yes;socket.dynamic=yes", Phase::Runtime),
        Ok(vec![
            change("socket.ssl", Typed::Bool(true)),
            change("socket.dynamic", Typed::Bool(true))
        ])
    );
    let secret = options("repl.secret_file=/s");
    assert!(!secret.bool("socket.ssl") && secret.is_shown("socket.ssl_reload"));
    let key = "socket.ssl";
    assert_eq!(
        plain.apply_string("socket.ssl=no", Phase::Connect),
        Err(OptionError::NotInAddress { key })
    );
}

/// `FLUSH SSL` reaches the provider only if the options show a reload.
#[test]
fn tls_or_a_secret_that_is_set_later_can_be_reloaded() {
    for text in [
        "socket.ssl_cert=/c;socket.ssl_key=/k;socket.ssl=yes",
        "repl.secret_file=/s",
    ] {
        let mut options = options("");
        assert!(!options.to_string().contains("socket.ssl_reload"));
        options.apply_string(text, Phase::Runtime).unwrap();
        assert!(options.to_string().contains("socket.ssl_reload"), "{text}");
    }
}
