//! Liu 2022: its equations, its limits and its method. The validation set `liu2022` has the golden cases.

mod method;
mod properties;

use stepcast_analytic::collectives::Fabric;
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};

const PI: FlopsPerSec = FlopsPerSec::new(13.45e12);

fn paper_fabric() -> Fabric {
    Fabric { step: Seconds::ZERO, bandwidth: BytesPerSec::new(3.125e9), reduce: PI, element: Bytes::new(4.0) }
}

fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1.0),
        "{what}: {found}, not {expected}"
    );
}

fn relative(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{what}: {found}, not {expected}");
}
