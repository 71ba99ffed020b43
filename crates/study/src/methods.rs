//! The list of all methods: to add one, add a line.

use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::zeng2023::Zeng2023;
use stepcast_core::method::{Inapplicable, Method};
use stepcast_core::scenario::Scenario;

/// Every method, the one to prefer first.
pub fn all() -> &'static [&'static dyn Method] {
    &[&Layerwise, &Zeng2023]
}

/// The method called `name`.
pub fn find(name: &str) -> Option<&'static dyn Method> {
    all().iter().copied().find(|method| method.name() == name)
}

/// The first method that models what the scenario asks, or why none does.
pub fn choose(scenario: &Scenario) -> Result<&'static dyn Method, Inapplicable> {
    let mut refusal = None;
    for method in all() {
        match method.applies(scenario) {
            Ok(()) => return Ok(*method),
            Err(why) => refusal = refusal.or(Some(why)),
        }
    }
    Err(refusal
        .unwrap_or_else(|| Inapplicable { reason: "there are no methods".into(), remedy: String::new() }))
}
