//! A method that tells how far it is, and stops answering when nobody listens.

use std::sync::Mutex;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::Scenario;
use tokio_util::sync::CancellationToken;

/// Is told of every prediction.
pub(crate) type Tell<'a> = Box<dyn FnMut(&Prediction) + Send + 'a>;

/// Another method, watched.
pub(crate) struct Watched<'a> {
    method: &'static dyn Method,
    token: &'a CancellationToken,
    tell: Mutex<Tell<'a>>,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(method: &'static dyn Method, token: &'a CancellationToken, tell: Tell<'a>) -> Self {
        Self { method, token, tell: Mutex::new(tell) }
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
        if self.token.is_cancelled() {
            let (reason, remedy) = ("it was stopped before it was done".to_owned(), "ask again".to_owned());
            return Err(Fault::new(reason, remedy));
        }
        let prediction = self.method.predict(scenario)?;
        if let Ok(mut tell) = self.tell.lock() {
            tell(&prediction);
        }
        Ok(prediction)
    }
}
