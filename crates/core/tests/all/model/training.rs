//! What training does to a transformer: documents in its sequences, adapters and frozen layers.

use crate::OneText;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::{
    AdaptersSection, Backward, BaseFormat, Documents, FrozenSection, Lengths, Packing, Transformer, Tuning,
};

fn documents(lengths: Lengths, packing: Packing) -> Documents {
    Documents { packing, lengths: lengths.resolve(&NoFiles).unwrap() }
}

#[test]
fn attention_within_documents_counts_their_squares() {
    let own = documents(Lengths::Each(vec![1000, 24, 1024]), Packing::Within);
    assert_eq!(own.squares(2048), Some(1000 * 1000 + 24 * 24 + 1024 * 1024));
    assert_eq!(documents(Lengths::Fixed(512), Packing::Within).squares(2048), Some(4 * 512 * 512));
    assert_eq!(documents(Lengths::Fixed(512), Packing::Across).squares(2048), None);
    // Longer documents are cut.
    assert_eq!(documents(Lengths::Fixed(4096), Packing::Within).squares(2048), Some(2048 * 2048));
}

/// A hundred documents in fifty buckets of two, each as long as the longer one; with sequences of 150, the longest is cut.
#[test]
fn documents_of_similar_length_come_together() {
    let own = documents(Lengths::Each((1..=100).collect()), Packing::Bucketed);
    let padded: Vec<u64> = (1..=50).map(|pair| 2 * pair).collect();
    assert_eq!(own.lengths.bucketed[0], 2 * padded.iter().sum::<u64>());
    assert_eq!(own.lengths.bucketed[1], 2 * padded.iter().map(|length| length * length).sum::<u64>());
    assert_eq!([own.sequence(4096), own.longest(56), own.cut(64).longest(56)], [56, 100, 64]);
    let squares = own.squares(56).unwrap();
    assert!((squares as f64 / (56.0 * own.lengths.bucketed[1] as f64 / 5100.0) - 1.0).abs() < 1e-3);
    assert!((own.useful(56) - 50.5 / 56.0).abs() < 1e-12);
    let alike = documents(Lengths::Fixed(512), Packing::Bucketed);
    assert_eq!((alike.sequence(4096), alike.squares(512), alike.useful(512)), (512, Some(512 * 512), 1.0));
}

#[test]
fn padding_is_no_use() {
    let own = documents(Lengths::Each(vec![512, 1536]), Packing::Padded);
    assert!((own.useful(2048) - 0.5).abs() < 1e-12);
}

#[test]
fn ranks_with_longer_documents_are_waited_for() {
    let equal = documents(Lengths::Fixed(512), Packing::Within);
    assert!((equal.imbalance(4096, 8, 64) - 1.0).abs() < 1e-9);
    let own = documents(Lengths::LogNormal { mean: 600.0, spread: 1.0 }, Packing::Within);
    let [few, many, long] =
        [(8, 8), (8, 512), (800, 512)].map(|(rows, ranks)| own.imbalance(4096, rows, ranks));
    assert!(1.0 < few && few < many && long < many, "{few} {many} {long}");
}

#[test]
fn histograms_are_read_and_wrong_lines_refused() {
    let read = |text| Lengths::File("a".to_owned()).resolve(&OneText(text));
    let each = [[512; 10].as_slice(), &[64]].concat();
    assert_eq!(read("length,count\n512,10\n\n64\n"), Lengths::Each(each).resolve(&NoFiles));
    assert!(read("512,10\nten\n").unwrap_err().reason.contains("line 2"));
    assert!(Lengths::Each(Vec::new()).resolve(&NoFiles).is_err());
    assert!(Lengths::Fixed(0).resolve(&NoFiles).is_err());
}

fn tuned(rank: u64, words: &[&str]) -> Transformer {
    let shape = Transformer::llama(8, 4096, [32, 8], 14336, 128_256, 8192);
    let section = AdaptersSection {
        rank: Some(rank),
        targets: Some(words.iter().map(|word| (*word).to_owned()).collect()),
        ..AdaptersSection::default()
    };
    let tuning = Tuning::resolve(Some(&section), None, &shape).unwrap();
    Transformer { tuning, ..shape }
}

/// Numbers that PyTorch counted in measured decoders.
#[test]
fn trained_parameters_are_those_of_measured_decoders() {
    assert_eq!(tuned(8, &["attention"]).trained_parameters(), 1_703_936);
    let shape = Transformer::llama(28, 1536, [12, 2], 8960, 128_256, 2048);
    let section = FrozenSection { layers: Some(26), ..FrozenSection::default() };
    let tuning = Tuning::resolve(None, Some(&section), &shape).unwrap();
    assert_eq!(Transformer { tuning, ..shape }.trained_parameters(), 290_594_304);
}

#[test]
fn double_quantisation_takes_a_little_more_than_half_a_byte() {
    assert!((BaseFormat::Nf4.bytes() * 8.0 - 4.127).abs() < 1e-3);
}

#[test]
fn a_layer_with_an_adapter_but_nothing_trained_before_it_needs_no_gradient_of_its_input() {
    let shape = tuned(8, &["q", "v"]);
    assert_eq!([0, 1].map(|index| shape.backward_at(index)), [Backward::Own, Backward::All]);
}

#[test]
fn sections_are_read_back_and_wrong_ones_refused() {
    let shape = tuned(16, &["q", "down"]);
    let (adapters, frozen) = shape.tuning.sections();
    assert_eq!(Tuning::resolve(adapters.as_ref(), frozen.as_ref(), &shape), Ok(shape.tuning));
    let wrong = |words: &[&str], rank| {
        let targets = words.iter().map(|word| (*word).to_owned()).collect();
        let section = AdaptersSection { rank, targets: Some(targets), ..AdaptersSection::default() };
        Tuning::resolve(Some(&section), None, &shape).unwrap_err().key.to_string()
    };
    assert_eq!(wrong(&["z"], Some(4)), "adapters.targets");
    assert_eq!(wrong(&["experts"], Some(4)), "adapters.targets");
    assert_eq!(wrong(&["q"], None), "adapters.rank");
    assert_eq!(wrong(&["q"], Some(0)), "adapters.rank");
}
