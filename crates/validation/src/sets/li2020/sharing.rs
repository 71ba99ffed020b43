//! Links to two servers: max-min fairness gives the published rates, and fair ones in the state the paper leaves open.

use super::data::SharingState;
use crate::ExactCheck;
use stepcast_sim::{Route, max_min};

/// Ports of two servers, then of workers, each of rate 1.
const PORTS: [f64; 8] = [1.0; 8];

pub(super) fn check(states: &[SharingState], tolerance: f64) -> ExactCheck {
    let mut check = ExactCheck::new("rates of links to two servers (section 3.4)", tolerance);
    for state in states {
        let route = |&(worker, server): &(u32, u32)| Route::new(&[server - 1, 2 + worker]);
        let routes: Vec<Route> = state.links.iter().map(route).collect();
        check.cases += 1;
        for ((worker, server), rate) in state.links.iter().zip(max_min(&PORTS, &routes)) {
            let expected = state.max_min.get(&format!("w{worker}-ps{server}"));
            check.figure(rate, expected.map_or(f64::NAN, |rate| rate.get()));
        }
    }
    check
}
