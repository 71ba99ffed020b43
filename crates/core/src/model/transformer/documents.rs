//! Documents of samples: how long they are, how they share a sequence, and what attention and padding follow.

use crate::fault::Fault;
use crate::files::Files;
use crate::keys::{Given, plain, unordered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest document.
const MOST: u64 = 1 << 24;

/// Points of a distribution at which documents are taken.
const POINTS: u64 = 512;

/// How documents share a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// Each has a sequence of its own, which is filled up.
    Padded,
    /// Several follow each other, and attention sees all of them.
    Across,
    /// Several follow each other, and attention stays within each.
    #[default]
    Within,
}

plain!(Packing, "`\"padded\"`, `\"across\"` or `\"within\"`");

/// Lengths of documents as a file gives them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Lengths {
    /// All alike.
    Fixed(u64),
    /// Each, or a sample of them.
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

/// Sums over documents, from which all that matters follows.
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
}

impl DocumentLengths {
    fn of_counted(lengths: impl IntoIterator<Item = (u64, u64)>) -> Result<Self, Fault> {
        let mut sums = [0_u128; 4];
        for (length, count) in lengths {
            if !(1..=MOST).contains(&length) || count > MOST {
                let reason = format!("{count} documents of {length} tokens");
                return Err(Fault::new(reason, format!("lengths are between 1 and {MOST}")));
            }
            let (length, count) = (u128::from(length), u128::from(count));
            let square = length * length;
            let each = [1, length, square, (square * square) >> 20];
            sums.iter_mut().zip(each).for_each(|(sum, each)| *sum += each * count);
        }
        let narrow = |sum: u128| u64::try_from(sum);
        match (narrow(sums[0]), narrow(sums[1]), narrow(sums[2]), narrow(sums[3])) {
            (Ok(documents), Ok(tokens), Ok(squares), Ok(fourths)) if documents > 0 => {
                Ok(Self { documents, tokens, squares, fourths })
            }
            (Ok(0), ..) => Err(Fault::new("there are no documents", "give some lengths")),
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
            Self::Sums(sums) if sums.documents > 0 && sums.tokens >= sums.documents => Ok(sums),
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
    /// Share of a sequence's tokens that belong to documents.
    pub fn useful(&self, sequence: u64) -> f64 {
        let mean = self.lengths.tokens as f64 / self.lengths.documents as f64;
        match self.packing {
            Packing::Padded => (mean / sequence as f64).min(1.0),
            Packing::Across | Packing::Within => 1.0,
        }
    }

    /// Sum of the squared lengths of the documents in a sequence, if attention stays within each: s·Σl²/Σl.
    pub fn squares(&self, sequence: u64) -> Option<u128> {
        let DocumentLengths { tokens, squares, .. } = self.lengths;
        let whole = u128::from(sequence);
        let within = whole * u128::from(squares) / u128::from(tokens.max(1));
        (self.packing == Packing::Within).then(|| within.clamp(whole, whole * whole))
    }

    /// Attention of the fullest of `ranks` against the mean, whose steps have `sequences` each: the expected largest of as many
    /// normal sums of squared lengths (Blom 1958).
    pub fn imbalance(&self, sequence: u64, sequences: u64, ranks: u64) -> f64 {
        let DocumentLengths { documents, tokens, squares, fourths } = self.lengths;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NoFiles;

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
        assert_eq!(histogram("a", "length,count\n512,10\n\n64\n").unwrap(), [(512, 10), (64, 1)]);
        assert!(histogram("a", "512,10\nten\n").unwrap_err().reason.contains("line 2"));
        assert!(Lengths::Each(Vec::new()).resolve(&NoFiles).is_err());
        assert!(Lengths::Fixed(0).resolve(&NoFiles).is_err());
    }
}
