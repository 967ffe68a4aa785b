//! HTTP over the job's socket. Version 1.0, so that an answer ends where the connection does.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;

/// The job's way to the service.
pub struct Agent {
    socket: String,
}

/// An answer other than success.
#[derive(Debug)]
pub struct Refusal {
    pub code: String,
    /// What was wrong and what to do.
    pub text: String,
}

impl Agent {
    /// `None` outside a job.
    pub fn of_this_job() -> Option<Agent> {
        std::env::var("BERTH_AGENT_SOCKET").ok().map(|socket| Agent { socket })
    }

    /// The answer's body as JSON.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let mut text = String::new();
        self.request("POST", path, "application/json", body.to_string().as_bytes())?.read_to_string(&mut text).map_err(|e| broken(&e))?;
        if text.is_empty() { Ok(Value::Null) } else { serde_json::from_str(&text).map_err(|e| broken(&std::io::Error::from(e))) }
    }

    /// Posts bytes as they are.
    pub fn post_bytes(&self, path: &str, bytes: &[u8]) -> Result<(), Refusal> {
        self.request("POST", path, "application/octet-stream", bytes).map(|_| ())
    }

    /// The answer's body, as it comes.
    pub fn get(&self, path: &str) -> Result<impl BufRead + use<>, Refusal> {
        self.request("GET", path, "application/json", b"")
    }

    fn request(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> Result<BufReader<UnixStream>, Refusal> {
        let mut stream = UnixStream::connect(&self.socket).map_err(|e| broken(&e))?;
        let head =
            format!("{method} {path} HTTP/1.0\r\nhost: agent\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).map_err(|e| broken(&e))?;
        let mut reader = BufReader::new(stream);
        let status = status(&mut reader).map_err(|e| broken(&e))?;
        if (200..300).contains(&status) {
            return Ok(reader);
        }
        let mut text = String::new();
        let _ = reader.read_to_string(&mut text);
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        let part = |field: &str| problem[field].as_str().unwrap_or_default().to_owned();
        let (detail, help) = (part("detail"), part("help"));
        let text = match (detail.as_str(), help.as_str()) {
            ("", _) => format!("the service answered {status}"),
            (_, "") => detail,
            _ => format!("{detail}; {help}"),
        };
        Err(Refusal { code: part("code"), text })
    }
}

fn broken(error: &std::io::Error) -> Refusal {
    Refusal { code: "unavailable".to_owned(), text: format!("the node's agent cannot be reached: {error}") }
}

/// Reads the head of an answer.
fn status(reader: &mut impl BufRead) -> std::io::Result<u16> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(|| std::io::Error::other("an answer that is not HTTP"))?;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            return Ok(status);
        }
    }
}
