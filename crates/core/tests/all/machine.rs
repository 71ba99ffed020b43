//! The built-in lists are usable and say what data sheets say.

use indexmap::IndexMap;
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::machine::catalog::{
    aliases, device, device_like, devices, machine, machines, network, networks,
};
use stepcast_core::machine::{CatalogError, DeviceKind, Reliability};
use stepcast_core::precision::Precision;
use stepcast_core::suggest;

/// Single-precision peaks in TFLOP/s as printed by the manufacturers. For Intel's processors: twice the
/// double-precision figure of its export compliance metrics; for the other CPUs: cores × clock × vector width.
/// The GTX 1060 has the base clock of Zeng 2023, because its manufacturer prints none.
const FP32_TFLOPS: &str = include_str!("../fp32_tflops.csv");

fn is_name(id: &str) -> bool {
    let parts = || id.split('-');
    parts().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
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
    let known = FP32_TFLOPS.lines().map(|line| line.split_once(',').unwrap());
    for (id, tflops) in known.clone().map(|(id, tflops)| (id, tflops.parse::<f64>().unwrap())) {
        let peak = device(id).unwrap().fp32_peak().get() / 1e12;
        assert!((peak / tflops - 1.0).abs() < 0.03, "{id}: {peak} TFLOP/s, data sheet {tflops}");
    }
    let unchecked: Vec<_> =
        devices().unwrap().keys().filter(|id| known.clone().all(|(known, _)| known != *id)).collect();
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
    for id in ["tesla-v100-sxm2-16gb", "rtx-2080-ti", "rtx-3090", "a100-sxm4-80gb", "h100-sxm5", "mi100"] {
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
        geforce
            .iter()
            .chain(&[
                "rtx-3060", "rtx-3080", "rtx-3090", "rtx-4070", "rtx-4080", "rtx-4090", "rtx-5080",
                "rtx-5090"
            ])
            .all(|id| without.contains(id)),
        "{without:?}"
    );
    assert_eq!(without.len(), 15);
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
    let error = device("Quadro RTX5000").unwrap_err();
    assert_eq!(error.key, KeyPath::root());
    assert_eq!(error.reason, "\"Quadro RTX5000\" is not a device of the catalog");
    assert_eq!(
        error.remedy.to_string(),
        "did you mean \"quadro-rtx-8000\"? see the list of devices, or describe it in a `device` table with `base`, \
         from the template of \"Quadro RTX5000\""
    );
    assert_eq!(device_like("tpu-v8").unwrap().0, "tpu-v7");
    assert_eq!(device_like("abacus").unwrap().0, "h100-sxm5");

    let error = network("10-GbBE").unwrap_err();
    assert_eq!(error.reason, "\"10-GbBE\" is not a network of the catalog");
    let remedy = "did you mean \"10gbe\"? write a rate such as \"100 Gbit/s\", or see the list of networks";
    assert_eq!(error.remedy.to_string(), remedy);
    assert_eq!(machine("rtx4090").unwrap().gpus, 1);
    assert!(machine("rtx-4090").unwrap().price.is_some_and(|price| price.hour < 1.0));
}

#[test]
fn names_are_found_as_people_and_programs_write_them() {
    let name = |id: &str| device(id).map(|device| device.name);
    for (short, id) in [
        ("a100", "a100-sxm4-80gb"),
        ("V100", "tesla-v100-sxm2-16gb"),
        ("h100", "h100-sxm5"),
        ("4090", "rtx-4090"),
        ("RTX4090", "rtx-4090"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("Tesla V100-SXM2-32GB", "tesla-v100-sxm2-32gb"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("AMD Instinct MI300X", "mi300x"),
    ] {
        assert_eq!(name(short), name(id), "{short}");
    }
    let remedy = device("max-q").unwrap_err().remedy.to_string();
    assert_eq!(remedy, "use one of rtx-2070-max-q, rtx-2080-max-q, rtx-2080-super-max-q");
    assert_eq!(network("10-GbE"), network("10gbe"));
    assert_eq!(machine("p4d.24xlarge"), machine("p4d"));
}

/// Devices as drivers name them, machines as clouds do.
#[test]
fn names_are_those_that_tools_print() {
    for (printed, id) in [
        ("NVIDIA H100 80GB HBM3", "h100-sxm5"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("Tesla V100-SXM2-32GB", "tesla-v100-sxm2-32gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("AMD Instinct MI300X", "mi300x"),
    ] {
        assert_eq!(device(printed).unwrap().name, device(id).unwrap().name, "{printed}");
    }
    for (printed, id) in [
        ("Standard_ND96isr_H100_v5", "nd96isr-h100-v5"),
        ("Standard_ND96asr_v4", "nd96asr-v4"),
        ("p4d.24xlarge", "p4d-24xlarge"),
        ("a3-highgpu-8g", "a3-highgpu-8g"),
        ("BM.GPU.A100-v2.8", "bm-gpu-a100-v2-8"),
        ("Standard_NC96ads_A100_v4", "nc96ads-a100-v4"),
        ("DGX H100 SuperPOD", "dgx-h100"),
        ("Standard_NC24ads_A100_v4", "a100-pcie-80gb"),
        ("g2-standard-12", "l4"),
        ("8x H100", "dgx-h100"),
    ] {
        assert_eq!(machine(printed).unwrap().name, machine(id).unwrap().name, "{printed}");
    }
    let half = machine("4 x H100").unwrap();
    assert_eq!((half.gpus, half.ports, half.device.as_str()), (4, 4, "h100-sxm5"));
    assert!(["0xH100", "9xH100", "8xH1000", "8x", "x"].iter().all(|other| machine(other).is_err()));
}

#[test]
fn every_alias_means_an_entry_and_hides_none() {
    let aliases = aliases().unwrap();
    let check = |names: &IndexMap<String, String>, known: Vec<&String>| {
        for (short, name) in names {
            assert!(known.contains(&name), "{short} = {name}");
            let hidden = known.iter().find(|own| suggest::normal(own) == suggest::normal(short));
            assert!(hidden.is_none_or(|own| *own == name), "{short} is an entry");
        }
    };
    check(&aliases.devices, devices().unwrap().keys().collect());
    check(&aliases.networks, networks().unwrap().keys().collect());
    check(&aliases.machines, machines().unwrap().keys().collect());
}

#[test]
fn every_machine_consists_of_known_parts() {
    for (id, machine) in machines().unwrap() {
        assert!(is_name(id), "{id}");
        assert!(!machine.name.trim().is_empty() && !machine.source.trim().is_empty(), "{id}");
        assert!(machine.gpus > 1 && machine.ports > 0, "{id}");
        assert_eq!(machine.device().unwrap().kind, DeviceKind::Gpu, "{id}");
        machine.network().unwrap();
        assert_eq!(machine.nodes().unwrap().workers, machine.gpus, "{id}");
    }
}

#[test]
fn a_damaged_list_is_an_error_not_a_panic() {
    let error = CatalogError { file: "networks.toml", reason: "no value".to_owned() };
    assert_eq!(error.to_string(), "the built-in catalog networks.toml cannot be read: no value");
    assert!(Fault::from(error).remedy.contains("damaged"));
}

#[test]
fn figures_lie_in_their_ranges_and_have_sources() {
    let it = Reliability::shipped().unwrap();
    for figure in
        [&it.interruptions, &it.detection, &it.restart, &it.storage, &it.pue, &it.host_power, &it.supply]
    {
        assert!((figure.range[0]..=figure.range[1]).contains(&figure.value), "{figure:?}");
        assert!(figure.source.len() > 20, "{figure:?}");
    }
    let llama = 419.0 / (54.0 * 24.0 * 16384.0);
    assert!((it.interruptions.value / llama - 1.0).abs() < 1e-3);
}

#[test]
fn prices_lie_within_their_ranges() {
    let prices = machines().unwrap().iter().filter_map(|(id, machine)| Some((id, machine.price.as_ref()?)));
    for (id, price) in prices.clone() {
        let spot = price.spot.map(|spot| (spot.hour, spot.range));
        for (hour, [low, high]) in std::iter::once((price.hour, price.range)).chain(spot) {
            assert!(is_positive(low) && low <= hour && hour <= high && high < 10.0 * low, "{id}");
        }
        assert!(price.spot.is_none_or(|spot| spot.hour < price.hour && is_positive(spot.node_rate)), "{id}");
        assert!(price.date.len() == 7 && price.date.as_str() > "2024" && price.source.len() > 20, "{id}");
    }
    assert!(prices.count() > 20);
}
