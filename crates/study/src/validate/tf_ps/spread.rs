//! How far a prediction may be off: what varies from run to run, which is simulated, and what the model lacks, which only
//! the errors of other configurations tell.

use super::Row;

/// Standard normal quantile of 95 %.
const NORMAL_95: f64 = 1.645;

/// What the model lacks where no other configuration tells: as on the testbed of docs/validation.md.
const USUAL_MODEL_ERROR: f64 = 0.05;

/// Standard deviation; of less than two values there is none.
pub(super) fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Model error for one configuration, from all others with two workers and more: mean square of the logarithmic errors,
/// less what varies from run to run.
fn model_error(rows: &[Row], configuration: &str) -> f64 {
    let others = rows.iter().filter(|row| row.workers >= 2 && row.configuration != configuration);
    let excess: Vec<f64> =
        others.map(|row| (row.measured / row.predicted).ln().powi(2) - row.run_spread.powi(2)).collect();
    if excess.is_empty() {
        return USUAL_MODEL_ERROR;
    }
    (excess.iter().sum::<f64>() / excess.len() as f64).max(0.0).sqrt()
}

/// Adds model error to the interval of every row.
pub(super) fn widen(rows: &mut [Row]) {
    let errors: Vec<f64> = rows.iter().map(|row| model_error(rows, &row.configuration)).collect();
    for (row, error) in rows.iter_mut().zip(errors) {
        let factor = (NORMAL_95 * error.hypot(row.run_spread)).exp();
        row.model_error = error;
        row.likely = [row.predicted / factor, row.predicted * factor];
    }
}

/// Share of the points with two workers and more that lie in an interval.
pub(super) fn coverage(rows: &[Row], interval: impl Fn(&Row) -> [f64; 2]) -> f64 {
    let judged: Vec<&Row> = rows.iter().filter(|row| row.workers >= 2).collect();
    let inside = judged.iter().filter(|row| {
        let [low, high] = interval(row);
        (low..=high).contains(&row.measured)
    });
    inside.count() as f64 / judged.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(configuration: &str, measured: f64, run_spread: f64) -> Row {
        Row {
            configuration: configuration.to_owned(),
            workers: 2,
            measured,
            predicted: 100.0,
            held_out: None,
            interval: [99.0, 101.0],
            likely: [0.0; 2],
            run_spread,
            model_error: 0.0,
            cynthia: 100.0,
            lin: 100.0,
        }
    }

    #[test]
    fn model_error_is_that_of_the_other_configurations() {
        let mut rows = [row("a", 110.0, 0.0), row("b", 100.0, 0.1)];
        widen(&mut rows);
        assert!(rows[0].model_error.abs() < 1e-12);
        assert!((rows[1].model_error - 1.1f64.ln()).abs() < 1e-12);
        assert!(rows[1].likely[1] > 125.0);
        assert!((coverage(&rows, |row| row.likely) - 0.5).abs() < 1e-12);
    }
}
