//! The forecast of a prepared request, shared by all front ends.

use super::{Forecast, MethodChoice, WORTH, usual_workers};
use crate::request::{Request, Source};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use stepcast_core::fault::Fault;
use stepcast_core::method::{Method, Progress, Stopped, Watch};
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::Scenario;

/// The extent of a forecast beyond the scenario itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Extent {
    /// Numbers of workers of the scaling table; the [usual ones](usual_workers) where none are given.
    pub workers: Option<Vec<u32>>,
    /// The gain in throughput above which more workers are worth it.
    pub worth: f64,
}

impl Default for Extent {
    fn default() -> Self {
        Self { workers: None, worth: WORTH }
    }
}

/// A scenario and the method that predicts it.
#[derive(Clone)]
pub struct Prepared {
    /// The scenario.
    pub scenario: Scenario,
    /// The method.
    pub method: &'static dyn Method,
}

impl Prepared {
    /// The numbers of workers of the scaling table.
    pub fn workers(&self, extent: &Extent) -> Vec<u32> {
        extent.workers.clone().unwrap_or_else(|| usual_workers(&self.scenario, self.method))
    }

    /// The forecast; errors name keys of the scenario.
    pub fn forecast(&self, extent: &Extent, watch: &Watch<'_>) -> Result<Forecast, Stopped> {
        self.forecast_in_parts(extent, watch, &|_| ())
    }

    /// The same; `part` receives what is known of it [so far](Forecast::in_parts).
    pub fn forecast_in_parts(
        &self,
        extent: &Extent,
        watch: &Watch<'_>,
        part: &dyn Fn(&Forecast),
    ) -> Result<Forecast, Stopped> {
        let watched = Watched::new(self.method, watch);
        let workers = self.workers(extent);
        let forecast = Forecast::in_parts(&self.scenario, &watched, &workers, extent.worth, watch, part);
        if watched.is_cancelled() { Err(Stopped::Cancelled) } else { forecast }
    }
}

/// Answers a request: resolves its scenario, chooses the method and makes the forecast.
pub fn predict<F: Source>(
    request: &Request<F>,
    choice: MethodChoice,
    extent: &Extent,
    watch: &Watch<'_>,
) -> Result<Forecast, Stopped> {
    request.forecast(&request.prepare(choice)?, extent, watch)
}

/// A method that reports every prediction and stops once it is cancelled.
pub(crate) struct Watched<'a> {
    method: &'static dyn Method,
    watch: &'a Watch<'a>,
    cancelled: AtomicBool,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(method: &'static dyn Method, watch: &'a Watch<'a>) -> Self {
        Self { method, watch, cancelled: AtomicBool::new(false) }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Method for Watched<'_> {
    fn name(&self) -> &'static str {
        self.method.name()
    }

    fn summary(&self) -> &'static str {
        self.method.summary()
    }

    fn source(&self) -> &'static str {
        self.method.source()
    }

    fn is_quick(&self) -> bool {
        self.method.is_quick()
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        self.method.applies(scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        // Only the figure that is asked for is worth showing before it is final.
        let quietly = |progress: Progress<'_>| match progress {
            Progress::Estimate(_) => (self.watch)(Progress::Working),
            _ => (self.watch)(progress),
        };
        self.predict_watched(scenario, &quietly).map_err(Fault::from)
    }

    fn predict_watched(&self, scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
        let watch = |progress: Progress<'_>| {
            let flow =
                if self.cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { watch(progress) };
            if flow.is_break() {
                self.cancelled.store(true, Ordering::Relaxed);
            }
            flow
        };
        let prediction = self.method.predict_watched(scenario, &watch)?;
        match watch(Progress::Predicted(&prediction)) {
            ControlFlow::Continue(()) => Ok(prediction),
            ControlFlow::Break(()) => Err(Stopped::Cancelled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::method::unwatched;

    #[test]
    fn a_watcher_hears_of_predictions_and_ends_the_work() {
        let request = Request::quick_start(Vec::new());
        let heard = std::sync::Mutex::new(0);
        let count = |progress: Progress<'_>| {
            *heard.lock().unwrap() += usize::from(matches!(progress, Progress::Predicted(_)));
            ControlFlow::Continue(())
        };
        let extent = Extent::default();
        let watched = predict(&request, MethodChoice::Auto, &extent, &count).unwrap();
        assert_eq!(watched, predict(&request, MethodChoice::Auto, &extent, &unwatched).unwrap());
        assert!(*heard.lock().unwrap() > watched.scaling.len());
        let ended = predict(&request, MethodChoice::Auto, &extent, &|_| ControlFlow::Break(()));
        assert_eq!(ended, Err(Stopped::Cancelled));
    }
}
