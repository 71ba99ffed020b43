//! The words of a front end: how it calls remedies, and where its readers find more.

use stepcast_core::fault::{Remedies, Remedy};

/// Where a reader finds more than a table shows, or how to get a better answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    RowsInJson,
    ValuesInJson,
    RowsInFile,
    /// The messages of a plan can be listed.
    Messages,
    /// The forecast of one point explains its warnings.
    Warnings,
    /// Every assumed figure can be listed.
    Assumptions,
    /// One validation set shows all its cases.
    Cases,
    WholeForecast,
    NarrowInterval(Remedies),
}

/// The words of a front end; none for what it calls as everyone does.
#[derive(Clone, Copy)]
pub struct Wording {
    /// An imperative without a full stop.
    pub remedy: fn(&Remedy) -> Option<String>,
    pub hint: fn(&Hint) -> Option<&'static str>,
}

/// Words without flags: for the page, and for HTML in general.
pub const NEUTRAL: Wording = Wording { remedy: |_| None, hint: |_| None };

impl Wording {
    /// The sentence of a hint; empty if this front end has nothing to point to.
    pub fn hint(&self, hint: &Hint) -> String {
        if let Hint::NarrowInterval(remedies) = hint {
            return format!("To narrow the interval most: {}.", remedies.worded(self.remedy));
        }
        let neutral = match hint {
            Hint::RowsInJson => "JSON has them all.",
            Hint::ValuesInJson => "JSON has all values.",
            Hint::RowsInFile => "A download has them all.",
            Hint::Messages => "JSON lists them.",
            Hint::Warnings => "The forecast of a point explains its warnings.",
            Hint::Assumptions | Hint::Cases | Hint::WholeForecast | Hint::NarrowInterval(_) => "",
        };
        (self.hint)(hint).unwrap_or(neutral).to_owned()
    }
}
