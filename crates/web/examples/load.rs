//! Many clients at once: `load HOST:PORT CLIENTS SECONDS [PID]` asks a server as its page does, and says how it bore it.
//!
//! Of every hundred questions, seventy are forecasts, twenty are about a scenario, nine are for the page, and one is a
//! timeline, which the event engine answers. With the server's process, its memory is reported too.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use serde_json::json;
use std::env;
use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

type Failure = Box<dyn Error + Send + Sync>;

const QUICK_START: &str = include_str!("../../../examples/quickstart.toml");
const ASYNC: &str = include_str!("../../../examples/async.toml");

fn get(host: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

fn post(host: &str, path: &str, body: &serde_json::Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// What the `turn`th question of a client is.
fn question(host: &str, turn: u64) -> Vec<u8> {
    let batch = 8 + turn % 64;
    match turn % 100 {
        0 => post(host, "/api/v1/timeline", &json!({ "scenario": ASYNC, "steps": 1 + turn % 3 })),
        1..10 => get(host, if turn.is_multiple_of(2) { "/" } else { "/main.js" }),
        10..30 => {
            let edit = json!([{ "key": "strategy.batch", "value": batch.to_string() }]);
            post(host, "/api/v1/scenario", &json!({ "scenario": QUICK_START, "edit": edit }))
        }
        _ => {
            let set = [format!("strategy.batch={batch}")];
            post(host, "/api/v1/predict", &json!({ "scenario": QUICK_START, "set": set }))
        }
    }
}

/// Sends a request and reads its answer; the status.
async fn ask(stream: &mut BufReader<TcpStream>, request: &[u8]) -> Result<u16, Failure> {
    stream.get_mut().write_all(request).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).ok_or("no length")?;
    let mut body = vec![0; length.trim().parse()?];
    stream.read_exact(&mut body).await?;
    Ok(head.split_whitespace().nth(1).ok_or("no status")?.parse()?)
}

/// Times of the answers, and what went wrong.
async fn client(host: String, number: u64, until: Instant) -> (Vec<Duration>, Vec<String>) {
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    let mut stream = None;
    for turn in (37 * number).. {
        if Instant::now() >= until {
            break;
        }
        if stream.is_none() {
            match TcpStream::connect(&host).await {
                Ok(fresh) => stream = Some(BufReader::new(fresh)),
                Err(error) => {
                    errors.push(error.to_string());
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            }
        }
        let Some(open) = &mut stream else { continue };
        let since = Instant::now();
        match ask(open, &question(&host, turn)).await {
            Ok(200) => times.push(since.elapsed()),
            Ok(status) => errors.push(format!("status {status}")),
            Err(error) => {
                errors.push(error.to_string());
                stream = None;
            }
        }
    }
    (times, errors)
}

/// Resident memory of a process, now and at most, in MiB.
fn memory(process: &str) -> Option<[u64; 2]> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let figure = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes >> 10)
    };
    Some([figure("VmRSS:")?, figure("VmHWM:")?])
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [host, clients, seconds, process @ ..] = arguments.as_slice() else {
        return Err("usage: load HOST:PORT CLIENTS SECONDS [PID]".into());
    };
    let (clients, seconds): (u64, u64) = (clients.parse()?, seconds.parse()?);
    let since = Instant::now();
    let until = since + Duration::from_secs(seconds);
    let tasks: Vec<_> =
        (0..clients).map(|number| tokio::spawn(client(host.clone(), number, until))).collect();
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    for task in tasks {
        let (some, wrong) = task.await?;
        times.extend(some);
        errors.extend(wrong);
    }
    times.sort();
    let at = |share: f64| {
        let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or_default().as_millis()
    };
    let rate = times.len() as f64 / since.elapsed().as_secs_f64();
    println!(
        "{clients} clients for {seconds} s: {} answers, {rate:.0} a second, {} errors",
        times.len(),
        errors.len()
    );
    println!("answered within: p50 {} ms, p99 {} ms, at most {} ms", at(0.5), at(0.99), at(1.0));
    if let Some([now, most]) = process.first().and_then(|process| memory(process)) {
        println!("memory of the server: {now} MiB now, {most} MiB at most");
    }
    match errors.first() {
        Some(first) => Err(format!("{} errors, the first: {first}", errors.len()).into()),
        None => Ok(()),
    }
}
