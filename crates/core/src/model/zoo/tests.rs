//! Compares the layouts with published numbers of parameters, multiply-adds and gradients.

use super::*;
use crate::model::Counting;

/// Counts that were published, by network and column.
const PUBLISHED: &str = include_str!("published.csv");

#[test]
fn counts_are_those_published() {
    let mut lines = PUBLISHED.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(','));
    let columns: Vec<&str> = lines.next().unwrap().collect();
    for line in lines {
        let row: Vec<&str> = line.collect();
        let model = build(row[0]).unwrap();
        let operations = model.forward(Counting::default()).get();
        for (column, text) in columns.iter().zip(&row).skip(1).filter(|(_, text)| !text.is_empty()) {
            let counted = match *column {
                "parameters" => model.parameters().to_string(),
                "gradients" => model.gradients().len().to_string(),
                "operations" => (operations as u64).to_string(),
                "weights" => model.weights().to_string(),
                "biases" => model.biases().to_string(),
                "pushes" => model.published().pushes.map_or("none".to_owned(), |pushes| pushes.to_string()),
                "giga multiply-adds" => {
                    let [giga, tolerance] = [text, &row[5]].map(|text| text.parse::<f64>().unwrap());
                    assert!((operations / 2e9 - giga).abs() <= tolerance, "{}: {operations}", row[0]);
                    continue;
                }
                _ => continue,
            };
            assert_eq!(counted, *text, "{}: {column}", row[0]);
        }
        assert!(model.adjustments().iter().all(|adjustment| !adjustment.reason.is_empty()));
    }
}

/// The products of both stacks of T5, and its pairs of queries and keys.
#[test]
fn t5_computes_both_stacks() {
    let (width, inner, mlp, depth, vocabulary) = (768, 768, 3072, 12, 32_128);
    for (sequence, target) in [(512, 114), (1024, 228)] {
        let encoder = sequence * (4 * width * inner + 2 * width * mlp) + 2 * sequence * sequence * inner;
        let own = target * (6 * width * inner + 2 * width * mlp) + target * (target + 1) * inner;
        let cross = 2 * sequence * width * inner + 2 * target * sequence * inner;
        let products = depth * (encoder + own + cross) + target * width * vocabulary;
        let model = build_for("t5-base", Some(sequence)).unwrap();
        assert_eq!(model.forward(Counting::default()).get() as u64, 2 * products);
    }
}

#[test]
fn every_entry_builds_under_its_names() {
    for entry in entries() {
        let model = entry.build().unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        assert_eq!(
            (model.name.as_str(), model.source.as_str()),
            (entry.name.as_str(), entry.source.as_str())
        );
        for alias in &entry.aliases {
            assert_eq!(build(alias).unwrap().name, entry.name);
        }
        assert!(!entry.description.is_empty());
    }
    let mut names: Vec<_> =
        entries().flat_map(|entry| std::iter::once(&entry.name).chain(&entry.aliases)).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name is taken twice");
}

#[test]
fn gradients_hold_all_parameters() {
    for entry in entries() {
        let model = entry.build().unwrap();
        let elements: u64 = model.gradients().iter().map(|gradient| gradient.elements).sum();
        assert_eq!(elements, model.parameters(), "{}", entry.name);
    }
}

#[test]
fn names_are_found_loosely_and_suggested() {
    assert_eq!(build("ViT_B_16").unwrap().name, "vit-b-16");
    let unknown = build("resnet51").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no model \"resnet51\" in the zoo");
    assert!(unknown.remedy.contains("did you mean \"resnet"), "{unknown:?}");
    assert!(build("quux").unwrap_err().remedy.to_string().starts_with("see the list of models"));
    assert_eq!(
        build("convnext").unwrap_err().remedy.to_string(),
        "use one of convnext-tiny, convnext-small, convnext-base, convnext-large"
    );
}

/// The list of names, which is made without parsing, is that of the parsed files.
#[test]
fn every_file_is_read_whole() {
    for (place, text) in FILES.iter().enumerate() {
        if let Err(error) = toml::from_str::<Family>(text) {
            panic!("file {place}: {error}");
        }
    }
    assert!(names().eq(entries().map(|model| model.name.as_str())));
    for model in entries() {
        assert!(model.transformer.is_none() || model.shape().is_some(), "{}: its shape", model.name);
        assert!(model.base.as_deref().is_none_or(|base| find(base).is_some()), "{}: its base", model.name);
    }
}

#[test]
fn alexnet_with_sigmoids_is_the_count_of_the_other_tables() {
    let model = build("zeng2023/alexnet").unwrap();
    let sigmoids = Counting { activation: true, ..Counting::default() };
    assert_eq!(model.forward(sigmoids).get() as u64, 1_720_390_328);
    assert_eq!(model.published().forward, Some(1_720_390_328));
    assert_eq!(model.published().shipped, Some(63_380_347));
}

#[test]
fn pooling_is_not_counted_twice() {
    let model = build("zeng2023/vgg16d").unwrap();
    let pooling = Counting { pooling: true, ..Counting::default() };
    assert_eq!(model.forward(pooling), model.forward(Counting::default()));
}
