//! Flags of `serve`.

use clap::Args;
use std::net::IpAddr;
use stepcast_web::Token;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast serve                         on http://127.0.0.1:7400, for this machine only
  stepcast serve --open                  and open it in the browser
  stepcast serve --port 0                on any free port
  stepcast serve --bind 192.168.1.5 --token
                                         for everyone who has the link that this prints

The API is described at /api; docs/serve.md has more. Ctrl-C gives running requests a second, and exits.";

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Port; 0 chooses a free one
    #[arg(long, value_name = "N", default_value_t = 7400)]
    pub(crate) port: u16,

    /// Address to listen on; any but the loopback address is open to the network
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) bind: IpAddr,

    /// What requests have to carry; the printed link does. Without TEXT one is made up
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "", value_parser = token)]
    pub(crate) token: Option<Token>,

    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// A token; an empty text asks for a random one.
fn token(text: &str) -> Result<Token, String> {
    if text.is_empty() {
        return Token::random().map_err(|error| error.to_string());
    }
    let rule = "a token has 8 to 128 letters, digits, '-', '.', '_' or '~'";
    Token::new(text).ok_or_else(|| rule.to_owned())
}
