//! What layers cost, how many windows of convolution and pooling fit into an image, and what training does to a transformer:
//! documents in its sequences, adapters and frozen layers.

use crate::OneText;
use proptest::prelude::*;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::{
    AdaptersSection, Backward, BaseFormat, Documents, FrozenSection, Lengths, Packing, Transformer, Tuning,
};
use stepcast_core::model::{Builder, Conv2d, Cost, Counting, Model, Op, Padding, Pool, Rows, ShapeError};
use stepcast_core::quantity::Bytes;

#[test]
fn counts_only_what_is_asked_for() {
    let cost = Cost {
        multiply_add: 1,
        bias: 10,
        activation: 100,
        pooling: 1000,
        normalisation: 10_000,
        elementwise: 100_000,
        ..Cost::default()
    };
    assert_eq!(cost.forward(Counting::default()), 1);
    assert_eq!(cost.forward(Counting { pooling: true, ..Counting::default() }), 1001);
    assert_eq!(cost.forward(Counting::ALL), 111_111);
}

#[test]
fn refuses_a_sum_beyond_64_bits_even_across_kinds() {
    let most = Cost { multiply_add: u64::MAX, ..Cost::default() };
    let bias = Cost { bias: 1, ..Cost::default() };
    let sum = |first, second| -> Result<Model, ShapeError> {
        let mut builder = Builder::new("sum", "test");
        let input = builder.input("input", &[1])?;
        builder.counted("first", &[input], &[1], first)?;
        builder.counted("second", &[input], &[1], second)?;
        builder.finish()
    };
    let refused = sum(most, bias).unwrap_err();
    assert!(refused.layer == "second" && refused.reason.contains("64 bits"), "{refused}");
    assert_eq!(sum(bias, bias).map(|model| model.cost().bias), Ok(2));
}

/// The probability that a row is missed, one lookup after the other.
fn slow(rows: u64, lookups: u64) -> f64 {
    let missed = (0..lookups).fold(1.0, |missed, _| missed * (1.0 - 1.0 / rows as f64));
    rows as f64 * (1.0 - missed)
}

#[test]
fn touched_rows_are_those_that_are_not_missed() {
    for (count, lookups, samples) in [(1, 1, 5), (3, 1, 2), (10, 4, 25), (1000, 1, 128), (305, 2, 2048)] {
        let rows = Rows { count, width: 16, lookups };
        let (fast, slow) = (rows.touched(f64::from(samples)), slow(count, lookups * samples as u64));
        assert!((fast / slow - 1.0).abs() < 1e-9, "{count} rows: {fast} {slow}");
    }
    // Three rows, two lookups: 3 of 9 pairs are one row, 6 are two.
    let three = Rows { count: 3, width: 1, lookups: 1 };
    assert!((three.touched(2.0) - 15.0 / 9.0).abs() < 1e-12);
}

/// All sequences of lookups, each row with its own probability.
#[test]
fn skewed_access_touches_fewer_rows() {
    let expected = |likely: [f64; 3]| -> f64 {
        let mut sum = 0.0;
        for sequence in 0..81 {
            let rows = [sequence % 3, sequence / 3 % 3, sequence / 9 % 3, sequence / 27 % 3];
            let different = (0..3).filter(|row| rows.contains(row)).count();
            sum += rows.iter().map(|row| likely[*row]).product::<f64>() * different as f64;
        }
        sum
    };
    let uniform = Rows { count: 3, width: 1, lookups: 2 }.touched(2.0);
    assert!((expected([1.0 / 3.0; 3]) - uniform).abs() < 1e-12);
    assert!(expected([0.6, 0.3, 0.1]) < uniform);
}

#[test]
fn a_gradient_is_never_larger_than_the_table() {
    let rows = Rows { count: 100, width: 4, lookups: 1 };
    assert_eq!(rows.bytes(1.0, 4.0), Bytes::new(24.0));
    assert_eq!(rows.bytes(1e6, 4.0), Bytes::new(1600.0));
    // Indices keep their size in 16 bits.
    assert_eq!(rows.bytes(1.0, 2.0), Bytes::new(16.0));
    let millions = Rows { count: 10_131_227, width: 16, lookups: 1 };
    assert!((millions.touched(2048.0) - 2047.793).abs() < 1e-3, "{}", millions.touched(2048.0));
}

/// Windows along the height of an image.
fn windows(op: Op, [height, width]: [u64; 2]) -> Option<u64> {
    let mut builder = Builder::new("one", "test");
    let input = builder.input("input", &[1, height, width]).unwrap();
    builder.infer(&op, &[input]).map(|(shape, _)| shape.dims()[1])
}

fn conv(kernel: u64, stride: u64, padding: Padding, dilation: u64) -> Op {
    let [kernel, stride, dilation] = [kernel, stride, dilation].map(|size| (size, 1));
    Op::Conv2d(Conv2d { out: 1, kernel, stride, padding, dilation, groups: 1, bias: false })
}

fn pool(kernel: u64, stride: u64, padding: Padding, ceil: bool) -> Op {
    Op::Pool { kind: Pool::Max, kernel: (kernel, 1), stride: (stride, 1), padding, ceil }
}

fn vertical(top: u64, bottom: u64) -> Padding {
    Padding::Explicit { top, bottom, left: 0, right: 0 }
}

#[test]
fn first_layers_of_well_known_networks() {
    let output = |op: Op, size| windows(op, [size, size]).unwrap();
    assert_eq!(output(conv(11, 4, Padding::all(2), 1), 224), 55);
    assert_eq!(output(conv(7, 2, Padding::all(3), 1), 224), 112);
    assert_eq!(output(conv(3, 2, Padding::Same, 1), 32), 16);
    assert_eq!(output(pool(3, 2, Padding::Valid, true), 112), 56);
    assert_eq!(output(pool(3, 2, Padding::Valid, false), 112), 55);
    assert_eq!(output(pool(2, 2, Padding::Valid, true), 7), 4);
    assert_eq!(output(pool(1, 3, Padding::all(1), true), 2), 1);
}

#[test]
fn huge_sizes_are_errors_or_numbers() {
    for padding in [Padding::Valid, Padding::Same, Padding::all(u64::MAX)] {
        for kernel in [1, 2, u64::MAX] {
            for stride in [1, u64::MAX] {
                for size in [[u64::MAX, 1], [u64::MAX / 5, 5]] {
                    let _ = windows(conv(kernel, stride, padding, u64::MAX), size);
                    let _ = windows(pool(kernel, stride, padding, true), size);
                    let _ = windows(pool(kernel, stride, padding, false), size);
                }
            }
        }
    }
}

proptest! {
    /// A window may start at every multiple of the stride from which it still ends inside the padded image.
    #[test]
    fn counts_the_valid_positions(
        size in 1_u64..40, kernel in 1_u64..8, stride in 1_u64..6, dilation in 1_u64..4,
        before in 0_u64..4, after in 0_u64..4,
    ) {
        let padded = before + size + after;
        let positions = (0..padded)
            .step_by(stride as usize)
            .filter(|start| start + dilation * (kernel - 1) < padded)
            .count() as u64;
        let counted = windows(conv(kernel, stride, vertical(before, after), dilation), [size, 1]);
        prop_assert_eq!(counted, (positions > 0).then_some(positions));
    }

    /// With `ceil` a last window may extend beyond the end as long as it starts inside the image or before it.
    #[test]
    fn counts_the_positions_of_ceil_mode(
        size in 1_u64..40, kernel in 1_u64..8, stride in 1_u64..6, padding in 0_u64..4,
    ) {
        let padding = padding.min(kernel / 2);
        let padded = size + 2 * padding;
        let whole = (0..padded).step_by(stride as usize).filter(|start| start + kernel <= padded).count() as u64;
        let next = whole * stride;
        let covered = (whole.max(1) - 1) * stride + kernel >= padded;
        let hanging = u64::from(whole > 0 && !covered && next < size + padding);
        let counted = windows(pool(kernel, stride, vertical(padding, padding), true), [size, 1]);
        prop_assert_eq!(counted, (whole > 0).then_some(whole + hanging));
    }
}

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
