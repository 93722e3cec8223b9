//! The few traits of machines.
//!
//! Settings are checked by their constructors, so that bad ones cannot reach [`Fit::fit`]; what comes out of it is fitted, so
//! that there is nothing to ask a machine before it knows the answer.

use crate::classes::ClassSet;
use crate::error::{LearnError, Result};
use crate::repair::Repair;
use crate::samples::Samples;
use crate::softmax::softmax;
use mercer_run::Context;
use ndarray::{Array2, ArrayViewD};

/// Checked settings that become a machine. `Targets` are numbers (`Array2<f64>`, a row per sample) or
/// [`Classes`](mercer_data::Classes).
pub trait Fit<Targets: ?Sized> {
    /// What comes out.
    type Machine: Predict;

    /// What [`fit`](Self::fit) does before it looks at what came out. Long loops ask the context whether to go on.
    fn learn(&self, samples: &Samples<'_>, targets: &Targets, context: &Context) -> Result<Self::Machine>;

    /// Learns from samples and what is known of them. What comes out has finite numbers alone.
    fn fit(&self, samples: &Samples<'_>, targets: &Targets) -> Result<Self::Machine> {
        self.fit_within(samples, targets, &Context::new())
    }

    /// As [`fit`](Self::fit), until the context calls it off.
    fn fit_within(&self, samples: &Samples<'_>, targets: &Targets, context: &Context) -> Result<Self::Machine> {
        finite(self.learn(samples, targets, context)?)
    }
}

/// The machine, if all its numbers are finite: nothing else becomes one.
pub(crate) fn finite<M: Predict>(machine: M) -> Result<M> {
    let broken = machine.numbers().into_iter().find(|(_, numbers)| numbers.iter().any(|number| !number.is_finite()));
    match broken.map(|(what, _)| what) {
        Some(what) => Err(LearnError::NotFinite { what }),
        None => Ok(machine),
    }
}

/// A fitted machine.
pub trait Predict {
    /// A row per sample: the values of a regression, or the scores of the classes that were seen.
    fn predict(&self, samples: &Samples<'_>) -> Result<Array2<f64>>;

    /// All numbers that it was fitted to, by what they are.
    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)>;

    /// What had to be repaired to fit it.
    fn repairs(&self) -> &[Repair];
}

/// A fitted machine that tells classes apart.
pub trait Classify: Predict {
    /// Its classes.
    fn classes(&self) -> &ClassSet;

    /// The class of every sample, as an index into the names of all classes.
    fn decide(&self, samples: &Samples<'_>) -> Result<Vec<usize>> {
        Ok(self.classes().decide(self.predict(samples)?.view()))
    }

    /// A row per sample and a column per class, absent ones included; rows sum to one.
    fn probabilities(&self, samples: &Samples<'_>) -> Result<Array2<f64>> {
        Ok(self.classes().spread(softmax(self.predict(samples)?.view())))
    }
}
