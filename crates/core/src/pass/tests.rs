use super::*;
use crate::fault::Fault;
use crate::files::Files;
use crate::profile::{FORMAT, Operation, Profile, Resource, Step};
use crate::scenario::{Document, Scenario};

/// One second of forward pass, then `b` in 2 s and `a` in 3 s. The gradients are listed in reverse, with `c`, which
/// is ready together with `b`, between them.
fn profile(steps: Vec<Step>) -> Profile {
    let operation = |name: &str, resource, bytes, after: &[u32]| Operation {
        name: name.to_owned(),
        resource,
        bytes,
        after: after.to_vec(),
        server: 0,
    };
    Profile {
        format: FORMAT.to_owned(),
        name: "made up".to_owned(),
        source: "by hand".to_owned(),
        batch: 8,
        link_rate: None,
        operations: vec![
            operation("parameters", Resource::Downlink, 600, &[]),
            operation("forward", Resource::Worker, 0, &[0]),
            operation("backward b", Resource::Worker, 0, &[1]),
            operation("backward a", Resource::Worker, 0, &[1]),
            operation("a", Resource::Uplink, 100, &[3]),
            operation("c", Resource::Uplink, 200, &[2]),
            operation("b", Resource::Uplink, 300, &[2]),
        ],
        steps,
    }
}

/// A step that computes `b` first, one that does not, and the first one again.
fn steps() -> [Step; 3] {
    let step = |start: [f64; 7], end: [f64; 7]| Step { start: start.into(), end: end.into(), length: 8.0 };
    let usual = step([0.0, 1.0, 2.0, 4.0, 7.0, 4.0, 4.0], [1.0, 2.0, 4.0, 7.0, 8.0, 5.0, 5.0]);
    let other = step([0.0, 1.0, 5.0, 2.0, 5.0, 7.0, 7.0], [1.0, 2.0, 7.0, 5.0, 6.0, 8.0, 8.0]);
    [usual.clone(), other, usual]
}

fn layers(pass: &Pass) -> Vec<(f64, f64)> {
    pass.layers.iter().map(|layer| (layer.backward.get(), layer.gradients.get())).collect()
}

#[test]
fn gradients_come_in_the_order_in_which_they_are_ready() {
    let [usual, ..] = steps();
    let profile = profile(vec![usual]);
    let recorded = Recorded::new(&profile).unwrap();
    let gradients = recorded.gradients();
    let names: Vec<&str> = gradients.iter().map(|gradient| gradient.name.as_str()).collect();
    // Gradients that are ready together keep the order of the profile.
    assert_eq!(names, ["c", "b", "a"]);
    let pass = recorded.mean(2.0);
    assert_eq!((pass.forward.get(), pass.update.get()), (6.0, 0.0));
    assert_eq!(layers(&pass), [(0.0, 200.0), (0.0, 300.0), (6.0, 100.0)]);
    let sizes: Vec<Bytes> = gradients.iter().map(|gradient| gradient.size).collect();
    assert_eq!(sizes, pass.layers.iter().map(|layer| layer.gradients).collect::<Vec<_>>());
}

#[test]
fn all_steps_keep_the_order_of_the_mean_one() {
    let profile = profile(steps().into());
    let passes: Vec<Pass> = Recorded::new(&profile).unwrap().steps(1.0).collect();
    assert_eq!(layers(&passes[0]), [(0.0, 200.0), (0.0, 300.0), (3.0, 100.0)]);
    // In this step `a` is ready after 4 s and has to wait for the others until 6 s.
    assert_eq!(layers(&passes[1]), [(0.0, 200.0), (0.0, 300.0), (0.0, 100.0)]);
    assert_eq!(passes[1].forward, Seconds::new(6.0));
    assert_eq!(passes[2], passes[0]);
    for pass in &passes {
        assert_eq!(pass.computing(), Seconds::new(6.0));
    }
}

struct Made(Profile);

impl Files for Made {
    fn profile(&self, _: &str) -> Result<Profile, Fault> {
        Ok(self.0.clone())
    }
}

fn with_buckets(buckets: &str) -> Result<Scenario, Fault> {
    let text = format!(
        "[model]\nprofile = \"p.json\"\n[strategy]\narchitecture = \"all-reduce\"\n[strategy.fusion]\nbuckets = {buckets}\n"
    );
    Document::new("test", text).scenario_with(&Made(profile(steps().into())), &[])
}

#[test]
fn buckets_name_gradients_in_that_order() {
    let scenario = with_buckets(r#"[["c"], ["b", "a"]]"#).unwrap();
    assert_eq!(scenario.strategy.exchange.fusion, crate::strategy::Fusion::Buckets([1, 2].into()));
    let as_recorded = with_buckets(r#"[["a"], ["c", "b"]]"#).unwrap_err();
    assert!(as_recorded.to_string().contains("\"c\" is missing before \"a\""), "{as_recorded}");
}

#[test]
fn gradients_that_nothing_makes_are_refused_where_they_matter() {
    let mut profile = profile(steps().into());
    profile.operations[5].after = vec![0];
    let refused = Recorded::new(&profile).unwrap_err();
    assert_eq!(refused.reason, "the gradient \"c\" waits for nothing that is computed");
    let text = "[model]\nprofile = \"p.json\"\n";
    assert!(Document::new("test", text).scenario_with(&Made(profile), &[]).is_ok());
}
