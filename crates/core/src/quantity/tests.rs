use super::*;
use proptest::prelude::*;

#[test]
fn reads_the_units_people_write() {
    assert_eq!("10 Gbit/s".parse(), Ok(BitsPerSec::new(10e9)));
    assert_eq!("10Gb/s".parse(), Ok(BitsPerSec::new(10e9)));
    assert_eq!("1.25 GB/s".parse(), Ok(BitsPerSec::new(10e9)));
    assert_eq!("25 MB".parse(), Ok(Bytes::new(25e6)));
    assert_eq!("64 MiB".parse(), Ok(Bytes::new(67_108_864.0)));
    assert_eq!("2.2 GHz".parse(), Ok(Hertz::new(2.2e9)));
    assert_eq!("13.45 TFLOP/s".parse(), Ok(FlopsPerSec::new(13.45e12)));
    assert_eq!("0.5 s".parse(), Ok(Seconds::new(0.5)));
    assert_eq!("45 µs".parse(), Ok(Seconds::new(45e-6)));
    assert_eq!("45us".parse(), Ok(Seconds::new(45e-6)));
    assert_eq!("2 h".parse(), Ok(Seconds::new(7200.0)));
    assert_eq!("1_000 kbit".parse(), Ok(Bits::new(1e6)));
    assert_eq!("1e3 MB".parse(), Ok(Bytes::new(1e9)));
}

#[test]
fn refuses_what_has_no_or_another_unit() {
    for text in [
        "10",
        "Gbit/s",
        "",
        "10 Gbit",
        "NaN Gbit/s",
        "inf Gbit/s",
        "1e999 Gbit/s",
        "- Gbit/s",
        "1.2.3 Gbit/s",
    ] {
        assert!(text.parse::<BitsPerSec>().is_err(), "{text}");
    }
    let case = "10 gbit/s".parse::<BitsPerSec>().unwrap_err();
    assert!(case.remedy.contains("Gbit/s"), "{case}");
    let unit = "10 parsec".parse::<Seconds>().unwrap_err();
    assert!(unit.to_string().contains("use one of ns, µs"), "{unit}");
}

#[test]
fn bits_and_bytes_are_told_apart() {
    assert_eq!("1 GB/s".parse::<BitsPerSec>(), "8 Gb/s".parse::<BitsPerSec>());
    assert_eq!(Bytes::new(2.0).to_bits(), Bits::new(16.0));
    assert_eq!(BitsPerSec::new(8.0).to_bytes_per_sec(), BytesPerSec::new(1.0));
}

#[test]
fn amount_rate_and_time_agree() {
    let time = Bits::new(2e9) / BitsPerSec::new(1e9);
    assert_eq!(time, Seconds::new(2.0));
    assert_eq!(BitsPerSec::new(1e9) * time, Bits::new(2e9));
    assert_eq!(Bits::new(2e9) / time, BitsPerSec::new(1e9));
    assert_eq!(Flops::new(6.0) / Hertz::new(1.5).at(2.0), Seconds::new(2.0));
}

#[test]
fn prints_for_machines_and_for_people() {
    assert_eq!(BitsPerSec::new(10e9).to_string(), "10 Gbit/s");
    assert_eq!(Seconds::new(45e-6).to_string(), "45 µs");
    assert_eq!(Bytes::new(0.0).to_string(), "0 B");
    assert_eq!(Seconds::new(1.0 / 3.0).to_string(), "333.3333333333333 ms");
    assert_eq!(Seconds::new(1.0 / 3.0).human(), "333.3 ms");
    assert_eq!(Seconds::new(0.999_96).human(), "1 s");
    assert_eq!(Seconds::new(12_345.6).human(), "12350 s");
    assert_eq!(Flops::new(30_946_650_112.0).human(), "30.95 GFLOP");
}

#[test]
fn numbers_without_a_unit_are_refused_in_files() {
    let error = serde_json::from_str::<Seconds>("3").unwrap_err().to_string();
    assert!(error.contains("3 has no unit") && error.contains("0.5 s"), "{error}");
}

macro_rules! printing_inverts_parsing {
    ($($test:ident: $name:ident),*) => {
        proptest! {
            $(#[test]
            fn $test(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
                let quantity = $name::new(value);
                let text = quantity.to_string();
                prop_assert_eq!(text.parse::<$name>(), Ok(quantity), "{}", text);
            })*
        }
    };
}

printing_inverts_parsing!(
    seconds: Seconds, bytes: Bytes, bits: Bits, flops: Flops, hertz: Hertz, flops_per_sec: FlopsPerSec,
    bits_per_sec: BitsPerSec, bytes_per_sec: BytesPerSec, samples_per_sec: SamplesPerSec
);

proptest! {
    #[test]
    fn everyday_values_print_back_and_forth(mantissa in 1u32..100_000, exponent in -9i32..15) {
        let seconds = Seconds::new(format!("{mantissa}e{exponent}").parse().unwrap());
        prop_assert_eq!(seconds.to_string().parse::<Seconds>(), Ok(seconds));
        let text = seconds.human();
        let back: Seconds = text.parse().unwrap();
        prop_assert!((back / seconds - 1.0).abs() < 5.1e-4, "{} {}", seconds, text);
    }

    #[test]
    fn no_text_makes_parsing_panic(text in "\\PC*") {
        let _ = text.parse::<Seconds>();
        let _ = text.parse::<BitsPerSec>();
    }
}
