//! The `my.cnf` of a node. It also serves clients: `mariadb --defaults-file=DIR/node1/my.cnf`.

use std::path::Path;

use crate::ports::NodePorts;
use crate::settings::Settings;

/// The text of the `my.cnf` of node `name`, whose files are in `dir`. `all`: the ports of every node.
pub fn my_cnf(
    settings: &Settings,
    name: &str,
    dir: &Path,
    ports: NodePorts,
    all: &[NodePorts],
) -> String {
    let path = |file: &str| dir.join(file).display().to_string();
    let mut text = format!(
        "# Written by `trireme`; changes are lost at the next start of the cluster.\n\
         [client]\n\
         user=root\n\
         socket={socket}\n\
         \n\
         [mysqld]\n\
         datadir={datadir}\n\
         socket={socket}\n\
         pid-file={pid_file}\n\
         tmpdir={tmp}\n\
         bind-address=127.0.0.1\n\
         port={port}\n\
         skip-name-resolve\n\
         performance_schema=OFF\n\
         max_connections=300\n\
         default_storage_engine=InnoDB\n\
         innodb_buffer_pool_size=256M\n\
         innodb_flush_log_at_trx_commit=2\n\
         innodb_autoinc_lock_mode=2\n\
         binlog_format=ROW\n",
        socket = path("mysqld.sock"),
        datadir = path("data"),
        pid_file = path("mysqld.pid"),
        tmp = path("tmp"),
        port = ports.mysql,
    );
    text += settings.server.default_lines();
    if rustix::process::getuid().is_root() {
        text += "user=root\n";
    }
    if settings.separate {
        let others = all.iter().take_while(|other| other.mysql != ports.mysql);
        text += &format!("server_id={}\n", others.count() + 1);
    }
    if let Some(provider) = &settings.provider {
        text += &wsrep_lines(settings, provider, name, ports, all);
    }
    // These arguments go into the file and not onto the command line, because the server passes its command line on to
    // mariadb-backup, which refuses most of them. They come last, so that they win.
    for line in settings
        .mariadbd_args
        .iter()
        .filter_map(|arg| option_line(arg))
    {
        text += &format!("{}\n", settings.server.option_line(line));
    }
    if !settings.sst_lines.is_empty() {
        text += &format!("\n[sst]\n{}\n", settings.sst_lines.join("\n"));
    }
    text
}

fn wsrep_lines(
    settings: &Settings,
    provider: &Path,
    name: &str,
    ports: NodePorts,
    all: &[NodePorts],
) -> String {
    format!(
        "\n\
             wsrep_on=ON\n\
             wsrep_provider={provider}\n\
             wsrep_cluster_name=trireme-local\n\
             wsrep_cluster_address={address}\n\
             wsrep_node_name={name}\n\
             wsrep_node_address={host}:{group}\n\
             wsrep_node_incoming_address={host}:{port}\n\
             wsrep_slave_threads=4\n\
             wsrep_sst_method={sst_method}\n\
             wsrep_sst_auth=root:\n\
             wsrep_sst_receive_address={host}:{sst}\n\
             wsrep_provider_options=\"{options}\"\n",
        provider = provider.display(),
        address = with_absent(cluster_address(all), &settings.absent),
        host = ports.host,
        group = ports.group,
        port = ports.mysql,
        sst_method = settings.sst_method,
        sst = ports.sst,
        options = provider_options(ports, &settings.provider_options),
    )
}

/// Turns a command line argument `--name` or `--name=value` into a line of an option file; None for any other text.
pub fn option_line(arg: &str) -> Option<&str> {
    let line = arg.strip_prefix("--")?;
    let starts_well = line.starts_with(|c: char| c.is_ascii_alphabetic());
    (starts_well && !line.contains(['\n', '\r'])).then_some(line)
}

/// The `gcomm://` address with every node.
pub fn cluster_address(all: &[NodePorts]) -> String {
    let hosts: Vec<String> = all
        .iter()
        .map(|ports| format!("{}:{}", ports.host, ports.group))
        .collect();
    format!("gcomm://{}", hosts.join(","))
}

fn with_absent(address: String, absent: &[String]) -> String {
    absent
        .iter()
        .fold(address, |all, member| all + "," + member)
}

fn provider_options(ports: NodePorts, more: &str) -> String {
    let own = format!(
        "base_port={group};gmcast.listen_addr=tcp://{host}:{group};ist.recv_addr={host}:{ist}",
        host = ports.host,
        group = ports.group,
        ist = ports.ist(),
    );
    match more.trim_matches([';', ' ']) {
        "" => own,
        more => format!("{own};{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;
    use std::net::Ipv4Addr;

    const A: NodePorts = NodePorts {
        host: Ipv4Addr::LOCALHOST,
        mysql: 1000,
        group: 1001,
        sst: 1003,
    };
    const B: NodePorts = NodePorts {
        host: Ipv4Addr::LOCALHOST,
        mysql: 1010,
        group: 1011,
        sst: 1013,
    };

    #[test]
    fn every_node_is_in_the_address() {
        assert_eq!(
            cluster_address(&[A, B]),
            "gcomm://127.0.0.1:1001,127.0.0.1:1011"
        );
    }

    #[test]
    fn a_node_elsewhere_is_known_by_its_host() {
        let far = NodePorts {
            host: Ipv4Addr::new(10, 77, 0, 2),
            ..B
        };
        let settings = Settings::new("/x", 2, Some("/lib/p.so".into()));
        let text = my_cnf(&settings, "node2", Path::new("/x/node2"), far, &[A, far]);
        assert!(text.contains("wsrep_cluster_address=gcomm://127.0.0.1:1001,10.77.0.2:1011\n"));
        assert!(text.contains("wsrep_node_address=10.77.0.2:1011\n"));
        assert!(text.contains("gmcast.listen_addr=tcp://10.77.0.2:1011;"));
        assert_eq!(text.matches("127.0.0.1").count(), 2, "{text}");
    }

    #[test]
    fn the_address_may_name_members_that_do_not_exist() {
        let mut settings = Settings::new("/x", 1, Some("/lib/p.so".into()));
        settings.absent = vec!["127.0.1.1:1".to_string(), "127.0.1.2:1".to_string()];
        let text = my_cnf(&settings, "node1", Path::new("/x/node1"), A, &[A]);
        let line = "wsrep_cluster_address=gcomm://127.0.0.1:1001,127.0.1.1:1,127.0.1.2:1\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn the_users_provider_options_come_last_and_win() {
        assert!(
            provider_options(A, "gcache.size=1M;")
                .ends_with("ist.recv_addr=127.0.0.1:1002;gcache.size=1M")
        );
        assert!(provider_options(A, " ;").ends_with("127.0.0.1:1002"));
    }

    #[test]
    fn arguments_become_lines_at_the_end() {
        let mut settings = Settings::new("/x", 1, Some("/lib/p.so".into()));
        settings.mariadbd_args = vec![
            "--innodb-buffer-pool-size=1G".to_string(),
            "--skip-x".to_string(),
        ];
        let text = my_cnf(&settings, "node1", Path::new("/x/node1"), A, &[A]);
        assert!(text.ends_with("\ninnodb-buffer-pool-size=1G\nskip-x\n"));
        for bad in ["-x", "x=1", "--", "--a=1\nb=2"] {
            assert_eq!(option_line(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_mysql_server_gets_its_own_names() {
        let mut settings = Settings::new("/x", 1, None);
        settings.server = Server::MySql;
        settings.mariadbd_args = vec!["--innodb-log-file-size=300M".to_string()];
        let text = my_cnf(&settings, "node1", Path::new("/x/node1"), A, &[A]);
        assert!(text.contains("\nskip-log-bin\n"), "{text}");
        assert!(
            text.ends_with("\ninnodb-redo-log-capacity=300M\n"),
            "{text}"
        );
    }

    #[test]
    fn a_plain_server_gets_no_wsrep_settings() {
        let plain = Settings::new("/x", 1, None);
        assert!(!my_cnf(&plain, "node1", Path::new("/x/node1"), A, &[A]).contains("wsrep"));
        let cluster = Settings::new("/x", 2, Some("/lib/p.so".into()));
        let text = my_cnf(&cluster, "node2", Path::new("/x/node2"), B, &[A, B]);
        assert!(text.contains("wsrep_provider=/lib/p.so\n"));
        assert!(text.contains("wsrep_sst_receive_address=127.0.0.1:1013\n"));
        assert!(text.contains("datadir=/x/node2/data\n"));
    }
}
