//! The traits of machines.
//!
//! Constructors check settings, so bad settings cannot reach [`Fit::fit`]. Its result is a fitted machine, so an
//! unfitted machine can never be asked to predict.

use crate::classes::ClassSet;
use crate::error::{LearnError, Result};
use crate::repair::Repair;
use crate::samples::SampleRows;
use crate::softmax::softmax;
use mercer_run::Context;
use ndarray::{Array2, ArrayViewD};

/// Checked settings that become a machine. `Targets` are numbers (`Array2<f64>`, a row per sample) or
/// [`Classes`](mercer_data::Classes).
pub trait Fit<Targets: ?Sized> {
    /// The fitted machine.
    type Machine: Predict;

    /// The fit itself, before [`fit`](Self::fit) checks its result. Long loops check the context for cancellation.
    fn learn(&self, samples: &SampleRows<'_>, targets: &Targets, context: &Context) -> Result<Self::Machine>;

    /// Fits a machine to samples and targets. All numbers of the result are finite.
    fn fit(&self, samples: &SampleRows<'_>, targets: &Targets) -> Result<Self::Machine> {
        self.fit_within(samples, targets, &Context::new())
    }

    /// As [`fit`](Self::fit), with cancellation through the context.
    fn fit_within(&self, samples: &SampleRows<'_>, targets: &Targets, context: &Context) -> Result<Self::Machine> {
        finite(self.learn(samples, targets, context)?)
    }
}

/// The machine, if all its numbers are finite.
pub(crate) fn finite<M: Predict>(machine: M) -> Result<M> {
    let broken = machine.numbers().into_iter().find(|(_, numbers)| numbers.iter().any(|number| !number.is_finite()));
    match broken.map(|(what, _)| what) {
        Some(what) => Err(LearnError::NotFinite { what }),
        None => Ok(machine),
    }
}

/// A fitted machine.
pub trait Predict {
    /// A row per sample: the values of a regression, or the scores of the classes with training samples.
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>>;

    /// All fitted numbers, with the names of their arrays.
    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)>;

    /// The repairs of the fit.
    fn repairs(&self) -> &[Repair];
}

/// A fitted classifier.
pub trait Classify: Predict {
    /// Its classes.
    fn classes(&self) -> &ClassSet;

    /// The class of every sample, as an index into the names of all classes.
    fn decide(&self, samples: &SampleRows<'_>) -> Result<Vec<usize>> {
        Ok(self.classes().decide(self.predict(samples)?.view()))
    }

    /// A row per sample and a column per class, absent ones included; rows sum to one.
    fn probabilities(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        Ok(self.classes().spread(softmax(self.predict(samples)?.view())))
    }
}
