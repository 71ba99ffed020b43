//! Documents of samples: their lengths, how they share a sequence, and the resulting attention and padding.

use crate::fault::Fault;
use crate::files::Files;
use crate::keys::{Given, plain, unordered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest document.
const MOST: u64 = 1 << 24;

/// Number of documents that represent a distribution.
const POINTS: u64 = 512;

/// Buckets of documents of similar length: the sampler of Hugging Face sorts documents of fifty batches at a time
/// (`LengthGroupedSampler` of transformers).
const BUCKETS: u128 = 50;

/// How documents share a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// Each has a separate sequence, which is padded.
    Padded,
    /// Several follow each other, and attention sees all of them.
    Across,
    /// Several follow each other, and attention stays within each.
    #[default]
    Within,
    /// Each has a separate sequence; documents of similar length come together and are padded to the longest of them.
    Bucketed,
}

plain!(Packing, "`\"padded\"`, `\"across\"`, `\"within\"` or `\"bucketed\"`");

/// Lengths of documents as a file gives them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Lengths {
    /// All alike.
    Fixed(u64),
    /// The length of each document, or of a sample of them.
    Each(Vec<u64>),
    /// A file of lines `length` or `length,count`, beside the scenario.
    File(String),
    /// A log-normal distribution.
    LogNormal {
        /// Mean length.
        mean: f64,
        /// Standard deviation of the logarithm of lengths.
        spread: f64,
    },
    /// Sums over documents.
    Sums(DocumentLengths),
}

/// Sums over documents, which determine all results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentLengths {
    /// Documents.
    pub documents: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Squares of lengths.
    pub squares: u64,
    /// Fourth powers of lengths, each divided by 2^20.
    pub fourths: u64,
    /// Tokens where each document is padded to the longest of its bucket, and squares of these lengths.
    pub bucketed: [u64; 2],
    /// The longest.
    pub longest: u64,
}

impl DocumentLengths {
    fn of_counted(lengths: impl IntoIterator<Item = (u64, u64)>) -> Result<Self, Fault> {
        let mut lengths: Vec<(u64, u64)> = lengths.into_iter().collect();
        lengths.sort_unstable();
        let longest = lengths.last().map_or(0, |(length, _)| *length);
        let mut sums = [0_u128; 4];
        for &(length, count) in &lengths {
            if !(1..=MOST).contains(&length) || count > MOST {
                let reason = format!("{count} documents of {length} tokens");
                return Err(Fault::new(reason, format!("lengths are between 1 and {MOST}")));
            }
            let (length, count) = (u128::from(length), u128::from(count));
            let square = length * length;
            let each = [1, length, square, (square * square) >> 20];
            sums.iter_mut().zip(each).for_each(|(sum, each)| *sum += each * count);
        }
        // All buckets have the same number of documents, each padded to the length of its last one.
        let documents = sums[0].max(1);
        let (mut bucketed, mut from, mut before) = ([0_u128; 2], 0, 0);
        for (length, count) in lengths {
            before += u128::from(count);
            let to = before * BUCKETS / documents * documents / BUCKETS;
            let (length, here) = (u128::from(length), to.saturating_sub(from));
            bucketed = [bucketed[0] + here * length, bucketed[1] + here * length * length];
            from = from.max(to);
        }
        let narrow = |sum: u128| u64::try_from(sum);
        let [documents, tokens, squares, fourths] = sums.map(narrow);
        let [padded, padded_squares] = bucketed.map(narrow);
        match (documents, tokens, squares, fourths, padded, padded_squares) {
            (Ok(0), ..) => Err(Fault::new("there are no documents", "give some lengths")),
            (Ok(documents), Ok(tokens), Ok(squares), Ok(fourths), Ok(padded), Ok(padded_squares)) => {
                Ok(Self { documents, tokens, squares, fourths, bucketed: [padded, padded_squares], longest })
            }
            _ => Err(Fault::new("there are too many documents", "give a sample of them")),
        }
    }
}

impl Given<DocumentLengths> for Lengths {
    fn written() -> String {
        "integer, list, path or table".to_owned()
    }

    fn resolve(self, files: &dyn Files) -> Result<DocumentLengths, Fault> {
        match self {
            Self::Fixed(length) => DocumentLengths::of_counted([(length, 1)]),
            Self::Each(lengths) => DocumentLengths::of_counted(lengths.into_iter().map(|length| (length, 1))),
            Self::File(path) => DocumentLengths::of_counted(histogram(&path, &files.text(&path)?)?),
            Self::LogNormal { mean, spread } => {
                if !(1.0..=MOST as f64).contains(&mean) || !(0.0..=4.0).contains(&spread) {
                    let reason = format!("a mean of {mean} tokens with a spread of {spread}");
                    return Err(Fault::new(reason, "use a table such as `{ mean = 600, spread = 1.0 }`"));
                }
                let middle = mean.ln() - 0.5 * spread * spread;
                let point = |index: u64| {
                    let share = (index as f64 + 0.5) / POINTS as f64;
                    (middle + spread * normal_quantile(share)).exp().round().clamp(1.0, MOST as f64) as u64
                };
                DocumentLengths::of_counted((0..POINTS).map(|index| (point(index), 1)))
            }
            Self::Sums(sums) if sums.documents > 0 && sums.tokens >= sums.documents && sums.longest > 0 => {
                Ok(sums)
            }
            Self::Sums(_) => Err(Fault::new("there are no documents", "give some lengths")),
        }
    }

    fn write(value: &DocumentLengths) -> Self {
        Self::Sums(*value)
    }
}

unordered!(DocumentLengths);

fn histogram(path: &str, text: &str) -> Result<Vec<(u64, u64)>, Fault> {
    let mut all = Vec::new();
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
        let (length, count) = line.split_once(',').unwrap_or((line, "1"));
        match (length.trim().parse(), count.trim().parse()) {
            (Ok(length), Ok(count)) => all.push((length, count)),
            // A header.
            _ if all.is_empty() && number == 1 => {}
            _ => {
                let reason = format!("line {number} of \"{path}\" is no length and count: {line}");
                return Err(Fault::new(reason, "use lines such as `512,1000`"));
            }
        }
    }
    Ok(all)
}

/// Quantiles of the normal distribution, to 0.00045 (Abramowitz and Stegun 1964, 26.2.23).
fn normal_quantile(share: f64) -> f64 {
    let tail = share.min(1.0 - share);
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let size = t - above / below;
    if share < 0.5 { -size } else { size }
}

/// Documents in the sequences of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Documents {
    pub packing: Packing,
    pub lengths: DocumentLengths,
}

impl Documents {
    /// Tokens of a sequence on average, where at most `sequence` fit, in multiples of eight as tensor units want them.
    pub fn sequence(&self, sequence: u64) -> u64 {
        let DocumentLengths { documents, bucketed, .. } = self.lengths;
        match self.packing {
            Packing::Bucketed => bucketed[0].div_ceil(documents).next_multiple_of(8).min(sequence),
            Packing::Padded | Packing::Across | Packing::Within => sequence,
        }
    }

    /// Tokens of the longest sequence, where `sequence` is the mean.
    pub fn longest(&self, sequence: u64) -> u64 {
        if self.packing == Packing::Bucketed { self.lengths.longest.max(sequence) } else { sequence }
    }

    /// The documents, cut to at most `sequence` tokens.
    #[must_use]
    pub fn cut(self, sequence: u64) -> Self {
        let longest = self.lengths.longest.min(sequence);
        Self { lengths: DocumentLengths { longest, ..self.lengths }, ..self }
    }

    /// Share of a sequence's tokens that belong to documents.
    pub fn useful(&self, sequence: u64) -> f64 {
        let mean = self.lengths.tokens as f64 / self.lengths.documents as f64;
        match self.packing {
            Packing::Padded | Packing::Bucketed => (mean / sequence as f64).min(1.0),
            Packing::Across | Packing::Within => 1.0,
        }
    }

    /// Sum of the squared lengths of the documents in a sequence, if attention stays within each: s·Σl²/Σl; in buckets, with
    /// padding.
    pub fn squares(&self, sequence: u64) -> Option<u128> {
        let DocumentLengths { tokens, squares, bucketed, longest, .. } = self.lengths;
        let whole = u128::from(sequence);
        let of = |squares: u64, tokens: u64| whole * u128::from(squares) / u128::from(tokens.max(1));
        match self.packing {
            Packing::Padded | Packing::Across => None,
            Packing::Within => Some(of(squares, tokens).clamp(whole, whole * whole)),
            Packing::Bucketed => {
                let most = whole * u128::from(longest.max(sequence));
                Some(of(bucketed[1], bucketed[0]).clamp(whole * whole, most))
            }
        }
    }

    /// Attention of the fullest of `ranks`, each with `sequences` in a step, relative to the mean: the expected largest of this many
    /// normal sums of squared lengths (Blom 1958).
    pub fn imbalance(&self, sequence: u64, sequences: u64, ranks: u64) -> f64 {
        let DocumentLengths { documents, tokens, squares, fourths, .. } = self.lengths;
        if self.packing != Packing::Within || ranks < 2 {
            return 1.0;
        }
        let mean = squares as f64 / documents as f64;
        let variance = fourths as f64 * f64::from(1 << 20) / documents as f64 - mean * mean;
        let count = (sequence * sequences) as f64 * documents as f64 / tokens as f64;
        let spread = (variance.max(0.0) / count.max(1.0)).sqrt() / mean;
        1.0 + spread * normal_quantile((ranks as f64 - 0.375) / (ranks as f64 + 0.25))
    }
}
