//! Scenarios as published: every method of a paper gives the paper's numbers, whatever is known beyond it.

use crate::{example, scenario};
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::Scenario;
use stepcast_study::predict::methods;

fn predicted(method: &str, scenario: &Scenario) -> Prediction {
    let method = methods::find(method).unwrap();
    assert_eq!(method.beyond_paper(scenario), [""; 0]);
    method.predict(scenario).unwrap()
}

/// The printed tables of Zeng 2023.
const TABLES: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/zeng2023/tables2-7.csv"));

/// Model, batch and printed time of the cells of a table.
fn printed(table: &str) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
    let rows = TABLES.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let cells = rows.filter(move |row| row[0] == table && row[9] != "misprint");
    cells.map(|row| (row[1], row[3], row[4].parse().unwrap()))
}

/// Zeng 2023, Tables 6 and 7, with the parameters that TensorFlow ships; and, with the authors' P and number of pushes, Table 5. AlexNet's
/// operations outside Table 5 are not those of Table 1.
#[test]
fn zeng_prints_these_times() {
    for (table, network) in [("6", "1gbe"), ("7", "10gbe")] {
        for (model, batch, printed) in printed(table).filter(|(model, ..)| *model != "alexnet") {
            let preset = match model {
                "vgg11" => "vgg11a",
                "vgg16" => "vgg16d",
                "vgg19" => "vgg19e",
                other => other,
            };
            let changes = [
                format!("model.zoo=zeng2023/{preset}"),
                format!("strategy.batch={batch}"),
                format!("cluster.network={network}"),
            ];
            let scenario =
                scenario(&example("zeng2023-table7.toml"), &changes.each_ref().map(String::as_str));
            let step = predicted("zeng2023", &scenario).iteration.get();
            // The authors send nothing before the end of the backward pass, which VGG's many operations show.
            let tolerance = if model == "resnet50" { 0.006 } else { 0.01 };
            assert!((step - printed).abs() < tolerance, "table {table}, {model}, {batch}: {step}");
        }
    }
    let table5 = r#"
        as-published = true
        model.zoo = "zeng2023/vgg11a"
        strategy = { batch = 32, architecture = "parameter-server" }
        cluster = { network = "1gbe", workers = [{ count = 2, device = "quadro-rtx-4000" }] }
        methods.zeng2023 = { parameters = "531405568 B", pushes = 19 }
    "#;
    let pulls = |changes: &[&str]| predicted("zeng2023", &scenario(table5, changes)).iteration.get();
    let (.., printed) = printed("5").find(|(model, batch, _)| (*model, *batch) == ("vgg11", "32")).unwrap();
    assert!((pulls(&[]) - printed).abs() < 0.005, "{}", pulls(&[]));
    // Half of the gradients: two pushes of half the time.
    let halved = pulls(&["methods.zeng2023.gradients=265702784B"]);
    assert!((pulls(&[]) - halved - 2.0 * 0.265_702_784 * 8.0).abs() < 1e-9, "{halved}");
}

/// Liu 2022, section 4.1: a scaling factor of 0.25.
#[test]
fn liu_prints_this_scaling_factor() {
    let factor = predicted("liu2022", &scenario(&example("layer-replacement.toml"), &[])).scaling_factor;
    assert!((factor - 0.25).abs() < 0.002, "{factor}");
}

/// Lin 2018 and Cynthia: phases of bytes over the nominal rate and operations over the peak rate.
#[test]
fn phases_are_counted() {
    let text = r#"
        as-published = true
        model.zoo = "resnet50"
        strategy = { batch = 32, synchronisation = "async", architecture = "parameter-server" }
        cluster = { network = "10gbe", workers = [{ count = 1, device = "tesla-v100-sxm2-16gb", efficiency = 0.45 }] }
    "#;
    let scenario = scenario(text, &[]);
    let bytes = scenario.workload.bytes().get();
    let peak = scenario.cluster.groups[0].device.fp32_peak().get();
    let expected = 2.0 * bytes * 8.0 / 10e9 + 3.0 * 32.0 * scenario.workload.forward.get() / (0.45 * peak);
    let step = predicted("lin2018", &scenario).iteration.get();
    assert!((step / expected - 1.0).abs() < 1e-9, "{step} {expected}");
}

/// Eq. 15 adds the wait of a buffer to a busy network. CSF is the factor of all gradients in one message.
#[test]
fn buffers_wait_as_printed() {
    let text = include_str!("../../../../examples/layer-replacement.toml");
    let factor = |sets: &[&str]| predicted("liu2022", &scenario(text, sets)).scaling_factor;
    let serial = factor(&["strategy.fusion={rule=\"buffer\", size=\"1 MB\"}"]);
    let concurrent = factor(&["strategy.fusion={rule=\"buffer\", size=\"1 MB\", reading=\"concurrent\"}"]);
    assert!(serial < 0.97 * concurrent, "{serial} {concurrent}");
    let none = predicted("liu2022", &scenario(text, &[]));
    let all = predicted("liu2022", &scenario(text, &["strategy.fusion.rule=\"all\""]));
    assert!((none.csf.unwrap() / all.scaling_factor - 1.0).abs() < 1e-9);
    assert!(none.csf.unwrap() < 0.5 && (none.scaling_factor - 0.25).abs() < 1e-5);
}

/// Without the switch, the answer tells what it adds.
#[test]
fn additions_are_told() {
    let quick = scenario("model.zoo = \"vgg16\"\nstrategy.architecture = \"all-reduce\"", &[]);
    let told = methods::find("liu2022").unwrap().beyond_paper(&quick);
    assert_eq!(told.len(), 3, "{told:?}");
    let file = scenario("as-published = true\nmodel.zoo = \"vgg16\"", &[]).to_file();
    assert!(file.as_published && file.resolve().unwrap().as_published);
}
