//! Compares the layouts with published numbers of parameters, multiply-adds and gradients.

use super::*;
use crate::model::Counting;

/// Trainable parameters as torchvision and transformers report them, and the number of gradient tensors.
const PARAMETERS: &[(&str, u64, usize)] = &[
    ("alexnet", 61_100_840, 16),
    ("vgg11", 132_863_336, 22),
    ("vgg13", 133_047_848, 26),
    ("vgg16", 138_357_544, 32),
    ("vgg19", 143_667_240, 38),
    ("resnet18", 11_689_512, 62),
    ("resnet34", 21_797_672, 110),
    ("resnet50", 25_557_032, 161),
    ("resnet50-v1", 25_557_032, 161),
    ("resnet101", 44_549_160, 314),
    ("resnet152", 60_192_808, 467),
    ("wide-resnet50-2", 68_883_240, 161),
    ("wide-resnet101-2", 126_886_696, 314),
    ("resnext50-32x4d", 25_028_904, 161),
    ("resnext101-32x8d", 88_791_336, 314),
    ("regnet-x-400mf", 5_495_976, 215),
    ("regnet-x-3-2gf", 15_296_552, 242),
    ("regnet-y-400mf", 4_344_144, 225),
    ("regnet-y-8gf", 39_381_472, 238),
    ("regnet-y-16gf", 83_590_140, 251),
    ("convnext-tiny", 28_589_128, 182),
    ("convnext-small", 50_223_688, 344),
    ("convnext-base", 88_591_464, 344),
    ("convnext-large", 197_767_336, 344),
    ("swin-t", 28_288_354, 173),
    ("swin-s", 49_606_258, 329),
    ("swin-b", 87_768_224, 329),
    ("ssd300-vgg16", 35_641_826, 71),
    ("yolov3", 61_949_149, 222),
    ("unet", 31_037_698, 64),
    ("ncf", 31_832_577, 12),
    // 540,201,232 of them in the tables.
    ("dlrm", 540_677_217, 40),
    // As the program printed them for its defaults of July 2017 (issue 114 of its repository).
    ("deepspeech2-lstm", 11_376_368, 33),
    // Pretrained with its momentum: 291 MiB (issue 242 there).
    ("deepspeech2", 38_067_968, 39),
    // As logs of run_wt103_base.sh print them.
    ("transformer-xl", 151_107_538, 182),
    // 277 million in table 2 of the paper.
    ("transformer-xl-enwik8", 277_231_820, 268),
    ("googlenet", 6_624_904, 173),
    ("inception-v3", 23_834_568, 284),
    ("densenet121", 7_978_856, 364),
    ("mobilenet-v2", 3_504_872, 158),
    ("efficientnet-b0", 5_288_548, 213),
    ("vit-b-16", 86_567_656, 152),
    ("vit-l-16", 304_326_632, 296),
    ("bert-base", 109_482_240, 199),
    ("bert-large", 335_141_888, 391),
    ("bert-base-mlm", 109_514_298, 202),
    ("gpt2", 124_439_808, 148),
    ("gpt2-medium", 354_823_168, 292),
    ("t5-small", 60_506_624, 131),
    ("t5-base", 222_903_552, 257),
    ("t5-large", 737_668_096, 509),
    ("t5-3b", 2_851_598_336, 509),
    ("t5-11b", 11_307_321_344, 509),
    ("t5-v1.1-small", 76_961_152, 190),
    ("t5-v1.1-base", 247_577_856, 282),
    ("t5-v1.1-large", 783_150_080, 558),
    ("t5-v1.1-xl", 2_849_757_184, 558),
    ("t5-v1.1-xxl", 11_135_332_352, 558),
    ("resnet32", 464_154, 95),
    ("resnet56", 853_018, 167),
    ("cifar-alexnet", 1_756_619, 10),
];

/// Exact operation counts of the multiply-adds.
const FORWARD: &[(&str, u64)] = &[
    ("overfeat", 5_602_807_808),
    ("vgg16d", 30_940_528_640),
    ("resnet18", 3_628_146_688),
    ("resnet34", 7_327_522_816),
    ("resnet50-v1", 7_715_946_496),
    ("resnet50", 8_178_368_512),
    ("resnet101-v1", 15_140_388_864),
    ("resnet152-v1", 22_564_831_232),
];

/// Multiply-adds in 10⁹ (two operations each), with the precision stated by torchvision and the papers.
const GIGA_MULTIPLY_ADDS: &[(&str, f64, f64)] = &[
    ("alexnet", 0.714, 0.001),
    ("vgg11", 7.609, 0.001),
    ("vgg13", 11.308, 0.001),
    ("vgg19", 19.632, 0.001),
    ("resnet101", 7.801, 0.001),
    ("resnet152", 11.514, 0.001),
    ("wide-resnet50-2", 11.398, 0.001),
    ("resnext50-32x4d", 4.230, 0.001),
    ("convnext-tiny", 4.456, 0.002),
    ("swin-t", 4.491, 0.03),
    ("regnet-y-16gf", 15.912, 0.003),
    ("googlenet", 1.498, 0.002),
    ("inception-v3", 5.713, 0.002),
    ("densenet121", 2.834, 0.002),
    ("mobilenet-v2", 0.301, 0.002),
    ("efficientnet-b0", 0.386, 0.002),
    ("vit-b-16", 17.564, 0.004),
];

#[test]
fn parameters_and_gradients_are_those_of_the_implementations() {
    for &(name, parameters, tensors) in PARAMETERS {
        let model = build(name).unwrap();
        assert_eq!(model.parameters(), parameters, "{name}: parameters");
        assert_eq!(model.gradients().len(), tensors, "{name}: gradients");
    }
}

#[test]
fn multiply_adds_are_those_published() {
    for &(name, operations) in FORWARD {
        assert_eq!(build(name).unwrap().forward(Counting::default()).get() as u64, operations, "{name}");
    }
    for &(name, giga, tolerance) in GIGA_MULTIPLY_ADDS {
        let counted = build(name).unwrap().forward(Counting::default()).get() / 2e9;
        assert!((counted - giga).abs() <= tolerance, "{name}: {counted} instead of {giga}");
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

/// Table 1: forward operations, weights, biases, and pushes (the 34 assigned to 16D, where they belong).
const TABLE_1: [(&str, u64, u64, u64, Option<u32>); 12] = [
    ("alexnet", 1_677_577_600, 61_827_776, 10_472, Some(19)),
    ("overfeat", 5_858_398_208, 145_909_792, 11_080, Some(20)),
    ("vgg11a", 15_224_301_568, 132_851_392, 11_944, Some(24)),
    ("vgg13b", 22_623_053_824, 133_035_712, 12_136, None),
    ("vgg16c", 23_547_897_856, 133_625_536, 13_416, None),
    ("vgg16d", 30_946_650_112, 138_344_128, 13_416, Some(34)),
    ("vgg19e", 39_270_246_400, 143_652_544, 14_696, Some(40)),
    ("resnet18", 3_592_442_856, 11_506_880, 4_904, None),
    ("resnet34", 7_289_769_984, 21_607_616, 8_616, None),
    ("resnet50", 6_994_333_696, 21_194_112, 23_720, Some(269)),
    ("resnet101", 14_420_825_064, 40_134_016, 49_832, Some(524)),
    ("resnet152", 21_845_267_432, 55_731_584, 72_872, Some(779)),
];

#[test]
fn table_1_is_exact() {
    for (name, forward, weights, biases, pushes) in TABLE_1 {
        let model = build(&format!("zeng2023/{name}")).unwrap();
        assert_eq!(model.forward(Counting::default()).get() as u64, forward, "{name}: forward");
        assert_eq!(model.weights(), weights, "{name}: weights");
        assert_eq!(model.biases(), biases, "{name}: biases");
        assert_eq!(model.published().pushes, pushes, "{name}: pushes");
        assert!(model.adjustments().iter().all(|adjustment| !adjustment.reason.is_empty()));
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
