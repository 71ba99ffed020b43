//! The server as a process: how it ends, and what clients who send nothing can do to it.

#![cfg(unix)]
use crate::{done, process, refused_by};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A gradient takes a thousand hours, while the update thread goes round thousands of times a second.
const ENDLESS: &str = "[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ncount = 8\ndevice = \"tesla-k80\"\n\
    [cluster]\nnodes = { workers = 4 }\n\
    [strategy]\narchitecture = \"all-reduce\"\nsynchronisation = \"async\"\nbatch = 4\n\
    [methods.oyama2016]\ncompute-gradient = { each = \"0 s\", fixed = \"1000 h\" }\n\
    [methods.simulate]\nruns = 1\nsteps = 40\nwarm-up = 10\n";

pub(super) struct Server {
    process: Child,
    host: String,
}

impl Server {
    pub(super) fn start(files: u32) -> Self {
        let program = env!("CARGO_BIN_EXE_stepcast");
        let mut process = Command::new("sh")
            .args(["-c", &format!("ulimit -n {files} && exec \"$0\" serve --port 0")])
            .arg(program)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let host = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { process, host }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends the head of a request to the API and `body`, of `length` bytes, or its beginning.
    fn send(&self, name: &str, more: &str, length: usize, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let host = &self.host;
        let head = format!(
            "POST /api/v1/{name} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{more}"
        );
        write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").unwrap();
        stream
    }

    fn post(&self, name: &str, body: &str) -> TcpStream {
        self.send(name, "", body.len(), body)
    }

    /// The head and the body of the answer, behind which the server closes the connection.
    fn whole(&self, name: &str, body: &str) -> (String, String) {
        let mut text = String::new();
        let mut stream = self.send(name, "Connection: close\r\n", body.len(), body);
        stream.read_to_string(&mut text).unwrap();
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), content.to_owned())
    }

    pub(super) fn answer(&self, name: &str, body: &str) -> serde_json::Value {
        serde_json::from_str(&self.whole(name, body).1).unwrap()
    }

    /// Sends a signal, and how long it takes to end.
    fn end(&mut self, signal: &str) -> Duration {
        let since = Instant::now();
        Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        while self.process.try_wait().unwrap().is_none() && since.elapsed() < Duration::from_secs(60) {
            sleep(Duration::from_millis(5));
        }
        since.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_signal_ends_the_server_whatever_it_does() {
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start(1024);
        let scenario = serde_json::to_string(ENDLESS).unwrap();
        let body = format!("{{\"scenario\": {scenario}, \"method\": \"simulate\"}}");
        for _ in 0..2 {
            let left = server.post("predict", &body);
            sleep(Duration::from_millis(300));
            drop(left);
        }
        let _waiting = server.post("predict", &body);
        sleep(Duration::from_millis(300));
        let took = server.end(signal);
        assert!(took < Duration::from_secs(2), "{signal}: {took:?}");
    }
}

#[test]
fn idle_connections_lock_nobody_out() {
    let mut server = Server::start(256);
    let idle: Vec<TcpStream> = (0..400).map(|_| server.connect()).collect();
    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: localh").unwrap();
    let mut answer = [0; 12];
    server.post("scenario", "{\"scenario\": \"\"}").read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    // A head that never ends is given up.
    let since = Instant::now();
    let mut rest = Vec::new();
    // It is closed, in whatever way.
    let _ = slow.read_to_end(&mut rest);
    assert!(since.elapsed() < Duration::from_secs(40), "{:?}", since.elapsed());
    drop(idle);
    server.end("-TERM");
}

/// Every study of the API answers what its command writes with `--json`, to the byte.
#[test]
fn answers_are_the_bytes_of_the_commands() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut server = Server::start(1024);
    for line in include_str!("../questions.txt").lines() {
        let cells =
            line.split(" | ").map(|cell| cell.strip_prefix('-').filter(|it| it.is_empty()).unwrap_or(cell));
        let [command, example, fields, flags] = cells.collect::<Vec<_>>().try_into().unwrap();
        let path = format!("{examples}/{example}.toml");
        let text = serde_json::to_string(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let body = format!("{{\"scenario\": {text}{fields}}}");
        let (head, answer) = server.whole(command, &body);
        assert!(head.starts_with("HTTP/1.1 200"), "{command}: {head}\n{answer}");
        let mut program = process(&[command, &path, "--json"]);
        let printed = done(program.args(flags.split_whitespace()).output().unwrap());
        assert!(answer == printed, "{command}: {answer}");
    }
    server.end("-TERM");
}

/// Caught: uploads that trickle in locked all others out.
#[test]
fn uploads_that_do_not_come_lock_nobody_out() {
    // 24 places.
    let mut server = Server::start(96);
    let mut uploads: Vec<TcpStream> = (0..60).map(|_| server.send("uploads", "", 1000, "x")).collect();
    let bodies: Vec<TcpStream> = (0..60).map(|_| server.send("predict", "", 9, "{")).collect();
    let mut answer = [0; 12];
    server.post("scenario", "{\"scenario\": \"\"}").read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    // The first of all has made room, or was refused because too many come at once, or because it came too slowly.
    let mut rest = Vec::new();
    let _ = uploads[0].read_to_end(&mut rest);
    let refused = rest.starts_with(b"HTTP/1.1 503") || rest.starts_with(b"HTTP/1.1 408");
    assert!(rest.is_empty() || refused, "{}", String::from_utf8_lossy(&rest));
    drop(bodies);
    server.end("-TERM");
}

/// The answer to a request whose client closes its side of the connection; it may be told to continue first.
fn half_closed(server: &Server, name: &str, body: &str) -> String {
    let mut stream = server.post(name, body);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n").to_owned()
}

/// Caught: clients such as `nc -N` close their side of the connection behind the request, and got nothing.
#[test]
fn a_client_that_closes_its_side_is_answered() {
    let mut server = Server::start(256);
    let answer = half_closed(&server, "scenario", "{\"scenario\": \"\"}");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with('}'), "{answer}");
    let scenario = serde_json::to_string(ENDLESS).unwrap().replace("1000 h", "1 ms");
    let body = format!("{{\"scenario\": {scenario}, \"method\": \"simulate\"}}");
    let answer = half_closed(&server, "predict", &body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.end("-TERM");
}

/// As many as there are places work for nobody; the next one is answered all the same.
#[test]
fn work_for_clients_that_have_gone_is_given_up() {
    let mut server = Server::start(1024);
    let ask = |text: &str| {
        let scenario = serde_json::to_string(text).unwrap();
        format!("{{\"scenario\": {scenario}, \"method\": \"simulate\"}}")
    };
    let cores = std::thread::available_parallelism().unwrap().get();
    let gone: Vec<TcpStream> = (0..cores).map(|_| server.post("predict", &ask(ENDLESS))).collect();
    drop(gone);
    let answer = server.answer("predict", &ask(&ENDLESS.replace("1000 h", "1 ms")));
    assert!(answer["prediction"]["iteration_s"].is_number(), "{answer}");
    server.end("-TERM");
}

#[test]
fn beyond_the_loopback_address_a_token_is_asked_for() {
    let reason = refused_by(process(&["serve", "--port", "0", "--bind", "0.0.0.0"]).output().unwrap());
    assert!(reason.contains("--token") && reason.contains("--open-to-all"), "{reason}");
}
