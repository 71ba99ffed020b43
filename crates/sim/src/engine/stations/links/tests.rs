use super::*;
use proptest::prelude::*;

/// Routes over a worker's port and a server's: workers 0..8 have ports 0..8, servers the ones behind.
fn routes(pairs: &[(u32, u32)]) -> Vec<Route> {
    pairs.iter().map(|&(worker, server)| Route::new(&[worker, 8 + server])).collect()
}

#[test]
fn one_flow_gets_all_and_equals_share() {
    let capacities = [1.0; 10];
    assert_eq!(max_min(&capacities, &routes(&[(0, 0)])), [1.0]);
    assert_eq!(max_min(&capacities, &routes(&[(0, 0), (1, 0)])), [0.5, 0.5]);
    // Alone on both servers: the worker's own port is shared.
    assert_eq!(max_min(&capacities, &routes(&[(0, 0), (0, 1)])), [0.5, 0.5]);
}

#[test]
fn one_pending_flow_is_finished_before_a_later_one() {
    let mut links =
        Links { capacities: vec![2.0], shared: vec![true], carried: vec![0.0], ..Links::default() };
    let alone = Demand { weight: 1.0, copies: 1 };
    links.add(0.0, 7, 1, 4.0, Route::new(&[0]), alone);
    links.settle();
    links.add(1.0, 8, 2, 1.0, Route::new(&[0]), alone);
    links.settle();
    // 2 units are left of the first; both get 1 a second, the second ends at 2.
    assert_eq!(links.next(), Some((2.0, 2)));
    assert_eq!(links.pop(2.0), Some(8));
    links.settle();
    assert_eq!(links.next(), Some((2.5, 1)));
}

proptest! {
    /// What makes an allocation max-min fair: no port is overfull, and every flow crosses a full port on which
    /// no flow is faster.
    #[test]
    fn rates_are_max_min_fair(
        capacities in prop::collection::vec(0.1..10.0f64, 10),
        pairs in prop::collection::vec((0u32..8, 0u32..2), 1..60),
    ) {
        let routes = routes(&pairs);
        let rates = max_min(&capacities, &routes);
        let load = |port: u32| -> f64 {
            let crossing = routes.iter().zip(&rates).filter(|(route, _)| route.ports().contains(&port));
            crossing.map(|(_, rate)| rate).sum()
        };
        for port in 0..10u32 {
            prop_assert!(load(port) <= capacities[port as usize] * (1.0 + 1e-9));
        }
        for (route, rate) in routes.iter().zip(&rates) {
            let bottleneck = route.ports().iter().any(|&port| {
                let full = load(port) >= capacities[port as usize] * (1.0 - 1e-9);
                let mut others = routes.iter().zip(&rates).filter(|(other, _)| other.ports().contains(&port));
                full && others.all(|(_, other)| *other <= rate * (1.0 + 1e-9))
            });
            prop_assert!(bottleneck, "{rates:?}");
        }
    }
}
