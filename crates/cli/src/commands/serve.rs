//! `stepcast serve`: the page and the API, until Ctrl-C.

use crate::args::Serve;
use crate::{Answer, End};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use stepcast_core::fault::Fault;
use stepcast_web::{Access, Ended, Options, Token, serve};

pub(super) fn run(flags: &Serve, as_json: bool) -> Result<Answer, Fault> {
    let options = Options { bind: flags.bind, port: flags.port, token: flags.token.clone() };
    let ready = |address: SocketAddr| {
        let query = flags.token.as_ref().map_or(String::new(), Token::query);
        let link = format!("http://{address}/{query}");
        announce(&link, as_json);
        if flags.token.is_none() && Access::of(address.ip()) == Access::Network {
            say(
                "Everyone who can reach this address can use it; with --token, only those who have the link.\n",
            );
        }
        if flags.open {
            open(&link);
        }
    };
    let stopping = || say("Finishing running requests; press Ctrl-C again to stop them.\n");
    match serve(&options, ready, stopping) {
        Ok(Ended::Finished) => Ok(String::new().into()),
        Ok(Ended::Stopped) => {
            say("Some requests were stopped.\n");
            Ok(Answer { text: String::new(), end: End::Interrupted })
        }
        Err(error) => {
            let remedy = "choose another port with --port, or 0 for a free one";
            let place = format!("--bind {} --port {}", flags.bind, flags.port);
            Err(Fault::new(format!("cannot listen: {error}"), remedy).at(place))
        }
    }
}

/// Says where the page is: on standard output at once, as the command does not end.
fn announce(link: &str, as_json: bool) {
    let mut stdout = io::stdout().lock();
    let text =
        if as_json { format!("{}\n", serde_json::json!({ "url": link })) } else { format!("{link}\n") };
    // A closed standard output must not keep the server from running.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn say(text: &str) {
    // If standard error is closed, the error cannot be reported.
    let _ = io::stderr().write_all(text.as_bytes());
}

fn open(link: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let quiet = Stdio::null;
    let started = Command::new(program).arg(link).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    if started.is_err() {
        say("No browser could be started: open the address above.\n");
    }
}
