//! The files of this folder, as text.

/// Short names of devices and networks, and the entries that they stand for.
pub const ALIASES: &str = include_str!("aliases.toml");
/// Devices.
pub const DEVICES: &str = include_str!("devices.toml");
/// Whole machines.
pub const MACHINES: &str = include_str!("machines.toml");
/// Networks.
pub const NETWORKS: &str = include_str!("networks.toml");
/// Prices of machines.
pub const PRICES: &str = include_str!("prices.toml");
/// What machines reach where nothing was measured.
pub const PRIORS: &str = include_str!("priors.toml");
/// How often machines are interrupted.
pub const RELIABILITY: &str = include_str!("reliability.toml");

/// Devices with the text of their fitted steps.
pub const FITTED: [(&str, &str); 1] = [("h200-sxm", include_str!("fitted/h200-sxm.toml"))];

/// Models, one file for each family, in the order in which they are listed.
pub const MODELS: &[&str] = &[
    include_str!("models/alexnet.toml"),
    include_str!("models/overfeat.toml"),
    include_str!("models/vgg.toml"),
    include_str!("models/resnet.toml"),
    include_str!("models/regnet.toml"),
    include_str!("models/convnext.toml"),
    include_str!("models/swin.toml"),
    include_str!("models/googlenet.toml"),
    include_str!("models/inception.toml"),
    include_str!("models/densenet.toml"),
    include_str!("models/mobilenet.toml"),
    include_str!("models/efficientnet.toml"),
    include_str!("models/vit.toml"),
    include_str!("models/dinov2.toml"),
    include_str!("models/dit.toml"),
    include_str!("models/ssd.toml"),
    include_str!("models/yolo.toml"),
    include_str!("models/unet.toml"),
    include_str!("models/ncf.toml"),
    include_str!("models/dlrm.toml"),
    include_str!("models/deepspeech.toml"),
    include_str!("models/wav2vec.toml"),
    include_str!("models/whisper.toml"),
    include_str!("models/bert.toml"),
    include_str!("models/roberta.toml"),
    include_str!("models/modernbert.toml"),
    include_str!("models/gpt2.toml"),
    include_str!("models/transformer-xl.toml"),
    include_str!("models/stable-diffusion.toml"),
    include_str!("models/t5.toml"),
    include_str!("models/cifar-alexnet.toml"),
    include_str!("models/cifar-resnet.toml"),
    include_str!("models/zeng2023.toml"),
    include_str!("models/gpt3.toml"),
    include_str!("models/megatron.toml"),
    include_str!("models/pythia.toml"),
    include_str!("models/gpt-neo.toml"),
    include_str!("models/opt.toml"),
    include_str!("models/bloom.toml"),
    include_str!("models/llama.toml"),
    include_str!("models/codellama.toml"),
    include_str!("models/mistral.toml"),
    include_str!("models/qwen.toml"),
    include_str!("models/qwen-vl.toml"),
    include_str!("models/jamba.toml"),
    include_str!("models/mamba.toml"),
    include_str!("models/gemma1.toml"),
    include_str!("models/gemma.toml"),
    include_str!("models/glm.toml"),
    include_str!("models/olmo.toml"),
    include_str!("models/minimax.toml"),
    include_str!("models/phi.toml"),
    include_str!("models/smollm.toml"),
    include_str!("models/falcon.toml"),
    include_str!("models/yi.toml"),
    include_str!("models/granite.toml"),
    include_str!("models/exaone.toml"),
    include_str!("models/command.toml"),
    include_str!("models/internlm.toml"),
    include_str!("models/baichuan.toml"),
    include_str!("models/starcoder.toml"),
    include_str!("models/deepseek.toml"),
    include_str!("models/mpt.toml"),
    include_str!("models/nemotron.toml"),
    include_str!("models/nemotron-h.toml"),
    include_str!("models/gpt-oss.toml"),
];
