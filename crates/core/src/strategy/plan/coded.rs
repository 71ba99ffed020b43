//! Values of plan dimensions as numbers, which a search compares, and as words.

use super::{Offload, Recomputation};

/// The code of a value: searches compare plans by codes, and reports sort by them.
pub trait Coded {
    /// The code of a value that divides or changes nothing.
    const NEUTRAL: u64 = 0;

    fn code(&self) -> u64;

    fn written(&self) -> String;
}

pub(super) trait Decoded: Coded {
    fn from_code(code: u64) -> Self;
}

impl Coded for u64 {
    const NEUTRAL: u64 = 1;

    fn code(&self) -> u64 {
        *self
    }

    fn written(&self) -> String {
        self.to_string()
    }
}

impl Coded for bool {
    fn code(&self) -> u64 {
        u64::from(*self)
    }

    fn written(&self) -> String {
        self.to_string()
    }
}

impl Coded for Option<u64> {
    fn code(&self) -> u64 {
        self.unwrap_or(0)
    }

    fn written(&self) -> String {
        self.code().to_string()
    }
}

impl Decoded for Option<u64> {
    fn from_code(code: u64) -> Self {
        Some(code)
    }
}

impl Coded for Option<bool> {
    fn code(&self) -> u64 {
        u64::from(*self == Some(true))
    }

    fn written(&self) -> String {
        self.unwrap_or_default().to_string()
    }
}

impl Decoded for Option<bool> {
    fn from_code(code: u64) -> Self {
        Some(code == 1)
    }
}

impl Coded for Vec<Offload> {
    fn code(&self) -> u64 {
        self.iter().fold(0, |bits, what| bits | 1 << what.code())
    }

    fn written(&self) -> String {
        self.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    }
}

impl Decoded for Vec<Offload> {
    fn from_code(code: u64) -> Self {
        Offload::ALL.iter().copied().filter(|what| code & 1 << what.code() != 0).collect()
    }
}

impl Coded for Recomputation {
    fn code(&self) -> u64 {
        2 * self.what.parts().map(|part| 1 << part.code()).sum::<u64>() + u64::from(self.layers.is_some())
    }

    fn written(&self) -> String {
        match self.layers {
            Some(_) => format!("some {}s", self.what),
            None => self.what.to_string(),
        }
    }
}
