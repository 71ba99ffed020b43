//! `stepcast serve`: the page and the API, until Ctrl-C.

use crate::answer::{Answer, End, Output};
use clap::Args;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use stepcast_core::fault::Fault;
use stepcast_web::{Access, Ended, Options, Token, serve};

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Port; 0 chooses a free one
    #[arg(long, value_name = "N", default_value_t = 7400)]
    port: u16,

    /// Address to listen on; any but the loopback address is open to the network and needs --token or --open-to-all
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    bind: IpAddr,

    /// What requests have to carry; the printed link does. Without TEXT one is made up
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "", value_parser = token)]
    token: Option<Token>,

    /// Answer everyone who can reach the address, without a token
    #[arg(long, conflicts_with = "token")]
    open_to_all: bool,

    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

/// A token; an empty text asks for a random one.
fn token(text: &str) -> Result<Token, String> {
    if text.is_empty() {
        return Token::random().map_err(|error| error.to_string());
    }
    let rule = "a token has 8 to 128 letters, digits, '-', '.', '_' or '~'";
    Token::new(text).ok_or_else(|| rule.to_owned())
}

impl Serve {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let network = Access::from_address(self.bind) == Access::Network;
        if network && self.token.is_none() && !self.open_to_all {
            let reason = "everyone who can reach this address could use the server";
            let remedy = "add --token, or --open-to-all if that is what you want";
            return Err(Fault::new(reason, remedy).at(format!("--bind {}", self.bind)));
        }
        let options = Options { bind: self.bind, port: self.port, token: self.token.clone() };
        let ready = |address: SocketAddr| {
            let query = self.token.as_ref().map_or(String::new(), Token::query);
            let link = format!("http://{address}/{query}");
            announce(&link, output.json);
            if self.open {
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
                let place = format!("--bind {} --port {}", self.bind, self.port);
                Err(Fault::new(format!("cannot listen: {error}"), remedy).at(place))
            }
        }
    }
}

/// Prints the address of the page at once, as the command does not end.
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
