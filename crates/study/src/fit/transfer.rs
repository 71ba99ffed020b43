//! Measured transfers: columns bytes and a time.

use super::measured::Table;
use super::{Fault, Fitted, Row, source};
use std::collections::BTreeSet;
use std::path::Path;
use stepcast_core::fitted::transfer::{TransferCurve, TransferModel};
use stepcast_core::quantity::Bytes;
use stepcast_fit::artefact::Errors;
use stepcast_fit::transfer::{COEFFICIENTS, Transfer, fit as fit_curve, quality, to_toml};

#[derive(Default)]
struct Transfers {
    fit: Vec<Transfer>,
    held: Vec<Transfer>,
}

fn read(path: &Path) -> Result<Transfers, Fault> {
    let table = Table::read(path)?;
    let bytes = table.column("bytes")?;
    let (times, set) = (table.times()?, table.optional("set"));
    let mut transfers = Transfers::default();
    let mut seen = BTreeSet::new();
    for line in table.lines() {
        let transfer = (Bytes::new(line.amount(bytes)?), line.time(times)?);
        let held = line.is_held(set)?;
        if !seen.insert((held, transfer.0.get().to_bits())) {
            return Err(line.again(&format!("a transfer of {} bytes", transfer.0.get())));
        }
        if held { transfers.held.push(transfer) } else { transfers.fit.push(transfer) }
    }
    Ok(transfers)
}

/// Fits the transfers of `data`; those of `test`, if given, are tested with instead of its held rows.
pub fn run(data: &Path, test: Option<&Path>, date: String) -> Result<Fitted, Fault> {
    let Transfers { fit, mut held } = read(data)?;
    if let Some(test) = test {
        let other = read(test)?;
        held = [other.fit, other.held].concat();
    }
    let untold = |error| super::undetermined(data, "the transfer", &error, &COEFFICIENTS);
    let curve = fit_curve(&fit).map_err(untold)?;
    let extreme = |pick: fn(Bytes, Bytes) -> Bytes| fit.iter().map(|(size, _)| *size).reduce(pick);
    let (least, most) = (extreme(Bytes::min), extreme(Bytes::max));
    let (Some(on_fit), Some(least), Some(most)) = (quality(&curve, &fit), least, most) else {
        return Err(Fault::in_file(
            data.display().to_string(),
            "it holds no transfers to fit",
            "add fit rows",
        ));
    };
    let errors = Errors { fit: on_fit, held: quality(&curve, &held) };
    let outside = held.iter().filter(|(size, _)| *size < least || *size > most).count();
    let mut notes = vec![match curve {
        TransferCurve::Line { startup, bandwidth } => {
            format!("A line: {} and {}.", startup.human(), bandwidth.human())
        }
        TransferCurve::LogLinear(_) => "A logarithm for small transfers, a line for large ones.".to_owned(),
    }];
    if outside > 0 {
        notes.push(format!("{outside} held transfers are outside the fitted sizes: extrapolated."));
    }
    let model = TransferModel { least, most, curve };
    let artefact = to_toml(&model, &errors, source(data, fit.len()), date)
        .map_err(|error| super::unprintable(data, &error))?;
    let rows = Row::of("transfer", &errors).collect();
    Ok(Fitted { rows, left_out: Vec::new(), notes, artefact })
}
