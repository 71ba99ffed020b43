//! The devices and networks that a scenario can refer to by name.
//!
//! Both lists are compiled into the program (`catalog/*.toml`) and parsed on first use. They contain data sheets, not
//! measurements: the scenario states how much of them software reaches.

use crate::fault::Fault;
use crate::machine::{Device, Network};
use crate::suggest;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use std::sync::LazyLock;

/// Entries by name, in the order of the file.
pub type Entries<T> = IndexMap<String, T>;

/// A built-in list that cannot be parsed. Tests prevent such a list from being released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the built-in catalog {file} cannot be read: {reason}")]
pub struct CatalogError {
    /// File name of the list.
    pub file: &'static str,
    /// Message of the parser.
    pub reason: String,
}

impl From<CatalogError> for Fault {
    fn from(error: CatalogError) -> Self {
        Self::new(error.to_string(), "this copy of stepcast is damaged; build it again")
    }
}

static DEVICES: LazyLock<Result<Entries<Device>, CatalogError>> =
    LazyLock::new(|| read("devices.toml", include_str!("../../../../catalog/devices.toml")));

static NETWORKS: LazyLock<Result<Entries<Network>, CatalogError>> =
    LazyLock::new(|| read("networks.toml", include_str!("../../../../catalog/networks.toml")));

/// All devices.
pub fn devices() -> Result<&'static Entries<Device>, CatalogError> {
    DEVICES.as_ref().map_err(Clone::clone)
}

/// All networks.
pub fn networks() -> Result<&'static Entries<Network>, CatalogError> {
    NETWORKS.as_ref().map_err(Clone::clone)
}

/// The device called `id`. Errors have the root as their path; the caller sets the key.
pub fn device(id: &str) -> Result<Device, Fault> {
    find(devices(), "device", id, |_| "run `stepcast devices` for the list".to_owned())
}

/// The network called `id`. Errors have the root as their path; the caller sets the key.
pub fn network(id: &str) -> Result<Network, Fault> {
    find(networks(), "network", id, |known| {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        format!("the networks are {}", names.join(", "))
    })
}

pub(super) fn read<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, CatalogError> {
    toml::from_str(text).map_err(|error| CatalogError { file, reason: error.to_string() })
}

fn find<T: Clone>(
    entries: Result<&Entries<T>, CatalogError>,
    kind: &str,
    id: &str,
    list: impl FnOnce(&Entries<T>) -> String,
) -> Result<T, Fault> {
    let entries = entries?;
    entries.get(id).cloned().ok_or_else(|| {
        let names = entries.keys().map(String::as_str);
        let remedy = suggest::remedy(id, names, &list(entries));
        Fault::new(format!("\"{id}\" is not a {kind} of the catalog"), remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::DeviceKind;
    use crate::precision::Precision;

    /// Single-precision peaks in TFLOP/s as printed by the manufacturers. For Intel's processors: twice the
    /// double-precision figure of its export compliance metrics; for the other CPUs: cores × clock × vector width.
    /// The GTX 1060 has the base clock of Zeng 2023, because its manufacturer prints none.
    const FP32_TFLOPS: [(&str, f64); 48] = [
        ("xeon-e5-2620", 0.192),
        ("xeon-e5-2660", 0.2816),
        ("xeon-e5-2620-v2", 0.2016),
        ("xeon-x5670", 0.1406),
        ("xeon-e5-2666-v3", 0.928),
        ("xeon-e5-2686-v4", 1.3248),
        ("opteron-2376", 0.0736),
        ("xeon-core", 0.08),
        ("tesla-k20x", 3.95),
        ("tesla-k80", 4.37),
        ("tesla-k80-board", 8.74),
        ("gtx-1060-6gb", 3.855),
        ("titan-x-maxwell", 6.6),
        ("gtx-1080-ti", 11.3),
        ("p40", 12.0),
        ("tesla-p100-pcie-16gb", 9.3),
        ("tesla-p100-sxm2", 10.6),
        ("tesla-v100-pcie-16gb", 14.0),
        ("tesla-v100-pcie-32gb", 14.0),
        ("tesla-v100-sxm2-16gb", 15.7),
        ("tesla-v100-sxm2-32gb", 15.7),
        ("quadro-rtx-4000", 7.1),
        ("tesla-t4", 8.1),
        ("rtx-2080-ti", 13.4),
        ("titan-v", 14.9),
        ("quadro-rtx-8000", 16.3),
        ("rtx-2070-max-q", 5.46),
        ("rtx-2080-max-q", 6.45),
        ("rtx-2080-super-max-q", 5.99),
        ("a100-pcie-40gb", 19.5),
        ("a100-pcie-80gb", 19.5),
        ("a100-sxm4-40gb", 19.5),
        ("a100-sxm4-80gb", 19.5),
        ("h100-pcie", 51.0),
        ("h100-sxm5", 67.0),
        ("h200-sxm", 67.0),
        ("b200", 75.0),
        ("a10", 31.2),
        ("rtx-3080", 29.8),
        ("rtx-3090", 35.6),
        ("l4", 30.3),
        ("rtx-6000-ada", 91.1),
        ("mi100", 46.1),
        ("mi210", 45.3),
        ("mi250-gcd", 45.3),
        ("rx-5700", 7.95),
        ("rx-7700s", 20.5),
        ("rx-7800-xt", 37.3),
    ];

    fn is_name(id: &str) -> bool {
        let parts = || id.split('-');
        parts().all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
    }

    fn is_positive(value: f64) -> bool {
        value.is_finite() && value > 0.0
    }

    #[test]
    fn every_device_is_usable() {
        for (id, device) in devices().unwrap() {
            assert!(is_name(id), "{id}");
            assert!(!device.name.trim().is_empty() && !device.source.trim().is_empty(), "{id}");
            assert!(device.units > 0, "{id}");
            assert!(is_positive(device.clock.get()), "{id}");
            assert!(is_positive(device.flops_per_cycle), "{id}");
            assert!(is_positive(device.memory.get()), "{id}");
            assert!(is_positive(device.memory_rate.get()), "{id}");
            for rate in [device.tf32, device.fp16, device.bf16].into_iter().flatten() {
                assert!(is_positive(rate.get()) && rate > device.fp32_peak(), "{id}: tensor rate {rate}");
            }
            assert_eq!(device.generation.is_some(), device.kind == DeviceKind::Gpu, "{id}");
            assert_eq!(device.host_link.is_some(), device.kind == DeviceKind::Gpu, "{id}");
            assert!(device.host_link.is_none_or(|rate| is_positive(rate.get())), "{id}");
            assert_eq!((device.efficiency, device.memory_efficiency), (None, None), "{id} is not measured");
        }
    }

    #[test]
    fn every_network_is_usable() {
        for (id, network) in networks().unwrap() {
            assert!(is_name(id), "{id}");
            assert!(!network.name.trim().is_empty() && !network.source.trim().is_empty(), "{id}");
            assert!(is_positive(network.bandwidth.get()), "{id}");
            assert!(is_positive(network.latency.get()), "{id}");
            assert!(network.efficiency > 0.0 && network.efficiency <= 1.0, "{id}");
            assert!(network.startup.get().abs() < f64::EPSILON && network.host_rate.is_none(), "{id}");
        }
    }

    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        for (id, tflops) in FP32_TFLOPS {
            let peak = device(id).unwrap().fp32_peak().get() / 1e12;
            assert!((peak / tflops - 1.0).abs() < 0.03, "{id}: {peak} TFLOP/s, data sheet {tflops}");
        }
        let unchecked: Vec<_> =
            devices().unwrap().keys().filter(|id| FP32_TFLOPS.iter().all(|(known, _)| known != id)).collect();
        assert!(unchecked.is_empty(), "no data-sheet peak for {unchecked:?}");
    }

    /// Zeng 2023, formula 33 with fc = 1: 2304 × 1.545e9 and 1280 × 1.506e9.
    #[test]
    fn zengs_gpus_have_the_rates_of_the_paper() {
        for (id, rate) in [("quadro-rtx-4000", 3.559_68e12), ("gtx-1060-6gb", 1.927_68e12)] {
            let device = device(id).unwrap();
            assert!((device.clock.get() * f64::from(device.units) / rate - 1.0).abs() < 1e-12, "{id}");
        }
    }

    #[test]
    fn tensor_rates_are_dense() {
        let rate = |id, precision| device(id).unwrap().peak(precision).map(|rate| rate.get() / 1e12);
        let near = |got: Option<f64>, want: f64| got.is_some_and(|got| (got / want - 1.0).abs() < 0.01);
        assert!(near(rate("a100-sxm4-80gb", Precision::Tf32), 312.0 / 2.0));
        assert!(near(rate("h100-sxm5", Precision::Bf16), 1979.0 / 2.0));
        assert!(near(rate("h100-pcie", Precision::Fp16), 1513.0 / 2.0));
        assert!(near(rate("b200", Precision::Tf32), 2200.0 / 2.0));
        assert!(near(rate("l4", Precision::Fp16), 242.0 / 2.0));
        assert!(near(rate("rtx-6000-ada", Precision::Fp16), 1457.0 / 4.0));
        assert_eq!(rate("tesla-p100-sxm2", Precision::Fp16), None);
        assert_eq!(rate("tesla-v100-sxm2-16gb", Precision::Bf16), None);
    }

    /// Boards of the full power of their generation keep their clock.
    #[test]
    fn the_clock_falls_with_the_power_of_the_board() {
        let throttle = |id| device(id).unwrap().throttle();
        for id in ["tesla-v100-sxm2-16gb", "rtx-2080-ti", "rtx-3090", "a100-sxm4-80gb", "h100-sxm5", "mi100"]
        {
            assert!(throttle(id) > 0.98, "{id}: {}", throttle(id));
        }
        assert!(throttle("tesla-t4") < 0.5 && throttle("l4") < 0.5);
        assert!((throttle("rtx-2080-max-q") - 1.0).abs() < f64::EPSILON, "the clock is that of its power");
    }

    #[test]
    fn geforce_cards_since_turing_copy_through_host_memory() {
        let without = devices().unwrap().iter().filter(|(_, device)| !device.peer_to_peer());
        let without: Vec<&str> = without.map(|(id, _)| id.as_str()).collect();
        let geforce = ["rtx-2080-ti", "rtx-2070-max-q", "rtx-2080-max-q", "rtx-2080-super-max-q"];
        assert!(
            geforce.iter().chain(&["rtx-3080", "rtx-3090"]).all(|id| without.contains(id)),
            "{without:?}"
        );
        assert_eq!(without.len(), 6);
    }

    #[test]
    fn efficiencies_follow_from_the_packet_formats() {
        for (id, payload, wire) in
            [("1gbe", 1448.0, 1538.0), ("infiniband-edr", 4096.0, 4122.0), ("pcie3-x16", 256.0, 280.0)]
        {
            let efficiency = network(id).unwrap().efficiency;
            assert!((efficiency - payload / wire).abs() < 5e-5, "{id}: {efficiency}");
        }
    }

    #[test]
    fn a_mistyped_name_gets_the_nearest_one() {
        let error = device("Quadro RTX4000").unwrap_err();
        assert_eq!(error.key, crate::fault::KeyPath::root());
        assert_eq!(error.reason, "\"Quadro RTX4000\" is not a device of the catalog");
        assert_eq!(error.remedy, "did you mean \"quadro-rtx-4000\"? run `stepcast devices` for the list");
        assert_eq!(device("abacus").unwrap_err().remedy, "run `stepcast devices` for the list");

        let error = network("10-GbE").unwrap_err();
        assert_eq!(error.reason, "\"10-GbE\" is not a network of the catalog");
        assert!(
            error.remedy.starts_with("did you mean \"10gbe\"? the networks are 1gbe, 10gbe,"),
            "{}",
            error.remedy
        );
    }

    #[test]
    fn a_damaged_list_is_an_error_not_a_panic() {
        let error = read::<Network>("networks.toml", "[1gbe]\nname = 1").unwrap_err();
        assert!(
            error.to_string().starts_with("the built-in catalog networks.toml cannot be read: "),
            "{error}"
        );
        let error = find::<Network>(Err(error), "network", "1gbe", |_| String::new()).unwrap_err();
        assert!(error.remedy.contains("damaged"), "{}", error.remedy);
    }
}
