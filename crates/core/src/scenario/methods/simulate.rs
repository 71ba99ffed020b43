//! `[methods.simulate]`: settings of the event-driven simulation.

use crate::fault::Fault;
use crate::files::Files;
use crate::keys::{Check, keys, plain};
use crate::quantity::{Bytes, BytesPerSec, Seconds};

/// How simulated transfers share the network.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SharingRule {
    /// Unequal shares that change with every step, as in real networks.
    #[default]
    Uneven,
    /// Equal shares at all times (Li 2020, section 3.1).
    Fair,
    /// Like TCP connections, with windows, round trips and queues.
    Tcp,
}

/// Order in which simulated workers request parameters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TransferOrder {
    /// The order of the profile, step by step.
    #[default]
    Profile,
    /// By the number of operations before the first use of a parameter (TicTac's timing-independent order).
    Tic,
    /// By the duration of those operations (TicTac's timing-aware order).
    Tac,
    Reverse,
    Random,
}

plain!(SharingRule, "`\"uneven\"`, `\"fair\"` or `\"tcp\"`");
plain!(TransferOrder, "string");

/// Default number of bytes after which a stream is preempted (Li 2020, section 3.2.2).
const DEFAULT_WINDOW: Bytes = Bytes::new(28e6);

keys! {
    /// How asynchronous and other training is simulated.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Simulate;
    /// `[methods.simulate]`: how the event engine runs.
    section SimulateSection;
    keys {
        /// Half-width of the 90 % interval of the simulated throughput, as a share of it, at which a simulation ends.
        precision: f64 => f64, default(0.01), Check::Positive("a share such as 0.01"), Resolved;
        /// Work of the engine, in events, at which it ends anyway: ten million take about a second of a core. A forecast
        /// uses half of it for its first figure and the rest for tables; each point of a `sweep` or `search` gets a tenth.
        budget: u64 => u64, default(10_000_000_u64), Check::Between(1000, 1_000_000_000_000, "a number such as 10000000"), Resolved;
        /// Independent runs, at most: large clusters get fewer.
        runs: u32 => u32, default(4_u32), Check::Between(1, 1000, "a number such as 10"), Resolved;
        /// Steps of the slowest worker in each run, at most.
        steps: u32 => u32, default(10_000_u32), Check::Between(1, 1_000_000, "a number such as 10"), Resolved;
        /// Steps of every worker that do not count, fewer than `steps`. Found from the run where it is not given.
        warm_up: u32 => u32, optional("found"), Check::Any, Resolved;
        /// Seed of random numbers.
        seed: u64 => u64, default(1_u64), Check::Any, Resolved;
        /// Bytes after which a transfer is preempted by others, once.
        window: Bytes => Bytes, optional("`\"28 MB\"`"), Check::Positive("a size such as \"28 MB\""), Resolved;
        /// `false`: transfers are never interrupted.
        flow_control: bool => bool, default(true), Check::Any, Resolved;
        /// Parsing of what has arrived: cost of each transfer (Li 2020, section 3.2.1).
        parse_fixed: Seconds => Seconds, default(Seconds::ZERO), Check::NotNegative("a time such as \"0.3 ms\""), Resolved;
        /// Rate of parsing.
        parse_rate: BytesPerSec => BytesPerSec, optional("no cost"), Check::Positive("a rate such as \"4 GB/s\""), Resolved;
        /// Whether receivers parse on the unit that computes.
        parse_while_computing: bool => bool, default(false), Check::Any, Resolved;
        /// Spread of computing times, standard deviation against the mean, where steps are made from a model or from a single
        /// measured step. If not given, 0.05, but 0 where all workers all-reduce in every step: the constants of the closed
        /// form, which the engine shares, come from whole jobs and already include slow steps.
        jitter: f64 => f64, optional("0.05, or 0 where workers all-reduce"), Check::NotNegative("a share such as 0.05"), Resolved;
        /// Order in which parameters are requested: `"profile"`, `"tic"` or `"tac"` (by first use in computing, measured in the
        /// number or in the time of operations), `"reverse"`, `"random"`.
        order: TransferOrder => TransferOrder, default(TransferOrder::default()), Check::Any, Resolved;
        /// How transfers share links: `"uneven"`, in shares that differ between workers and change with every step;
        /// `"fair"`, equally at all times; `"tcp"`, as TCP connections find their rates (one server, ports of one rate).
        transport: SharingRule => SharingRule, default(SharingRule::default()), Check::Any, Resolved;
        /// Spread of the shares of links, standard deviation against the mean; only for `"uneven"`. TCP connections of a
        /// testbed had 0.26 to 0.39.
        unevenness: f64 => f64, default(0.3), Check::NotNegative("a share such as 0.3"), Resolved;
        /// Longest queue of a port, in time at its rate; only for `"tcp"`.
        queue: Seconds => Seconds, default(Seconds::new(0.05)), Check::Positive("a time such as \"50 ms\""), Resolved;
    }
}

impl Simulate {
    /// The spread of computing times of workers that do not wait for each other in every step.
    pub fn varied(&self) -> f64 {
        self.jitter.unwrap_or(0.05)
    }

    /// The spread of computing times of workers that all-reduce in every step.
    pub fn given_jitter(&self) -> f64 {
        self.jitter.unwrap_or(0.0)
    }
}

/// Checks every value. Without flow control, the window is removed.
pub(super) fn resolve(mut section: SimulateSection, files: &dyn Files) -> Result<Simulate, Fault> {
    let flow_control = section.flow_control.unwrap_or(true);
    section.window = section.window.or(Some(DEFAULT_WINDOW)).filter(|_| flow_control);
    let simulate = section.fill(None, files)?;
    if let Some(warm_up) = simulate.warm_up.filter(|warm_up| *warm_up >= simulate.steps) {
        let reason = format!("{warm_up} of {} steps would not leave any to count", simulate.steps);
        return Err(Fault::in_key("warm-up", reason, "use fewer than `steps`"));
    }
    Ok(simulate)
}
