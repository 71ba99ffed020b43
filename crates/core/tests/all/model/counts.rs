//! What layers cost, and how many windows of convolution and pooling fit into an image.

use proptest::prelude::*;
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
