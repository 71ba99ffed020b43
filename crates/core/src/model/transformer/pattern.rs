//! Layers that are not all alike: the mixer of each, and the feed-forward after it.

use super::Transformer;
use super::section::most;
use crate::fault::Fault;
use std::fmt::{self, Debug, Display};
use std::ops::Range;

/// Mixer of the tokens of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mixer {
    #[default]
    Attention,
    /// Attention of an encoder: every query sees every key.
    Encoder,
    /// Attention of a decoder to the output of its encoder.
    Cross,
    /// Attention over the tokens of an image and of a text, each with separate weights (Stable Diffusion 3).
    Joint,
    /// The last joint layer: behind attention, only the tokens of the image go on.
    JointLast,
    /// A gated delta net.
    Linear,
    Mamba,
    /// The layer is a feed-forward alone.
    None,
}

impl Mixer {
    /// Whether it has queries, keys and values.
    pub const fn attends(self) -> bool {
        matches!(self, Self::Attention | Self::Encoder | Self::Cross | Self::Joint | Self::JointLast)
    }

    /// Sets of weights: one for each stream of tokens.
    pub const fn streams(self) -> u64 {
        if matches!(self, Self::Joint | Self::JointLast) { 2 } else { 1 }
    }
}

/// Second half of a layer, after the mixer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeedForward {
    #[default]
    Dense,
    Experts,
    /// The layer is a mixer alone.
    None,
}

/// Both halves of a layer, each with its own norm and residual sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    pub mixer: Mixer,
    pub feed: FeedForward,
}

impl Block {
    /// Attention and a dense MLP.
    pub const DENSE: Self = Self { mixer: Mixer::Attention, feed: FeedForward::Dense };
    /// Attention and experts.
    pub const EXPERTS: Self = Self { mixer: Mixer::Attention, feed: FeedForward::Experts };

    pub fn has_experts(self) -> bool {
        self.feed == FeedForward::Experts
    }

    /// Halves: one or two.
    pub fn halves(self) -> u64 {
        u64::from(self.mixer != Mixer::None) + u64::from(self.feed != FeedForward::None)
    }
}

impl Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mixer = match (self.mixer, self.feed) {
            (Mixer::Attention, FeedForward::None) => "attention",
            (Mixer::Attention | Mixer::None, _) => "",
            (Mixer::Encoder, _) => "encoder",
            (Mixer::Cross, _) => "cross-attention",
            (Mixer::Joint, _) => "joint",
            (Mixer::JointLast, _) => "last joint",
            (Mixer::Linear, _) => "linear",
            (Mixer::Mamba, _) => "Mamba",
        };
        let feed = match (self.feed, self.mixer) {
            (FeedForward::Dense, Mixer::None) => "MLP",
            (FeedForward::Dense, _) => "dense",
            (FeedForward::Experts, _) => "expert",
            (FeedForward::None, _) => "",
        };
        let space = if mixer.is_empty() || feed.is_empty() { "" } else { " " };
        write!(f, "{mixer}{space}{feed} layer")
    }
}

/// Kinds of blocks that one model may have.
pub const MOST_BLOCKS: usize = 4;

const MOST_LETTERS: usize = 128;

/// A letter for each layer; the pattern repeats after the last letter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    letters: [u8; MOST_LETTERS],
    length: usize,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let wrong = |reason: String| {
            let remedy = "use `A`, `L` and `M` for attention, delta nets and Mamba with a feed-forward, `a`, `l` and `m` for \
                          them alone, `f` for a feed-forward alone, as in \"LLLA\"; `E` for layers of an encoder, `C` for \
                          cross-attention with a feed-forward; `J` and `j` for joint layers of image and text and the last of them";
            Err(Fault::in_key("pattern", reason, remedy))
        };
        if text.is_empty() || text.len() > MOST_LETTERS {
            return wrong(format!("must have 1 to {MOST_LETTERS} letters, but has {}", text.chars().count()));
        }
        if let Some(letter) = text.chars().find(|letter| !"ALMECJalmjf".contains(*letter)) {
            return wrong(format!("\"{letter}\" is no kind of layer"));
        }
        // The shortest equivalent pattern.
        let whole = text.as_bytes();
        let repeats = |length: &usize| {
            whole.len().is_multiple_of(*length) && whole.chunks(*length).all(|part| part == &whole[..*length])
        };
        let length = (1..whole.len()).find(repeats).unwrap_or(whole.len());
        let mut letters = [0; MOST_LETTERS];
        letters[..length].copy_from_slice(&whole[..length]);
        Ok(Self { letters, length })
    }

    fn letter(&self, index: u64) -> u8 {
        self.letters[(index % self.length as u64) as usize]
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.letters[..self.length].iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

impl Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Transformer {
    /// The block of the layer at `index`.
    pub fn block(&self, index: u64) -> Block {
        let letter = self.pattern.map_or(b'A', |pattern| pattern.letter(index));
        let feed = match letter.is_ascii_lowercase() && !matches!(letter, b'f' | b'j') {
            true => FeedForward::None,
            false if self.routes(&(index..index + 1)) > 0 => FeedForward::Experts,
            false => FeedForward::Dense,
        };
        let mixer = match letter.to_ascii_uppercase() {
            b'L' => Mixer::Linear,
            b'M' => Mixer::Mamba,
            b'E' => Mixer::Encoder,
            b'C' => Mixer::Cross,
            b'J' if letter == b'j' => Mixer::JointLast,
            b'J' => Mixer::Joint,
            b'F' => Mixer::None,
            _ => Mixer::Attention,
        };
        Block { mixer, feed }
    }

    /// Every kind of block that occurs, each in its place. Without a pattern, dense layers are in the first place and layers
    /// with experts in the second.
    pub fn blocks(&self) -> [Option<Block>; MOST_BLOCKS] {
        let mut all = [None; MOST_BLOCKS];
        if self.pattern.is_none() {
            let experts = self.expert_layers();
            all[0] = (experts < self.layers).then_some(Block::DENSE);
            all[1] = (experts > 0).then_some(Block::EXPERTS);
            return all;
        }
        for block in self.blocks_in(&(0..self.layers.min(most::LAYERS))) {
            if let Some(place) = all.iter().position(|known| known.is_none_or(|own| own == block)) {
                all[place] = Some(block);
            }
        }
        all
    }

    fn blocks_in(&self, range: &Range<u64>) -> impl Iterator<Item = Block> {
        range.clone().map(|index| self.block(index))
    }

    /// Layers of a range by the place of their block.
    pub fn count_blocks(&self, range: &Range<u64>) -> [u64; MOST_BLOCKS] {
        let mut counts = [0; MOST_BLOCKS];
        if self.pattern.is_none() {
            counts[1] = self.experts_in(range);
            counts[0] = range.end - range.start - counts[1];
            return counts;
        }
        let known = self.blocks();
        for block in self.blocks_in(range) {
            if let Some(place) = known.iter().position(|own| *own == Some(block)) {
                counts[place] += 1;
            }
        }
        counts
    }

    /// Tokens of a sample that pass through such a layer.
    pub const fn tokens_of(&self, block: Block) -> u64 {
        match block.mixer {
            Mixer::Encoder => self.sequence,
            _ => self.decoded(),
        }
    }

    /// Tokens whose keys and values it attends to.
    pub const fn keys_of(&self, block: Block) -> u64 {
        match block.mixer {
            Mixer::Cross => self.sequence,
            _ => self.tokens_of(block),
        }
    }

    /// Whether its scores have relative-position biases; cross-attention has none.
    pub const fn biases_scores(&self, block: Block) -> bool {
        self.relative_positions > 0 && matches!(block.mixer, Mixer::Attention | Mixer::Encoder)
    }

    pub fn expert_layers(&self) -> u64 {
        self.experts_in(&(0..self.layers))
    }

    pub fn experts_in(&self, range: &Range<u64>) -> u64 {
        match self.pattern {
            None => self.routes(range),
            Some(_) => self.blocks_in(range).filter(|block| block.has_experts()).count() as u64,
        }
    }

    /// Layers of a range that have experts if they have a feed-forward.
    fn routes(&self, range: &Range<u64>) -> u64 {
        self.experts.map_or(0, |experts| {
            let until = |end: u64| end.max(experts.dense_layers) / experts.every.max(1);
            until(range.end) - until(range.start)
        })
    }

    /// Whether tensor-parallel ranks may divide its heads.
    pub fn divides_heads(&self, ranks: u64) -> bool {
        let kv_heads = self.kv_heads;
        let own = [
            self.delta.map(|own| own.key_heads),
            self.mamba.map(|own| if own.is_first() { own.heads } else { own.groups }),
        ];
        self.heads.is_multiple_of(ranks)
            && (kv_heads.is_multiple_of(ranks) || ranks.is_multiple_of(kv_heads))
            && own.iter().flatten().all(|heads| heads.is_multiple_of(ranks))
    }

    /// Checks that the shape has the widths of the pattern's mixers, and the pattern at most [`MOST_BLOCKS`] kinds of layers.
    pub(super) fn check_pattern(&self) -> Result<(), Fault> {
        let Some(pattern) = self.pattern else {
            return match self.target {
                0 => Ok(()),
                _ => Err(Fault::in_key("target", "there is no encoder", "begin `pattern` with `E`")),
            };
        };
        let wrong = |reason: &str, remedy: &str| Err(Fault::in_key("pattern", reason, remedy));
        let used =
            |letter| (0..self.layers.min(pattern.length as u64)).any(|index| pattern.letter(index) == letter);
        if (used(b'L') || used(b'l')) && self.delta.is_none() {
            return wrong("it has delta nets of unknown widths", "add `[model.transformer.delta]`");
        }
        if (used(b'M') || used(b'm')) && self.mamba.is_none() {
            return wrong("it has Mamba layers of unknown widths", "add `[model.transformer.mamba]`");
        }
        if self.window.is_some() {
            return wrong(
                "windows beside a pattern of layers are not modelled",
                "remove `window` or `pattern`",
            );
        }
        let encoder = (0..self.layers).take_while(|index| pattern.letter(*index) == b'E').count() as u64;
        if (encoder > 0) != (self.target > 0)
            || (encoder..self.layers).any(|index| pattern.letter(index) == b'E')
        {
            return wrong(
                "an encoder needs the first layers and a target",
                "put all `E` before other letters, and add `target`, the tokens of the decoder",
            );
        }
        if used(b'C') && encoder == 0 {
            return wrong("cross-attention needs an encoder", "begin it with `E`");
        }
        if (used(b'J') || used(b'j')) && self.text_tokens() == 0 {
            return wrong(
                "joint layers need tokens of a text",
                "add `[model.transformer.condition]` with `text` and `text-tokens`",
            );
        }
        if self.target > 0 && (self.mla.is_some() || self.multi_token > 0 || self.experts.is_some()) {
            let reason = "an encoder beside latent attention, experts or further tokens is not modelled";
            return wrong(reason, "remove one of them");
        }
        let known = self.blocks();
        if self.blocks_in(&(0..self.layers)).any(|block| !known.contains(&Some(block))) {
            return wrong("more than four kinds of layers are not modelled", "use fewer kinds");
        }
        Ok(())
    }
}
