//! Eigenfunctions of a folder on new samples.

use super::{PredictFindings, PredictJob, PredictPlan, Predicted, Work, inputs};
use crate::Error;
use crate::job::Destination;
use crate::job::eigen::{self, precision_of};
use crate::spec::{Opening, Precision, Samples};
use mercer_data::folder::Folder;
use mercer_data::write_npy;
use mercer_kernel::Real;
use mercer_run::Context;
use serde::Serialize;
use std::path::Path;

/// The findings for functions on new samples.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionFindings {
    /// The folder.
    pub functions: String,
    /// The samples.
    pub n_samples: usize,
    /// How many functions there are.
    pub components: usize,
    /// The precision that they were found in.
    pub precision: Precision,
    /// Of the array.
    pub shape: Vec<usize>,
    /// The array that was written.
    pub output: Option<String>,
}

/// Functions with the samples that they are evaluated on.
#[derive(Debug)]
pub(super) struct SavedFunctions {
    place: String,
    functions: EitherFunctions,
    samples: Samples,
}

#[derive(Debug)]
enum EitherFunctions {
    F32(eigen::SavedFunctions<f32>),
    F64(eigen::SavedFunctions<f64>),
}

impl SavedFunctions {
    pub(super) fn open(
        job: &PredictJob,
        place: &Path,
        (folder, before): (&Folder, bool),
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        if job.data.labels.is_some() {
            return Err(Error::new(format!(
                "‹labels›: {} holds eigenfunctions, which do not predict classes",
                place.display()
            ))
            .hint("fit a machine on them: `mercer fit centres ‹features› FILE`"));
        }
        let functions = match precision_of(&folder.content()?) {
            Precision::F32 => EitherFunctions::F32(eigen::SavedFunctions::read(folder, before)?),
            Precision::F64 => EitherFunctions::F64(eigen::SavedFunctions::read(folder, before)?),
        };
        let samples = match &functions {
            EitherFunctions::F32(functions) => functions.samples("data", &job.data, opening)?,
            EitherFunctions::F64(functions) => functions.samples("data", &job.data, opening)?,
        };
        Ok(Self { place: place.display().to_string(), functions, samples })
    }

    /// Returns it with its plan.
    pub(super) fn planned(self) -> (Work, PredictPlan) {
        let plan = PredictPlan {
            kind: mercer_spectral::KIND.name.to_owned(),
            n_samples: self.samples.n_samples,
            numbers: Some(match &self.functions {
                EitherFunctions::F32(saved) => saved.functions.n_components() * saved.functions.per_sample(),
                EitherFunctions::F64(saved) => saved.functions.n_components() * saved.functions.per_sample(),
            }),
            gflop: None,
        };
        (Work::Functions(Box::new(self)), plan)
    }

    pub(super) fn run(&self, destination: &Destination, context: &Context) -> Result<Predicted, Error> {
        match &self.functions {
            EitherFunctions::F32(functions) => self.evaluate(functions, Precision::F32, destination, context),
            EitherFunctions::F64(functions) => self.evaluate(functions, Precision::F64, destination, context),
        }
    }

    fn evaluate<T: Real>(
        &self,
        saved: &eigen::SavedFunctions<T>,
        precision: Precision,
        destination: &Destination,
        context: &Context,
    ) -> Result<Predicted, Error> {
        let psi = {
            let _phase = context.phase("evaluating");
            saved.evaluate(&self.samples, context)?
        };
        if let Some(path) = &destination.path {
            let _phase = context.phase("writing");
            write_npy(path, &psi, destination.existing())?;
        }
        let findings = FunctionFindings {
            functions: self.place.clone(),
            n_samples: self.samples.n_samples,
            components: saved.functions.n_components(),
            precision,
            shape: psi.shape().to_vec(),
            output: destination.path.as_ref().map(|path| path.display().to_string()),
        };
        Ok(Predicted {
            beside: Vec::new(),
            findings: PredictFindings::Functions(findings),
            shape: psi.shape().to_vec(),
            precision,
            inputs: inputs("from", &self.place, saved.fingerprint().to_owned(), &self.samples)?,
        })
    }
}
