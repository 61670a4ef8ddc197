//! Parses the HTTP requests of the agent's clients. Pure.

use std::time::Duration;

/// The longest lag that a request may name. Each such request waits for its answer, which a load balancer cannot do
/// longer.
const MAX_LAG: Duration = Duration::from_secs(5);

/// The questions that the agent answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Live,
    Ready,
    Write,
    /// Whether a read here shows data at most this old; None: data of any age.
    Read(Option<Duration>),
    Metrics,
    Status,
}

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not HTTP, or a parameter makes no sense.
    Bad(&'static str),
    /// Its method is neither GET nor HEAD.
    Method,
    /// Its path does not exist.
    Unknown,
}

/// A valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) question: Question,
    /// Whether the client wants only the head of the answer.
    pub(crate) head_only: bool,
}

/// Parses the head of a request; None if more bytes are needed.
pub(crate) fn parse(bytes: &[u8]) -> Option<Result<Request, Refusal>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(Err(Refusal::Bad("this is not HTTP/1.1"))),
    }
    let head_only = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Some(Err(Refusal::Method)),
    };
    Some(
        question(request.path.unwrap_or_default()).map(|question| Request {
            question,
            head_only,
        }),
    )
}

fn question(target: &str) -> Result<Question, Refusal> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/health/live" => Ok(Question::Live),
        "/health/ready" => Ok(Question::Ready),
        "/health/write" => Ok(Question::Write),
        "/health/read" => max_lag(query).map(Question::Read),
        "/metrics" => Ok(Question::Metrics),
        "/status.json" => Ok(Question::Status),
        _ => Err(Refusal::Unknown),
    }
}

fn max_lag(query: &str) -> Result<Option<Duration>, Refusal> {
    let Some(value) = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("max_lag_ms="))
    else {
        return Ok(None);
    };
    match value.parse().map(Duration::from_millis) {
        Ok(lag) if !lag.is_zero() && lag <= MAX_LAG => Ok(Some(lag)),
        _ => Err(Refusal::Bad("max_lag_ms is a number from 1 to 5000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(target: &str) -> Result<Question, Refusal> {
        let text = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        parse(text.as_bytes())
            .unwrap()
            .map(|request| request.question)
    }

    #[test]
    fn paths_are_questions() {
        assert_eq!(get("/health/write"), Ok(Question::Write));
        assert_eq!(get("/health/ready?x=y"), Ok(Question::Ready));
        assert_eq!(get("/health/read"), Ok(Question::Read(None)));
        let half = Some(Duration::from_millis(500));
        assert_eq!(
            get("/health/read?a=b&max_lag_ms=500"),
            Ok(Question::Read(half))
        );
        assert_eq!(get("/"), Err(Refusal::Unknown));
        for value in ["0", "-1", "5001", "x", "", "99999999999999999999"] {
            let refused = get(&format!("/health/read?max_lag_ms={value}"));
            assert!(matches!(refused, Err(Refusal::Bad(_))), "{value}");
        }
    }

    #[test]
    fn other_methods_and_protocols_are_refused_and_parts_are_waited_for() {
        assert_eq!(
            parse(b"POST /metrics HTTP/1.1\r\n\r\n"),
            Some(Err(Refusal::Method))
        );
        assert!(matches!(
            parse(b"\x16\x03\x01\x02\x00"),
            Some(Err(Refusal::Bad(_)))
        ));
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
        let head = parse(b"HEAD /metrics HTTP/1.0\r\n\r\n").unwrap().unwrap();
        assert!(head.head_only);
    }
}
