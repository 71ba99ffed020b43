//! Tests of scenarios that name fitted artefacts.

use crate::fault::Fault;
use crate::files::{Files, NoFiles};
use crate::profile::Profile;
use crate::quantity::Bytes;
use crate::scenario::{Document, Scenario};
use crate::speed::Speed;

const LINE: &str = "kind = \"transfer\"\n[model]\nleast = \"1 kB\"\nmost = \"1 MB\"\n\
                    curve = { shape = \"line\", startup = \"1 ms\", bandwidth = \"1 GB/s\" }";
const SHARES: &str = "kind = \"efficiency\"\n[model]\ndevice = \"V100\"\n[model.precision.fp32]\n\
                      peak = \"15.667 TFLOP/s\"\nmemory-rate = \"900 GB/s\"\n\
                      compute = 0.25\nmemory = 0.5\nzeng2023 = 0.4\n";

/// A source of files that returns one text for every path.
struct Text(String);

impl Files for Text {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        NoFiles.profile(path)
    }

    fn text(&self, _: &str) -> Result<String, Fault> {
        Ok(self.0.clone())
    }
}

fn scenario(text: &str, artefact: &str) -> Result<Scenario, String> {
    let document = Document::new("s.toml", format!("model.zoo = \"vgg16\"\n{text}"));
    document.scenario_with(&Text(artefact.to_owned()), &[]).map_err(|error| error.to_string())
}

#[test]
fn a_fitted_line_is_the_curve_of_the_all_reduce_and_is_echoed_by_its_file() {
    let text = "strategy = { architecture = \"all-reduce\", all-reduce.fitted = \"t.toml\" }";
    let asked = scenario(text, LINE).unwrap();
    let curve = asked.strategy.exchange.curve.clone().unwrap();
    assert!((curve.time(Bytes::new(1e6)).get() - 2e-3).abs() < 1e-12);
    assert_eq!(curve.measured(), Some([Bytes::new(1e3), Bytes::new(1e6)]));
    assert!(asked.to_file().resolve_with(&Text(LINE.to_owned())).unwrap() == asked);
    let twice =
        "strategy.all-reduce = { fitted = \"t.toml\", measured = [[\"1 B\", \"1 s\"], [\"2 B\", \"2 s\"]] }";
    assert!(scenario(twice, LINE).unwrap_err().contains("both `measured` and `fitted`"));
}

#[test]
fn fitted_shares_are_a_devices_efficiencies() {
    let peak = crate::machine::catalog::device("tesla-v100-sxm2-16gb").unwrap().fp32_peak();
    let shares = SHARES.replace("15.667 TFLOP/s", &peak.to_string());
    let device =
        |more: &str| format!("[[cluster.workers]]\ndevice = {{ base = \"tesla-v100-sxm2-16gb\", {more} }}");
    let fitted = scenario(&device("fitted = \"e.toml\""), &shares).unwrap();
    let given = scenario(&device("efficiency = 0.25, memory-efficiency = 0.5"), "").unwrap();
    assert_eq!(Speed::of_group(&fitted, 0), Speed::of_group(&given, 0));
    assert!(fitted.to_file().resolve_with(&Text(shares.clone())).unwrap() == fitted);
    let half = format!("{}\n[strategy]\nprecision = \"fp16\"", device("fitted = \"e.toml\""));
    assert!(scenario(&half, &shares).unwrap_err().contains("no steps in fp16"));
    let other = scenario(&device("fitted = \"e.toml\", clock = \"1 GHz\""), &shares).unwrap_err();
    assert!(other.contains("shares of the rates of V100"), "{other}");
}

#[test]
fn artefacts_of_other_kinds_are_refused_with_what_is_wanted() {
    let kernels = "[methods.oyama2016.kernels]\nsgemm = { fitted = \"g.toml\" }";
    for (text, artefact, wanted) in [
        ("strategy.all-reduce.fitted = \"x\"", SHARES, "`transfer`"),
        ("[[cluster.workers]]\ndevice = { base = \"h200-sxm\", fitted = \"x\" }", LINE, "`steps`"),
        (kernels, LINE, "`gemm`"),
        ("strategy.all-reduce.fitted = \"x\"", "kind = \"tea\"", "a fit"),
    ] {
        let error = scenario(text, artefact).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}
