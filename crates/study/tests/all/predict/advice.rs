//! What a forecast says about its step: the sentence, the critical path and changes that would help.

use crate::{example, scenario};
use stepcast_analytic::liu2022::Liu2022;
use stepcast_analytic::transformer::Transformer;
use stepcast_core::method::{Method, never_cancelled};
use stepcast_core::prediction::{Part, PartKind, Prediction};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_study::predict::{Advice, CriticalPath, Share, WhatIf, explain, methods};
use stepcast_study::simulate::Simulate;

/// What is said of a prediction by the method that is chosen.
fn explained(text: &str, changes: &[&str]) -> (Scenario, Prediction, Advice) {
    let scenario = scenario(text, changes);
    let method = methods::choose(&scenario).unwrap();
    let prediction = method.predict(&scenario).unwrap();
    let advice = explain(&scenario, method, &prediction);
    (scenario, prediction, advice)
}

fn path(text: &str) -> CriticalPath {
    let scenario = scenario(text, &["methods.simulate.jitter=0"]);
    let predicted = Simulate.predict(&scenario).unwrap();
    let mut advice = explain(&scenario, &Simulate, &predicted);
    advice.find_path(&scenario, &predicted, &never_cancelled);
    advice.critical_path.unwrap()
}

fn share<'a>(shares: &'a [Share], name: &str) -> &'a Share {
    shares.iter().find(|share| share.name.contains(name)).unwrap_or_else(|| panic!("{name}: {shares:?}"))
}

#[test]
fn the_path_fills_the_step() {
    for text in [
        "model.zoo = \"resnet50\"\nstrategy.architecture = \"parameter-server\"",
        "model.zoo = \"vgg16\"\nstrategy.synchronisation = \"async\"\nstrategy.batch = 8",
        "model.zoo = \"vgg16\"\nstrategy.architecture = \"all-reduce\"",
        "model.zoo = \"resnet50\"\nstrategy.synchronisation = \"ssp(2)\"\ncluster.servers.count = 2",
    ] {
        let path = path(text);
        for shares in [&path.resources, &path.layers] {
            let sum: f64 = shares.iter().map(|share| share.share).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{text}: {path:#?}");
        }
    }
}

/// One layer, one worker: it pulls, computes forward and backward, and pushes.
#[test]
fn a_single_layer_is_the_whole_path() {
    let text = "strategy.batch = 4\nstrategy.architecture = \"parameter-server\"\n[model.custom]\nname = \"one\"\ninput = [1000]\n\
                layers = [{ name = \"fc\", op = \"linear\", out = 1000 }]\n\
                [[cluster.workers]]\ncount = 1\ndevice = \"tesla-v100-sxm2-16gb\"\n[cluster.network]\n\
                bandwidth = \"8 Gbit/s\"\nlatency = \"0 s\"\nstartup = \"0 s\"\nefficiency = 1.0";
    let path = path(text);
    // 1,001,000 parameters of 4 bytes at 1 GB/s take 4.004 ms each way.
    let link = share(&path.resources, "uplink").time.get();
    assert!((link / 4.004e-3 - 1.0).abs() < 1e-6, "{path:#?}");
    assert!((share(&path.resources, "downlink").time.get() / link - 1.0).abs() < 1e-6, "{path:#?}");
    assert!(share(&path.layers, "fc").share > 1.0 - 1e-9, "{path:#?}");
}

/// Where the link is slow, the path runs over it; where it is fast, over the worker.
#[test]
fn the_path_follows_the_bottleneck() {
    let text = |rate: &str| {
        format!(
            "model.zoo = \"vgg16\"\ncluster.servers.count = 1\n[cluster.network]\nbandwidth = \"{rate}\"\ntransport = \"ideal\""
        )
    };
    let slow = path(&text("100 Mbit/s"));
    assert!(slow.resources[0].name.contains("link"), "{slow:#?}");
    // The layer with three quarters of the parameters.
    assert_eq!(slow.layers[0].name, "classifier.0");
    let gathered = path(&format!("strategy.architecture = \"all-reduce\"\n{}", text("100 Mbit/s")));
    assert_eq!(gathered.layers[0].name, "classifier.0.bias … classifier.0.weight", "{gathered:#?}");
    let fast = path(&text("10 Tbit/s"));
    assert!(fast.resources[0].name.contains("worker") && fast.resources[0].share > 0.9, "{fast:#?}");
}

#[test]
fn slow_input_is_named() {
    let said = |rate: u32| {
        let text = format!(
            "strategy = {{ batch = 64, architecture = \"all-reduce\" }}\ninput.rate = \"{rate} samples/s\"\n\
             [model]\nzoo = \"resnet50\"\n[cluster]\nnetwork = \"25gbe\"\n\
             workers = [{{ device = \"tesla-v100-sxm2-16gb\", count = 8 }}]\n"
        );
        let scenario = scenario(&text, &[]);
        explain(&scenario, &Liu2022, &Liu2022.predict(&scenario).unwrap()).sentence
    };
    assert!(said(50).starts_with("The input pipeline is the bottleneck: workers wait"), "{}", said(50));
    assert!(said(100_000).starts_with("Computing is the bottleneck"), "{}", said(100_000));
}

/// What is said of the software of servers.
fn told(changes: &[&str]) -> Option<String> {
    let scenario = scenario(&example("zeng2023-table7.toml"), changes);
    let layerwise = methods::find("layerwise").unwrap();
    let said = explain(&scenario, layerwise, &layerwise.predict(&scenario).unwrap()).sentence;
    said.find("Assumed, not measured: ").map(|place| said[place..].to_owned())
}

/// Zeng's cluster on links so fast that servers may be the limit: whether more bandwidth helps depends on their software,
/// and the rate that decides lies in its interval. As published, servers have none.
#[test]
fn advice_names_the_rate_that_decides() {
    assert_eq!(told(&[]), None);
    let own = ["as-published=false", "cluster.network=\"10gbe\""];
    let text = told(&own).unwrap();
    assert!(text.starts_with("Assumed, not measured: the software of a server moves "), "{text}");
    let networks = ["10gbe", "25gbe", "100gbe"].map(|name| format!("cluster.network=\"{name}\""));
    let told_of = |network: &String| told(&[own[0], network]).unwrap();
    let conditional =
        networks.iter().filter(|network| told_of(network).contains("helps if it moves more than"));
    assert!(conditional.count() > 0);
    assert_eq!(told(&[own[0], own[1], "cluster.servers.software=\"none\""]), None);
}

fn with(parts: &[(PartKind, f64)]) -> String {
    let text =
        "[model]\nzoo = \"gpt2\"\n[strategy.plan]\n[[cluster.workers]]\ncount = 1\ndevice = \"h100-sxm5\"";
    let scenario = scenario(text, &[]);
    let mut prediction = Transformer.predict(&scenario).unwrap();
    prediction.iteration = Seconds::new(parts.iter().map(|part| part.1).sum());
    prediction.breakdown =
        parts.iter().map(|&(kind, time)| Part { kind, time: Seconds::new(time) }).collect();
    explain(&scenario, &Transformer, &prediction).sentence
}

#[test]
fn the_longest_wait_comes_first() {
    let found = with(&[
        (PartKind::Compute, 63.0),
        (PartKind::Recompute, 21.0),
        (PartKind::Gradients, 6.0),
        (PartKind::PipelineBubble, 10.0),
    ]);
    let expected = "Computing is the bottleneck. The last stage to finish computes 63 % of the step and recomputes 21 %; \
                    it waits for other stages 10 %, for the sum of gradients 6 %.";
    assert_eq!(found, expected);
}

#[test]
fn what_takes_longest_is_named() {
    let found = with(&[
        (PartKind::Compute, 30.0),
        (PartKind::Recompute, 0.0),
        (PartKind::TensorParallelism, 69.9),
        (PartKind::Gradients, 0.1),
    ]);
    let expected = "Tensor parallelism is the bottleneck. The last stage to finish computes 30 % of the step; it waits \
                    for tensor parallelism 70 %.";
    assert_eq!(found, expected);
    assert!(
        with(&[(PartKind::Compute, 4.0), (PartKind::Recompute, 0.0), (PartKind::Host, 6.0)])
            .starts_with("The host is the bottleneck")
    );
    let bubble =
        with(&[(PartKind::Compute, 4.0), (PartKind::Recompute, 0.0), (PartKind::PipelineBubble, 6.0)]);
    assert!(bubble.starts_with("Stages wait for each other most of all"), "{bubble}");
    assert_eq!(
        with(&[(PartKind::Compute, 4.0), (PartKind::Recompute, 0.0)]),
        "Computing is the bottleneck. The last stage to finish computes 100 % of the step."
    );
}

fn what_if(text: &str) -> Vec<WhatIf> {
    let (scenario, now, mut advice) = explained(text, &[]);
    advice.try_changes(&scenario, methods::choose(&scenario).unwrap(), &now);
    advice.what_if
}

fn of<'a>(changes: &'a [WhatIf], name: &str) -> Option<&'a WhatIf> {
    changes.iter().find(|change| change.change.contains(name))
}

#[test]
fn another_strategy_is_compared_by_a_method_that_models_both() {
    let changes = what_if("[model]\nzoo = \"vgg16\"\n[cluster]\nnetwork = \"10gbe\"\nservers.count = 1\n");
    let gathered = of(&changes, "all-reduce").unwrap();
    assert_eq!(gathered.method, "simulate");
    assert!(gathered.gain > 0.5, "{gathered:?}");
    let local = of(&changes, "local-sgd").unwrap();
    let now = |change: &WhatIf| change.throughput.get() / (1.0 + change.gain);
    assert!((now(gathered) / now(local) - 1.0).abs() < 1e-9, "one basis: {changes:?}");
    let local = of(&changes, "local-sgd(8) instead of bsp").unwrap();
    assert_eq!(local.method, "layerwise");
    assert!(local.gain > 1.0, "{local:?}");
    assert!(changes.windows(2).all(|pair| pair[0].gain >= pair[1].gain));
}

#[test]
fn what_does_not_fit_into_memory_is_left_out() {
    let text = |batch: u32| {
        format!(
            "strategy.batch = {batch}\nstrategy.architecture = \"parameter-server\"\n[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ncount = 4\n\
             device = \"tesla-v100-sxm2-16gb\"\n"
        )
    };
    assert!(of(&what_if(&text(16)), "2× batch").is_some());
    let large = what_if(&text(200));
    assert!(of(&large, "2× batch").is_none(), "{large:?}");
    // What does not fit now may have been estimated too high: only what needs more is left out.
    let full = what_if(&text(300));
    assert!(of(&full, "2× batch").is_none() && of(&full, "all-reduce").is_some(), "{full:?}");
}

#[test]
fn fewer_machines_are_tried() {
    let unequal = what_if(
        "[model]\nzoo = \"vgg16\"\n[cluster.servers]\ncount = 1\nsoftware = \"none\"\n[cluster]\nnetwork = \"100gbe\"\n\
         [[cluster.workers]]\ncount = 2\ndevice = \"quadro-rtx-4000\"\n\
         [[cluster.workers]]\ncount = 1\ndevice = \"gtx-1060-6gb\"\nspeed = 0.1\n",
    );
    assert!(of(&unequal, "without the slowest worker").is_some(), "{unequal:?}");
    assert!(of(&unequal, "the fastest worker alone").unwrap().gain > 0.0, "{unequal:?}");
    let nodes = what_if(
        "strategy.architecture = \"all-reduce\"\n[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ncount = 16\n\
         [cluster]\nnetwork = \"1gbe\"\nnodes = { workers = 8 }\n",
    );
    assert!(of(&nodes, "one node instead of 2").unwrap().gain > 0.0, "{nodes:?}");
}

#[test]
fn the_speed_up_compares_with_it() {
    let (_, prediction, advice) = explained(&example("quickstart.toml"), &[]);
    let slow = advice.alone.unwrap();
    assert!((prediction.throughput / slow.throughput / prediction.speedup - 1.0).abs() < 1e-12);
    assert!(slow.device.contains("RTX 4000"), "{slow:?}");
    let slower = "slower than one of its workers";
    assert!(advice.sentence.contains(slower), "{}", advice.sentence);
    let (.., fast) = explained(&example("all-reduce.toml"), &[]);
    assert!(fast.alone.is_some() && !fast.sentence.contains(slower), "{}", fast.sentence);
    let only =
        "model.zoo = \"vgg16\"\nstrategy.architecture = \"stand-alone\"\n[[cluster.workers]]\ncount = 1";
    assert_eq!(explained(only, &[]).2.alone, None);
}
