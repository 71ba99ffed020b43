//! What restricts a search over plans beside the keys of its scenario.

/// A plan that leaves everything open, for scenarios without one.
pub const OPEN: &str = "strategy.plan={}";

/// Keys of `[plan]` that are asked for with the question.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Restriction {
    /// Machines of the catalog to choose from.
    pub offers: Option<Vec<String>>,
    /// Numbers of machines.
    pub nodes: Option<Vec<u32>>,
    /// Sequences of a step.
    pub global_batch: Option<u64>,
    /// Tokens to train on.
    pub tokens: Option<f64>,
    /// Longest time of training.
    pub deadline: Option<String>,
    /// Highest cost of training.
    pub budget: Option<f64>,
    /// Whether plans are admitted that fit only if the allocator loses little.
    pub may_fit: bool,
}

impl Restriction {
    /// The same as changes of the scenario, as `--set` writes them.
    pub fn changes(&self) -> Vec<String> {
        let named = |key: &str, value: Option<String>| value.map(|value| format!("plan.{key}={value}"));
        let offer = |machine: &String| format!("{{ machine = {} }}", toml::Value::from(machine.as_str()));
        let offers =
            self.offers.as_ref().map(|offers| offers.iter().map(offer).collect::<Vec<_>>().join(", "));
        let all = [
            named("offers", offers.map(|offers| format!("[{offers}]"))),
            named("nodes", self.nodes.as_ref().map(|nodes| format!("{nodes:?}"))),
            named("global-batch", self.global_batch.map(|batch| batch.to_string())),
            named("tokens", self.tokens.map(|tokens| format!("{tokens:e}"))),
            named("deadline", self.deadline.clone()),
            named("budget", self.budget.map(|budget| format!("{budget:e}"))),
            named("may-fit", self.may_fit.then(|| "true".to_owned())),
        ];
        all.into_iter().flatten().collect()
    }
}
