use stepcast_core::model::{Counting, zoo};
use stepcast_trace::onnx::{Options, onnx};
#[test]
fn look() {
    for entry in std::fs::read_dir(std::env::var("ONNX_DIR").unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        if !file.ends_with(".gz") { continue; }
        let name = file.split('.').next().unwrap();
        let model = zoo::build(name).unwrap();
        let sequence = model.input().dims()[0];
        let mut options = Options::default();
        if model.input().dims().len() == 1 { options.sizes.insert("sequence".into(), sequence); }
        match onnx(&path, &options) {
            Err(error) => println!("{file}: {error}"),
            Ok(imported) => {
                let same = imported.model.cost() == model.cost();
                println!("{file}: {} layers (zoo {}), same {same}, params {} {}", imported.model.layers().len(), model.layers().len(), imported.model.parameters(), model.parameters());
                if !same { println!("   {:?}\n   {:?}", imported.model.cost(), model.cost()); }
                let g = |m: &stepcast_core::model::Model| m.gradients().iter().map(|g| g.elements).collect::<Vec<_>>();
                println!("   gradients {} {}, forward {:?}", g(&imported.model) == g(&model), imported.model.gradients().len(), imported.model.forward(Counting::default()));
                println!("   counted: {}", imported.model.layers().iter().filter(|l| matches!(l.op, stepcast_core::model::Op::Counted(_))).map(|l| format!("{} {:?} {:?}", l.name, l.output.dims(), l.cost)).take(4).collect::<Vec<_>>().join("; "));
                println!("   notes {:?}", imported.notes);
            }
        }
    }
}
