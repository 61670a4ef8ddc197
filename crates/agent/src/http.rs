//! A small HTTP server: one request per connection, and a limit on everything that a client can use up.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::request::{self, Refusal, Request};

/// The number of clients served at once. Others wait in the system's queue.
const WORKERS: usize = 8;
/// The longest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// The time limit for a client's request, and again for its taking the answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// An answer to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: Status,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

/// The HTTP statuses in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    TooSlow,
    TooLarge,
    Error,
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::TooSlow => "408 Request Timeout",
            Status::TooLarge => "431 Request Header Fields Too Large",
            Status::Error => "500 Internal Server Error",
            Status::Unavailable => "503 Service Unavailable",
        }
    }
}

impl Response {
    /// A response of one line of text.
    pub(crate) fn text(status: Status, line: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{line}\n"),
        }
    }
}

/// Starts threads that answer the clients of `listener`. They end with the process.
pub(crate) fn serve(
    listener: TcpListener,
    answer: impl Fn(Request) -> Response + Send + Sync + 'static,
) -> io::Result<()> {
    let shared = Arc::new((listener, answer));
    for worker in 0..WORKERS {
        let shared = Arc::clone(&shared);
        let run = move || loop {
            match shared.0.accept() {
                // An error of this connection concerns only its client.
                Ok((stream, _)) => drop(talk(stream, &shared.1)),
                // For instance, no file descriptor is free: to accept again at once would not help.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        };
        thread::Builder::new()
            .name(format!("http-{worker}"))
            .spawn(run)?;
    }
    Ok(())
}

fn talk(mut stream: TcpStream, answer: impl Fn(Request) -> Response) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let (response, head_only) = match read(&mut stream)? {
        Ok(request) => (answer(request), request.head_only),
        Err(refused) => (refused, false),
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        response.status.line(),
        response.content_type,
        response.body.len()
    );
    let body = if head_only { "" } else { &response.body };
    write(&mut stream, &(head + body))?;
    stream.shutdown(Shutdown::Write)
}

/// Reads the request; an inner Err is the response to bytes that are no valid request.
fn read(stream: &mut TcpStream) -> io::Result<Result<Request, Response>> {
    let deadline = Instant::now() + TIMEOUT;
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        // The deadline is fixed: single bytes do not extend it.
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err(Response::text(
                Status::TooSlow,
                "the request took too long",
            )));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        }
        if let Some(parsed) = request::parse(&bytes) {
            return Ok(parsed.map_err(refusal));
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Ok(Err(Response::text(
                Status::TooLarge,
                "the head of the request is too large",
            )));
        }
    }
}

fn refusal(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Bad(reason) => Response::text(Status::BadRequest, reason),
        Refusal::Method => Response::text(Status::MethodNotAllowed, "use GET or HEAD"),
        Refusal::Unknown => Response::text(
            Status::NotFound,
            "there are /health/live /health/ready /health/write /health/read?max_lag_ms=500 /metrics /status.json",
        ),
    }
}

fn write(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let count = stream.write(rest)?;
        rest = &rest[count..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, |_| Response::text(Status::Ok, "fine")).unwrap();
        address
    }

    fn ask(address: SocketAddr, text: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(text).unwrap();
        let mut answer = String::new();
        // If the server closes while our bytes are on their way, it resets the connection after its answer.
        drop(stream.read_to_string(&mut answer));
        answer
    }

    #[test]
    fn a_request_is_answered_and_a_head_has_no_body() {
        let address = server();
        let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nfine\n"),
            "{answer}"
        );
        let head = ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(
            head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
        assert!(ask(address, b"GET /x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(address, b"PUT / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(ask(address, b"hello there\r\n\r\n").starts_with("HTTP/1.1 400 "));
    }

    #[test]
    fn endless_heads_are_cut_off() {
        let mut text = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
        text.resize(MAX_HEAD_BYTES + 100, b'x');
        assert!(ask(server(), &text).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn more_silent_clients_than_workers_do_not_lock_others_out_for_long() {
        let address = server();
        let silent: Vec<TcpStream> = (0..2 * WORKERS)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let begin = Instant::now();
        assert!(ask(address, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
        let waited = begin.elapsed();
        assert!(waited < 8 * TIMEOUT, "after {waited:?}");
        drop(silent);
    }
}
