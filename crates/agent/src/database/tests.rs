//! The client against sockets that answer nothing, and against a server whose answers are written down here.

mod fake;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::{Database, DatabaseError, Endpoint, Login};
use fake::{Reply, Server, login, serve};

/// Time for a thread to run, on a busy machine.
const BUSY: Duration = Duration::from_secs(30);

/// A listener whose queue is full, like that of a stopped server. Returns the connections in the queue, too.
fn full_listener(address: &SockAddr) -> (Socket, Vec<Socket>) {
    let new = || Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    let listener = new();
    listener.bind(address).unwrap();
    listener.listen(0).unwrap();
    let mut queue = Vec::new();
    loop {
        let caller = new();
        caller.set_nonblocking(true).unwrap();
        match caller.connect(address) {
            Ok(()) => queue.push(caller),
            Err(_) => return (listener, queue),
        }
    }
}

#[test]
fn a_server_that_takes_no_connection_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mysqld.sock");
    let (listener, queue) = full_listener(&SockAddr::unix(&path).unwrap());
    assert!(!queue.is_empty());
    let login = Login {
        endpoint: Endpoint::Socket(path),
        user: "u".to_owned(),
        password: None,
    };
    let timeout = Duration::from_millis(100);
    let (answer, answers) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut database = Database::new(login, timeout);
        loop {
            let begin = Instant::now();
            let error = database.sample().unwrap_err();
            if answer.send((error, begin.elapsed())).is_err() {
                return; // the test has ended
            }
        }
    });
    let next = || answers.recv_timeout(BUSY).expect("the client hangs");
    for _ in 0..3 {
        let (error, time) = next();
        assert!(time >= timeout, "{time:?}");
        let text = error.to_string();
        assert!(
            text.contains("the process is stopped") && text.contains("queue of connections"),
            "{text}"
        );
    }
    drop(listener);
    let begin = Instant::now();
    let is_refused = |error: DatabaseError| error.to_string().contains("refused");
    while !is_refused(next().0) {
        assert!(begin.elapsed() < BUSY, "the old attempt never ends");
    }
}

#[test]
fn an_address_of_ipv6_is_shown_in_brackets() {
    let at = |host: &str| Endpoint::Tcp {
        host: host.to_owned(),
        port: 3306,
    };
    assert_eq!(at("db1").to_string(), "db1:3306");
    assert_eq!(at("::1").to_string(), "[::1]:3306");
}

const SHOW_VARIABLES: &str = "SHOW GLOBAL VARIABLES";
const SELECT_OPTIONS: &str = "SELECT @@GLOBAL.wsrep_provider_options";
const NO_WAIT: &str = "SET SESSION wsrep_sync_wait = 0";

fn client(server: &Server) -> Database {
    Database::new(login(server), BUSY)
}

fn one(text: &str) -> Reply {
    Reply::Rows(vec![vec![text.to_owned()]])
}

/// A server with a global `wsrep_sync_wait` of 8 and more waits before each SHOW.
#[test]
fn no_query_waits_for_the_cluster() {
    let server = serve(|_, query| match query {
        "SELECT 1" => one("1"),
        _ => Reply::Rows(vec![vec!["wsrep_ready".to_owned(), "ON".to_owned()]]),
    });
    let mut database = client(&server);
    assert_eq!(database.sample().unwrap().status("wsrep_ready"), "ON");
    let queries = server.queries();
    assert!(queries.len() == 3 && queries[0] == NO_WAIT, "{queries:?}");
    // A wait that was asked for ends with its question.
    database.catch_up().unwrap();
    let expected = ["SET SESSION wsrep_sync_wait = 1", "SELECT 1", NO_WAIT];
    assert_eq!(server.queries()[3..], expected);
}

#[test]
fn a_server_without_wsrep_answers_too() {
    let server = serve(|_, query| match query {
        NO_WAIT => Reply::Refused(1193),
        _ => one("1"),
    });
    assert_eq!(client(&server).rows("SELECT 1", 1).unwrap(), [["1"]]);
    assert_eq!(server.connections(), 1);
}

/// Restart, idle time, KILL: the reading after it must not fail.
#[test]
fn a_kept_connection_that_the_server_has_ended_is_replaced() {
    for end in [
        Reply::Hangup,
        Reply::Refused(1053),
        Reply::Refused(1159),
        Reply::Refused(1927),
    ] {
        let name = format!("{end:?}");
        let server = serve(move |connection, query| match (connection, query) {
            (1, "SELECT 2") => end.clone(),
            _ => one(query),
        });
        let mut database = client(&server);
        database.rows("SELECT 1", 1).unwrap();
        let rows = database.rows("SELECT 2", 1);
        assert_eq!(rows, Ok(vec![vec!["SELECT 2".to_owned()]]), "{name}");
        assert_eq!(server.connections(), 2, "{name}");
        let queries = server.queries();
        assert_eq!(queries[3..], [NO_WAIT, "SELECT 2"], "{name}");
    }
}

#[test]
fn other_failures_are_not_asked_again() {
    let failures = [
        (Reply::Refused(1205), BUSY),
        (Reply::Silence, Duration::from_secs(2)),
    ];
    for (failure, timeout) in failures {
        let name = format!("{failure:?}");
        let server = serve(move |_, query| match query {
            "SELECT 2" => failure.clone(),
            _ => one("1"),
        });
        let mut database = Database::new(login(&server), timeout);
        database.rows("SELECT 1", 1).unwrap();
        database.rows("SELECT 2", 1).unwrap_err();
        assert_eq!(server.connections(), 1, "{name}");
    }
    // Nor is a question that a new connection did not survive.
    let server = serve(|_, query| match query {
        "SELECT 2" => Reply::Hangup,
        _ => one("1"),
    });
    client(&server).rows("SELECT 2", 1).unwrap_err();
    assert_eq!(server.connections(), 1);
}

/// MariaDB 10.11 before 10.11.7 cuts what SHOW VARIABLES tells.
#[test]
fn provider_options_are_read_in_full() {
    let whole = "gcache.size = 1G; ".repeat(200);
    let cut = whole[..2048].to_owned();
    for (answer, expected) in [
        (one(&whole), &whole),
        (Reply::Refused(1193), &cut),
        (Reply::Rows(Vec::new()), &cut),
    ] {
        let cut = cut.clone();
        let server = serve(move |_, query| match query {
            SHOW_VARIABLES => {
                let row = ["wsrep_provider_options", &cut];
                Reply::Rows(vec![row.map(str::to_owned).into()])
            }
            SELECT_OPTIONS => answer.clone(),
            _ => Reply::Rows(Vec::new()),
        });
        let sample = client(&server).whole_sample().unwrap();
        let options = sample.variable("wsrep_provider_options");
        assert!(options == expected, "{} characters", options.len());
    }
}
