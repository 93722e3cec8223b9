//! A machine on a kernel, fitted.

use super::KernelFn;
use super::arrays::InputArrays;
use crate::Error;
use mercer_data::Existing;
use mercer_learn::process::ProcessPosterior;
use mercer_learn::{Classify, KernelMachine, Machine, Predict, Rows};
use ndarray::Array2;
use std::path::Path;

/// A machine with its kernel and the samples it was fitted on; made by [`KernelFn::fit`].
#[derive(Clone, Debug)]
pub struct FittedMachine<'a> {
    machine: KernelMachine,
    kernel: KernelFn<'a>,
}

impl<'a> FittedMachine<'a> {
    pub(super) fn new(machine: KernelMachine, kernel: KernelFn<'a>) -> Self {
        Self { machine, kernel }
    }

    /// The machine itself.
    pub fn machine(&self) -> &Machine {
        &self.machine.machine
    }

    /// A row per sample: the values of a regression, or the scores of the classes seen in training.
    ///
    /// # Errors
    /// If the samples have a different shape from those it was fitted on.
    pub fn predict<X: InputArrays>(&self, x: X) -> Result<Array2<f64>, Error> {
        let rows = self.rows(x)?;
        Ok(self.machine().predict(&self.machine.samples_of(&rows))?)
    }

    /// The class of every sample.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and for a regression.
    pub fn classify<X: InputArrays>(&self, x: X) -> Result<Vec<usize>, Error> {
        let rows = self.rows(x)?;
        Ok(self.classifier()?.decide(&self.machine.samples_of(&rows))?)
    }

    /// The probabilities of the classes: a row per sample, a column per class.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn probabilities<X: InputArrays>(&self, x: X) -> Result<Array2<f64>, Error> {
        let rows = self.rows(x)?;
        Ok(self.classifier()?.probabilities(&self.machine.samples_of(&rows))?)
    }

    /// Means and variances of a Gaussian process.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and for a machine that is not Gaussian process regression.
    pub fn posterior<X: InputArrays>(&self, x: X) -> Result<ProcessPosterior, Error> {
        let rows = self.rows(x)?;
        match self.machine() {
            Machine::Process(process) => Ok(process.posterior(&self.machine.samples_of(&rows), rows.prior.view())?),
            _ => Err(Error::new("only Gaussian process regression has a posterior")),
        }
    }

    /// Saves the machine with its kernel, network and samples in a folder, as `mercer fit` does; `mercer predict --from` reads it.
    ///
    /// # Errors
    /// If the folder holds something else, or the network cannot be written with its choice of parameters.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let Some(kernel) = self.kernel.saved()? else {
            return Err(Error::new("an ONNX file cannot record this choice of parameters")
                .hint("fit the machine from the file, with ‹include› and ‹exclude›"));
        };
        let machine = KernelMachine { kernel: Some(kernel), ..self.machine.clone() };
        Ok(machine.save(folder.as_ref(), Existing::Refuse)?)
    }

    fn classifier(&self) -> Result<&dyn Classify, Error> {
        self.machine().as_classifier().ok_or_else(|| Error::new("this machine is not a classifier"))
    }

    fn rows<X: InputArrays>(&self, x: X) -> Result<Rows, Error> {
        Ok(self.machine.rows_with(self.kernel.network(), &x.into_datasets()?, self.kernel.context())?)
    }
}
