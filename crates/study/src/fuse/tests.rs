use super::*;
use stepcast_core::scenario::{Document, Override};

fn report(changes: &[&str]) -> FusionReport {
    let text = "[model]\nzoo = \"alexnet\"\n[strategy]\narchitecture = \"all-reduce\"\n";
    let changes: Vec<Override> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    fuse(&Document::new("test", text).scenario(&changes).unwrap()).unwrap()
}

const NETWORKS: [&str; 3] = [
    "cluster.network=1gbe",
    "cluster.network=25gbe",
    "cluster.network={ bandwidth = \"10 Gbit/s\", startup = \"2 ms\" }",
];

#[test]
fn nothing_is_faster_than_the_best_plan() {
    for model in ["alexnet", "resnet50", "bert-base", "mobilenet-v2"] {
        for network in NETWORKS {
            let report = report(&[&format!("model.zoo={model}"), network]);
            let best = report.best().iteration;
            for line in &report.lines {
                assert!(best <= line.iteration * (1.0 + 1e-12), "{model} {network} {}", line.rule);
            }
            assert_eq!(
                report.plan.iter().map(|message| message.gradients.len()).sum::<usize>(),
                report.tensors
            );
            assert!(report.gain_interval[0] >= -1e-12 && report.gain_interval[1] >= report.gain_interval[0]);
            assert!(report.best().gain >= report.settings.pytorch.gain - 1e-12);
        }
    }
}

const DISTURBED: [&str; 2] = ["strategy.all-reduce.interference=0.5", "strategy.all-reduce.channels=2"];

#[test]
fn nothing_is_faster_than_a_searched_plan() {
    for change in DISTURBED {
        for network in NETWORKS {
            let report = report(&[change, network]);
            for line in &report.lines {
                assert!(
                    report.best().iteration <= line.iteration * (1.0 + 1e-12),
                    "{change} {network} {}",
                    line.rule
                );
            }
            assert!(report.search.starts_with("searched"), "{}", report.search);
        }
    }
}

#[test]
fn the_search_is_as_good_as_trying_everything() {
    let layers: Vec<String> =
        (1..=6).map(|n| format!("{{ op = \"linear\", out = {} }}", 100 * n * n)).collect();
    let text = format!(
        "[model.custom]\ninput = [2000]\nlayers = [{}]\n[strategy]\narchitecture = \"all-reduce\"\nbatch = 4096\n",
        layers.join(", ")
    );
    for change in DISTURBED {
        for network in NETWORKS {
            let changes = [change, network].map(|change| Override::parse(change).unwrap());
            let scenario = Document::new("test", &text).scenario(&changes).unwrap();
            let evaluator = Evaluator::new(&scenario).unwrap();
            assert_eq!(evaluator.pass().tensors(), 12);
            let all = search::exhaustive(&evaluator).unwrap();
            let exact = stepcast_analytic::liu2022::optimum(evaluator.pass(), evaluator.update());
            let found = search::improved(&evaluator, exact, &[]).unwrap();
            let (best, found) =
                (evaluator.time(&all.counts).unwrap(), evaluator.time(&found.counts).unwrap());
            assert!(found <= best * 1.002, "{change} {network}: {found} against {best}");
        }
    }
}
