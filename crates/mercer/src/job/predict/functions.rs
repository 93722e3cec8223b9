//! Eigenfunctions of a folder on new samples.

use super::saved::Known;
use super::{PredictFindings, PredictJob, PredictPlan, Predicted, Work, inputs};
use crate::Error;
use crate::job::Destination;
use crate::spec::{Opening, Precision, Samples};
use mercer_data::folder::Folder;
use mercer_data::write_npy;
use mercer_kernel::{Real, SavedKernel};
use mercer_run::Context;
use mercer_spectral::{Description, Eigenfunctions};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is known of functions on new samples.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionFindings {
    /// The folder.
    pub functions: String,
    /// The samples.
    pub n_samples: usize,
    /// How many functions there are.
    pub components: usize,
    /// The scalar that they were found in.
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
    fingerprint: String,
    functions: EitherFunctions,
    samples: Samples,
}

#[derive(Debug)]
enum EitherFunctions {
    F32(Eigenfunctions<f32>),
    F64(Eigenfunctions<f64>),
}

impl SavedFunctions {
    pub(super) fn open(job: &PredictJob, place: &Path, folder: &Folder, opening: Opening<'_>) -> Result<Self, Error> {
        if job.data.labels.is_some() {
            return Err(Error::new(format!(
                "‹labels›: {} holds eigenfunctions, which tell no classes",
                place.display()
            ))
            .hint("`mercer fit centres ‹features›` makes a machine of them"));
        }
        let description: Description = folder.content()?;
        let (objects, content) = (folder.objects(), folder.content()?);
        let functions = match &description.precision[..] {
            "f32" => EitherFunctions::F32(Eigenfunctions::read(&objects, &content, None)?),
            _ => EitherFunctions::F64(Eigenfunctions::read(&objects, &content, None)?),
        };
        let (kernel, notes) = match &functions {
            EitherFunctions::F32(functions) => (functions.saved_kernel(), functions.notes()),
            EitherFunctions::F64(functions) => (functions.saved_kernel(), functions.notes()),
        };
        let network = kernel.map(SavedKernel::open).transpose()?.flatten();
        let columns = Samples::columns_of_note(notes.get("columns"))?;
        let broken = |error| Error::new(format!("the preprocessing of the folder cannot be read: {error}"));
        let preprocess = notes.get("preprocess").map(Vec::deserialize).transpose().map_err(broken)?;
        let samples = Known { columns: &columns, preprocess }.samples(&job.data, network.as_ref(), opening)?;
        samples.hint(network.as_ref(), opening)?;
        Ok(Self { place: place.display().to_string(), fingerprint: folder.fingerprint(), functions, samples })
    }

    /// With what it would do.
    pub(super) fn planned(self) -> (Work, PredictPlan) {
        let plan = PredictPlan {
            kind: mercer_spectral::KIND.name.to_owned(),
            n_samples: self.samples.n_samples,
            numbers: Some(match &self.functions {
                EitherFunctions::F32(functions) => functions.n_components() * functions.per_sample(),
                EitherFunctions::F64(functions) => functions.n_components() * functions.per_sample(),
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
        functions: &Eigenfunctions<T>,
        precision: Precision,
        destination: &Destination,
        context: &Context,
    ) -> Result<Predicted, Error> {
        let psi = {
            let _phase = context.phase("evaluating");
            functions.eval_data(&self.samples.inputs, context)?
        };
        if let Some(path) = &destination.path {
            let _phase = context.phase("writing");
            write_npy(path, &psi, destination.existing())?;
        }
        let findings = FunctionFindings {
            functions: self.place.clone(),
            n_samples: self.samples.n_samples,
            components: functions.n_components(),
            precision,
            shape: psi.shape().to_vec(),
            output: destination.path.as_ref().map(|path| path.display().to_string()),
        };
        Ok(Predicted {
            beside: Vec::new(),
            findings: PredictFindings::Functions(findings),
            shape: psi.shape().to_vec(),
            precision,
            inputs: inputs("from", &self.place, self.fingerprint.clone(), &self.samples)?,
        })
    }
}
