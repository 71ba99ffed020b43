//! The commands of `examples/fitted-device/README.md` run one after the other, from measurements to a map.

use crate::{done, process, refused_by, root};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const DATA: [&str; 5] = [
    "validation/gemm/h200.csv.gz",
    "validation/kit/kernels_h200.csv",
    "validation/kit/machine_h200.jsonl.gz",
    "validation/kit/steps_h200_more.jsonl.gz",
    "validation/steps/steps_h200.jsonl.gz",
];

struct Copy {
    folder: TempDir,
}

impl Copy {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = fs::read_dir(root().join("examples/fitted-device")).unwrap();
        let own = own.map(|entry| Path::new("examples/fitted-device").join(entry.unwrap().file_name()));
        for file in own.chain(DATA.map(PathBuf::from)) {
            let to = folder.path().join(&file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(root().join(&file), to).unwrap();
        }
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("examples/fitted-device")
    }

    fn run(&self, arguments: &[&str]) -> String {
        done(process(arguments).current_dir(self.path()).output().unwrap())
    }

    fn prediction(&self, arguments: &[&str]) -> Value {
        let answer = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str::<Value>(&answer).unwrap()["prediction"].take()
    }
}

#[test]
fn the_commands_lead_from_measurements_to_a_map() {
    let copy = Copy::new();
    let readme = fs::read_to_string(copy.path().join("README.md")).unwrap();
    let commands: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    stepcast ")).collect();
    assert!(commands.len() >= 12, "{commands:?}");
    for command in commands {
        copy.run(&command.split(' ').collect::<Vec<_>>());
    }
    for map in ["map.svg", "kernels-map.svg"] {
        assert!(fs::read_to_string(copy.path().join(map)).unwrap().contains("</svg>"), "{map}");
    }
    from_the_fit(&copy);
    from_the_machine(&copy);
    named_where_they_do_not_belong(&copy);
}

/// The predictions rest on what was fitted: no assumed efficiency, computing as long as measured.
fn from_the_fit(copy: &Copy) {
    let steps = copy.prediction(&["predict", "sprint.toml", "--method", "oyama2016"]);
    let codes: Vec<&str> =
        steps["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
    assert!(!codes.contains(&"assumed-efficiency"), "{codes:?}");
    // ResNet-50 in fp32 with batch 16 was measured at 23.4 ms.
    let compute = steps["groups"][0]["compute_s"].as_f64().unwrap();
    assert!((compute / 0.0234 - 1.0).abs() < 0.2, "{compute}");
    let echoed = copy.run(&["predict", "kernels-sprint.toml", "--method", "oyama2016", "--json"]);
    let echoed: Value = serde_json::from_str(&echoed).unwrap();
    let kernels = &echoed["scenario"]["methods"]["oyama2016"]["kernels"];
    assert_eq!(kernels["sgemm"]["fitted"], "gemm.toml");
    assert_eq!(kernels["fitted"], "kernels.toml");
    let mut codes = echoed["prediction"]["warnings"].as_array().unwrap().iter().map(|w| &w["message"]);
    assert!(codes.any(|message| message.as_str().unwrap().contains("kernels bound by memory")), "{echoed:#}");
    let half = ["predict", "servers.toml", "--method", "zeng2023", "--set", "cluster.workers.speed=0.5"];
    let [whole, half] = [&half[..4], &half[..]]
        .map(|asked| copy.prediction(asked)["groups"][0]["compute_s"].as_f64().unwrap());
    assert!((half / whole - 2.0).abs() < 1e-6, "{whole} {half}");
}

/// A measured machine names its device, is not assumed, and narrows what the device may reach.
fn from_the_machine(copy: &Copy) {
    let asked = |more: &[&str]| -> Value {
        let answer = copy.run(&[&["predict", "transformer.toml", "--json"], more].concat());
        serde_json::from_str(&answer).unwrap()
    };
    let (measured, assumed) = (asked(&[]), asked(&["--set", "cluster.workers.device=h200-sxm"]));
    let codes = |answer: &Value| -> Vec<String> {
        let warnings = answer["prediction"]["warnings"].as_array().unwrap().iter();
        warnings.map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!codes(&measured).contains(&"assumed-efficiency".to_owned()), "{:?}", codes(&measured));
    assert!(codes(&assumed).contains(&"assumed-efficiency".to_owned()), "{:?}", codes(&assumed));
    assert_eq!(measured["scenario"]["cluster"]["workers"][0]["device"]["name"], "NVIDIA H200 SXM 141GB");
    // What software stacks differ by stays open; what the device reaches does not.
    let width = |answer: &Value| -> f64 {
        let causes = answer["interval"]["by_assumption"].as_array().unwrap().iter();
        let device = causes.filter(|cause| cause["name"].as_str().unwrap().starts_with("rate of products"));
        device.map(|cause| cause["width"].as_f64().unwrap()).sum()
    };
    assert!(width(&measured) < 0.7 * width(&assumed), "{} {}", width(&measured), width(&assumed));
    let step = |answer: &Value| answer["prediction"]["iteration_s"].as_f64().unwrap();
    assert!((step(&measured) / step(&assumed)).ln().abs() < 0.3, "{} {}", step(&measured), step(&assumed));
}

/// One error that says which artefact is wanted.
fn named_where_they_do_not_belong(copy: &Copy) {
    for (scenario, change, wanted) in [
        ("sprint.toml", "cluster.workers.device.fitted=gemm.toml", "`stepcast fit steps`"),
        ("transformer.toml", "cluster.workers.device.base=a100", "fit them again"),
        ("transformer.toml", "strategy.plan.collectives=machine.toml", "[[times]]"),
        ("sprint.toml", "strategy.all-reduce.fitted=steps.toml", "`stepcast fit transfer`"),
        ("kernels-sprint.toml", "methods.oyama2016.kernels.fitted=gemm.toml", "`stepcast fit kernels`"),
        ("kernels-sprint.toml", "methods.oyama2016.kernels.sgemm.fitted=kernels.toml", "`stepcast fit gemm`"),
        ("kernels-sprint.toml", "strategy.precision=tf32", "another `precision`"),
        ("servers.toml", "cluster.workers.device.base=h100-sxm5", "fit them again"),
        ("servers.toml", "cluster.workers.device.fitted=README.md", "`stepcast fit`"),
        ("servers.toml", "cluster.workers.device.fitted=missing.toml", "`stepcast fit`"),
    ] {
        let mut predict = process(&["predict", scenario, "--set", change]);
        let stderr = refused_by(predict.current_dir(copy.path()).output().unwrap());
        assert!(stderr.contains(wanted), "{change}: {stderr}");
    }
}
