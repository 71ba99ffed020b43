//! Flags of `serve`.

use clap::Args;
use std::net::IpAddr;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast serve                         on http://127.0.0.1:7400, for this machine only
  stepcast serve --open                  and show it in the browser
  stepcast serve --port 0                on any free port
  stepcast serve --bind 192.168.1.5      for whoever can reach this address: there is no password

The API is described at /api; docs/serve.md has more. Ctrl-C finishes what is under way and ends.";

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The port; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 7400)]
    pub(crate) port: u16,

    /// The address to listen on; others than the loopback address are open to the network
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) bind: IpAddr,

    /// Show the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}
