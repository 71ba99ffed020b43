//! Exported networks as scenario files.

use std::path::Path;
use stepcast_core::model::zoo;
use stepcast_core::scenario::ScenarioFile;
use stepcast_trace::{print_model, read_onnx};

#[test]
fn models_can_be_written_and_read_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx/tests/models");
    let mut read = 0;
    for file in folder.read_dir().unwrap().map(|file| file.unwrap().path()) {
        let Some(network) = file.file_name().unwrap().to_str().unwrap().strip_suffix(".onnx.gz") else {
            continue;
        };
        let sizes = match zoo::build(network.split('.').next().unwrap()).unwrap().input().dims() {
            [tokens] => [("sequence".to_owned(), *tokens)].into(),
            _ => Default::default(),
        };
        let model = read_onnx(&file, &sizes).unwrap().model;
        assert_eq!(model.name, network);
        let mut text = Vec::new();
        print_model(&model, &mut text).unwrap();
        let scenario: ScenarioFile = toml::from_str(std::str::from_utf8(&text).unwrap()).unwrap();
        let again = scenario.model.custom.unwrap().build().unwrap();
        assert_eq!(again.layers(), model.layers(), "{network}");
        read += 1;
    }
    assert_eq!(read, 21);
}
