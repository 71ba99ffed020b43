//! Flags of `serve`.

use clap::Args;
use std::net::IpAddr;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast serve                         on http://127.0.0.1:7400, for this machine only
  stepcast serve --open                  and open it in the browser
  stepcast serve --port 0                on any free port
  stepcast serve --bind 192.168.1.5      for everyone who can reach it: there is no password

The API is described at /api; docs/serve.md has more. Ctrl-C finishes running requests and exits.";

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Port; 0 chooses a free one
    #[arg(long, value_name = "N", default_value_t = 7400)]
    pub(crate) port: u16,

    /// Address to listen on; any but the loopback address is open to the network
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) bind: IpAddr,

    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}
