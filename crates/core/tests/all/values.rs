//! Plain values and how files write them: quantities, amounts, ranges, names, remedies and documents.

use crate::in_a_file;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::thread;
use stepcast_core::fault::{NameList, Remedies, Remedy};
use stepcast_core::quantity::{
    Amount, Bits, BitsPerSec, Bytes, BytesPerSec, Flops, FlopsPerSec, Hertz, SamplesPerSec, Seconds,
};
use stepcast_core::suggest::{nearest, variants};
use stepcast_core::text::{MAX_DEPTH, key_parts, parse};
use stepcast_core::uncertain::Uncertain;

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
    ($value:ident: $($name:ident),*) => {$(
        let quantity = $name::new($value);
        let text = quantity.to_string();
        prop_assert_eq!(text.parse::<$name>(), Ok(quantity), "{}", text);
    )*};
}

proptest! {
    #[test]
    fn every_value_prints_back_and_forth(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
        printing_inverts_parsing!(
            value: Seconds, Bytes, Bits, Flops, Hertz, FlopsPerSec, BitsPerSec, BytesPerSec, SamplesPerSec
        );
    }

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

#[test]
fn amounts_are_written_in_several_ways() {
    for (text, value) in [
        ("300e9", 3e11),
        ("300B", 3e11),
        ("1.5T tokens", 1.5e12),
        ("50 USD", 50.0),
        ("50M", 5e7),
        ("1_000", 1e3),
    ] {
        assert_eq!(text.parse(), Ok(Amount::new(value)), "{text}");
    }
    for wrong in ["", "x", "B", "5 apples", "-1", "0", "1e999"] {
        assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
    }
    assert_eq!("1.2M".parse::<Amount>().unwrap().whole(), Some(1_200_000));
    assert_eq!(Amount::new(0.5).whole(), None);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct File {
    rate: Uncertain<BitsPerSec>,
    share: Uncertain<f64>,
}

fn read(text: &str) -> Result<File, String> {
    parse(text).map_err(|error| error.message().to_owned())
}

#[test]
fn a_range_is_a_text_or_a_list_and_is_written_back_exactly() {
    let ten = BitsPerSec::new(10e9);
    let file = read("rate = \"10 Gbit/s\"\nshare = 1").unwrap();
    assert_eq!(file, File { rate: ten.into(), share: 1.0.into() });
    for text in [
        "rate = \"9.0..16 Gbit/s\"\nshare = \"0.4..0.5\"",
        "rate = \"9000 Mbit/s .. 16 Gbit/s\"\nshare = [0.4, 0.5]",
        "rate = [\"9 Gbit/s\", \"16 Gbit/s\"]\nshare = \"0.4 .. 5e-1\"",
    ] {
        let file = read(text).unwrap();
        assert_eq!(file.rate.ends(), [9e9, 16e9].map(BitsPerSec::new), "{text}");
        // √(9 · 16) = 12.
        assert!((file.rate.centre().get() / 12e9 - 1.0).abs() < 1e-12);
        assert!((file.share.centre() - 0.2_f64.sqrt()).abs() < 1e-12);
        assert_eq!(read(&in_a_file(&file)).unwrap(), file);
    }
}

#[test]
fn what_is_no_range_is_refused() {
    for (rate, share, reason) in [
        ("\"10..9 Gbit/s\"", "1", "positive and ascending"),
        ("\"0..9 Gbit/s\"", "1", "positive and ascending"),
        ("\"9..10\"", "1", "no unit"),
        ("\"9..10..11 Gbit/s\"", "1", "not a unit"),
        ("[\"9 Gbit/s\"]", "1", "two ends"),
        ("9", "1", "9 has no unit"),
        ("\"9 Gbit/s\"", "\"a..b\"", "not a number"),
        ("\"9 Gbit/s\"", "\"half\"", "expected f64"),
        ("\"9 Gbit/s\"", "[0.1, 0.2, 0.3]", "two ends"),
    ] {
        let error = read(&format!("rate = {rate}\nshare = {share}")).unwrap_err();
        assert!(error.contains(reason), "{rate} {share}: {error}");
    }
}

#[test]
fn finds_what_was_meant() {
    let zoo = ["vgg16", "vgg19", "resnet50", "alexnet"];
    assert_eq!(nearest("VGG-16", zoo), Some("vgg16"));
    assert_eq!(nearest("resnet5", zoo), Some("resnet50"));
    assert_eq!(nearest("transformer-xl", zoo), None);
    assert_eq!(nearest("DiT-XL", ["gpt2-xl"]), None);
    assert_eq!(nearest("vit-large", ["bert-large"]), None);
}

#[test]
fn a_family_is_listed() {
    let zoo = ["swin-t", "swin-s", "resnet50", "regnet-y-8gf"];
    let remedy = |name| variants(name, zoo, "see the list").to_string();
    assert_eq!(remedy("Swin"), "use one of swin-t, swin-s");
    assert_eq!(remedy("regnet"), "did you mean \"regnet-y-8gf\"? see the list");
    assert_eq!(remedy("resnet5O"), "did you mean \"resnet50\"? see the list");
    assert_eq!(remedy("quux"), "see the list");
}

/// Compared letter by letter, these two would take 80 TB.
#[test]
fn long_names_are_compared_with_nothing() {
    let long = "a".repeat(1 << 20);
    assert_eq!(nearest(&long, [&long[1..], "a"]), None);
    assert_eq!(nearest("resnet5", [&long[..], "resnet50"]), Some("resnet50"));
}

#[test]
fn alternatives_make_one_sentence() {
    let both =
        Remedies::from([Remedy::set("strategy.architecture", "all-reduce"), Remedy::method("simulate")]);
    assert_eq!(both.to_string(), "use `strategy.architecture = \"all-reduce\"`, or the method `simulate`");
    let flags = both.worded(|remedy| match remedy {
        Remedy::UseMethod { method } => Some(format!("use `--method {method}`")),
        _ => None,
    });
    assert_eq!(flags, "use `strategy.architecture = \"all-reduce\"`, or `--method simulate`");
    let meant = Remedy::DidYouMean { name: "vgg16".to_owned() };
    let listed = Remedies::from([meant, Remedy::ListNames { list: NameList::Models }]);
    assert_eq!(listed.to_string(), "did you mean \"vgg16\"? see the list of models");
    assert!(Remedies::from("").is_empty());
}

#[test]
fn json_has_the_text_and_the_data() {
    let json = serde_json::to_string(&Remedies::from(Remedy::method("zeng2023"))).unwrap();
    let data =
        r#"{"remedy":"use the method `zeng2023`","remedies":[{"kind":"use-method","method":"zeng2023"}]}"#;
    assert_eq!(json, data);
}

fn keys(parts: usize) -> String {
    vec!["a"; parts].join(".")
}

/// Tables in each other, each below a key of `parts` parts.
fn nested(tables: usize, parts: usize) -> String {
    let key = keys(parts);
    format!("{}1{}", format!("{key} = {{ ").repeat(tables), " }".repeat(tables)).replace("{ 1", "{ b = 1")
}

#[test]
fn depth_is_bounded_and_whatever_is_too_deep_is_dropped_without_recursion() {
    let texts = [
        nested(1, 40),
        nested(75, 75),
        format!("[{}]\n{}", keys(75), nested(75, 75)),
        format!("{} x", nested(75, 75)),
        format!("a = {}{}", "[".repeat(60), "]".repeat(60)),
        format!("a = {}", "[".repeat(100_000)),
        format!("{} = 1", keys(100_000)),
    ];
    // A stack that recursion over thousands of levels would exceed.
    let small = thread::Builder::new().stack_size(512 << 10);
    let refused = move || texts.iter().all(|text| parse::<toml::Table>(text).is_err());
    assert!(small.spawn(refused).unwrap().join().unwrap());
}

#[test]
fn what_is_shallow_is_read_as_ever() {
    for text in ["", "a.b.c = 1\n[d]\ne = [[1], [2, { f = 3 }]]\n[[g]]\n[[g]]\nh = 1e3\n"] {
        assert_eq!(parse::<toml::Table>(text).unwrap(), text.parse().unwrap());
    }
    let date: toml::Table = parse("date = 1979-05-27").unwrap();
    assert_eq!(date["date"].as_str(), Some("1979-05-27"));
    let error = parse::<toml::Table>("a = 1\nb = ").unwrap_err();
    let usual = "a = 1\nb = ".parse::<toml::Table>().unwrap_err();
    assert_eq!((error.message(), error.span()), (usual.message(), usual.span()));
    assert!(parse::<toml::Table>(&format!("{} = 1", keys(MAX_DEPTH))).is_ok());
    assert!(parse::<toml::Table>(&format!("{} = 1", keys(MAX_DEPTH + 1))).is_err());
}

#[test]
fn keys_have_few_parts() {
    assert_eq!(key_parts(" a . b").unwrap(), ["a", "b"]);
    assert_eq!(key_parts(&keys(MAX_DEPTH)).unwrap().len(), MAX_DEPTH);
    let fault = key_parts(&keys(100_000)).unwrap_err();
    assert!(fault.reason.contains("32 parts") && fault.to_string().len() < 400, "{fault}");
    for empty in ["", ".", "a.", "a..b"] {
        assert!(key_parts(empty).unwrap_err().reason.contains("empty"), "{empty}");
    }
}
