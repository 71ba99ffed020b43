use super::*;
use crate::import::testing::imported_profile;
use stepcast_core::pass::{Pass, Recorded};
use stepcast_core::profile::Resource;
use stepcast_core::quantity::Bytes;

fn pass(profile: &Profile) -> Pass {
    Recorded::new(profile).unwrap().steps(1.0).next().unwrap()
}

fn imported(text: &str) -> Result<Imported<Profile>, Fault> {
    imported_profile("net.csv", text)
}

#[test]
fn a_table_is_a_forward_and_a_backward_pass() {
    let tables = [
        "layer,forward_ms,backward_ms,bytes\na,1,2,100\nb,3,4,0\nc,5,6,300\n",
        "# by hand\nbytes;backward [us];Layer;comment;forward\n100;2e3;a;;1 ms\n0;4e3;b;x;3 ms\n300;6e3;c;;5000 us",
        "\u{feff}layer\tforward\tbackward\tkB\r\na\t1 ms\t2 ms\t0.1\r\nb\t3ms\t4ms\t0\r\n\r\nc\t5ms\t6ms\t0.3\r\n",
    ];
    for table in tables {
        let Imported { content: found, notes, .. } = imported(table).unwrap();
        assert_eq!(notes, Vec::<String>::new());
        let names: Vec<&str> = found.operations.iter().map(|operation| operation.name.as_str()).collect();
        assert_eq!(names[..5], ["a, weight", "c, weight", "a, forward", "b, forward", "c, forward"]);
        assert_eq!(names[5..7], ["c, backward", "c, gradient"]);
        let pass = pass(&found);
        // Forward of all layers and backward of the last come before the first gradient.
        assert!((pass.forward.get() - 0.015).abs() < 1e-12, "{:?}", pass.forward);
        assert!((pass.computing() + pass.update - Seconds::new(0.021)).get().abs() < 1e-12);
        assert_eq!(pass.gradients(), Bytes::new(400.0));
        assert_eq!(found.bytes(Resource::Downlink), found.bytes(Resource::Uplink));
    }
}

#[test]
fn backward_alone_takes_twice_forward() {
    let Imported { content: found, notes, .. } = imported("backward_ms,bytes\n2,100\n4,200\n").unwrap();
    assert!(notes[0].contains("Liu 2022"), "{notes:?}");
    assert!((found.steps[0].length - 0.009).abs() < 1e-12);
    assert_eq!(found.operations[0].name, "layer 1, weight");
}

#[test]
fn the_last_pass_of_a_caffe_log_counts() {
    let line = |text: &str| format!("I0214 23:25:18.918774 37167 distributed.cpp:112] [{text}]\n");
    let log = [
        "0, 25, 0, 0",
        "1, 5, 0, 0",
        "0, 25, 2000, 7",
        "1, 5, 2000, 7",
        "2, 50, 4000.5, 9, 1",
        "3, 10, 4000.5, 0, 0",
    ];
    let Imported { content: found, notes, .. } = imported(&log.map(line).concat()).unwrap();
    assert!(notes[0].contains("Liu 2022"), "{notes:?}");
    let pass = pass(&found);
    let gradients: Vec<f64> = pass.layers.iter().map(|layer| layer.gradients.get()).collect();
    assert_eq!(gradients, [240.0, 120.0], "in order of the backward pass, weight and bias together");
    assert!((found.steps[0].length - 1.5 * 6000.5e-6).abs() < 1e-12);
    let wrong = imported(&(line("0, 25, 2000, 7") + "and then nothing\n")).unwrap_err().to_string();
    assert!(wrong.contains(":2") && wrong.contains("not a tensor"), "{wrong}");
    assert!(imported(&line("0, 25, 1e30, 7")).is_err());
    assert!(imported(&line("0, 25, 0, 0")).is_err(), "no layer takes any time");
}

#[test]
fn a_graph_is_put_in_order() {
    let line = |id: u32, size: u32| {
        format!(
            "node{id} -- Conv2d(1, 2) -- forward_compute_time={id}.0, backward_compute_time=1.0, \
             activation_size=8.0, parameter_size={size}.000\n"
        )
    };
    let graph = format!("{}{}{}\tnode1 -- node2\n\tnode2 -- node3\n", line(3, 30), line(1, 10), line(2, 0));
    let profile = imported(&graph).unwrap().content;
    let forward = profile.operations.iter().filter(|operation| operation.name.ends_with("forward"));
    let names: Vec<&str> = forward.map(|operation| operation.name.as_str()).collect();
    assert_eq!(names, ["node1 Conv2d, forward", "node2 Conv2d, forward", "node3 Conv2d, forward"]);
    assert!((profile.steps[0].length - 0.009).abs() < 1e-12);
    let refused = |graph: String| imported(&graph).unwrap_err();
    assert!(refused(format!("{graph}\tnode3 -- node1\n")).reason.contains("circle"));
    assert!(refused(format!("{graph}\tnode3 -- node9\n")).reason.contains("no line"));
    assert!(refused(format!("{graph}{}", line(1, 5))).reason.contains("twice"));
    assert!(refused(graph.replace("parameter_size=10.000", "")).reason.contains("parameter_size"));
}

#[test]
fn waits_are_the_backward_pass() {
    let text = "what the columns are\n1\n3\n500,40\n100,0\n200,60\n";
    let Imported { content: found, notes, .. } = imported(text).unwrap();
    assert_eq!(notes.len(), 1);
    let pass = pass(&found);
    assert!((pass.forward.get() - (400e-6 + 500e-6)).abs() < 1e-12);
    assert!((pass.layers[1].backward.get() - 300e-6).abs() < 1e-12);
    assert!(imported(&text.replace("\n3\n", "\n4\n")).unwrap_err().reason.contains("announces 4"));
}

#[test]
fn what_is_wrong_names_the_line() {
    let header = "layer,forward_ms,backward_ms,bytes\n";
    for (rows, line, reason) in [
        ("a,1,2,100\nb,1,2", 3, "3 cells"),
        ("a,1,-2,100", 2, "is impossible"),
        ("a,1,1e300,100", 2, "is impossible"),
        ("a,1,2,1e20", 2, "is impossible"),
        ("a,1,nan,100", 2, "cannot be read"),
        ("a,1,x,100", 2, "backward cannot be read"),
        ("a,1,2 MB,100", 2, "not a unit"),
    ] {
        let error = imported(&format!("{header}{rows}")).unwrap_err();
        assert!(error.origin().ends_with(&format!("net.csv:{line}")), "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
    assert!(imported("layer,forward,backward,bytes\na,1,2,3").unwrap_err().reason.contains("no unit"));
    assert!(imported("layer,backward_ms,bwd_ms,bytes\na,1,2,3").unwrap_err().reason.contains("same"));
    assert!(imported(header).unwrap_err().reason.contains("no layers"));
    assert!(imported(&format!("{header}a,1,2,0")).unwrap_err().reason.contains("no layer has gradients"));
    assert!(imported(&format!("{header}a,0,0,9")).unwrap_err().reason.contains("takes any time"));
    let long = format!("{header}{},1,2,3", "a".repeat(100_000));
    assert!(imported(&long).unwrap_err().reason.contains("no end"));
}
