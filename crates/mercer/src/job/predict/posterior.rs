//! Predictions of a saved posterior on new samples.

use super::{PredictFindings, PredictJob, PredictPlan, Predicted, Quality, Work, inputs, regions, variance};
use crate::Error;
use crate::job::Destination;
use crate::job::uncertainty::{Predictions, RegionFindings, Regions, SavedPosterior};
use crate::spec::{Opening, Precision, Samples};
use mercer_data::Labels;
use mercer_data::folder::Folder;
use mercer_net::network::largest;
use mercer_run::Context;
use ndarray::Array2;
use serde::Serialize;
use std::path::Path;

/// The findings for the predictions of a posterior.
#[derive(Clone, Debug, Serialize)]
pub struct PosteriorFindings {
    /// The folder.
    pub posterior: String,
    /// The samples.
    pub n_samples: usize,
    /// Of the array.
    pub shape: Vec<usize>,
    /// The names of the probability columns; none if classes are numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// The standard deviation of the observation noise of a regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// The array that was written: probabilities, or means.
    pub output: Option<String>,
    /// The variances of the means, in a file beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variances: Option<String>,
    /// The conformal sets or intervals, if the posterior was calibrated for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conformal: Option<RegionFindings>,
    /// Their table, in a file beside the array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<String>,
    /// Their quality, if there are labels.
    #[serde(flatten)]
    pub quality: Quality,
}

/// A posterior with the samples to predict.
#[derive(Debug)]
pub(super) struct PosteriorRun {
    place: String,
    fingerprint: String,
    posterior: SavedPosterior,
    samples: Samples,
}

impl PosteriorRun {
    pub(super) fn open(
        job: &PredictJob,
        place: &Path,
        (folder, destination): (&Folder, &Destination),
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        variance::check(destination)?;
        let posterior = SavedPosterior::read(folder)?;
        if posterior.conformal().is_some() {
            regions::check(destination)?;
        }
        let samples = posterior.samples(&job.data, opening)?;
        samples.hint(Some(posterior.network()), opening)?;
        Ok(Self { place: place.display().to_string(), fingerprint: folder.fingerprint(), posterior, samples })
    }

    /// Returns it with its plan.
    pub(super) fn planned(self) -> (Work, PredictPlan) {
        let (kind, n_samples) = (mercer_learn::laplace::KIND.name.to_owned(), self.samples.n_samples);
        (Work::Posterior(Box::new(self)), PredictPlan { kind, n_samples, numbers: None, gflop: None })
    }

    pub(super) fn run(
        &self,
        job: &PredictJob,
        destination: &Destination,
        context: &Context,
    ) -> Result<Predicted, Error> {
        let predictions = {
            let _phase = context.phase("evaluating");
            self.posterior.predict(&self.samples, context)?
        };
        let quality = self.quality(&predictions)?;
        let (values, variance, classes, noise, regions) = match predictions {
            Predictions::Classes { names, probabilities, regions, .. } => (probabilities, None, names, None, regions),
            Predictions::Values { .. } if job.probabilities => {
                return Err(Error::new("‹probabilities›: this is the posterior of a regression"));
            }
            Predictions::Values { mean, variance, noise, regions } => {
                (mean, Some(variance), None, Some(noise), regions)
            }
        };
        let of_regions = |regions: &Regions| -> Result<_, Error> {
            let calibrated = self.posterior.conformal();
            calibrated.map(|calibrated| regions.findings(calibrated, self.samples.labels.as_ref())).transpose()
        };
        let conformal = regions.as_ref().map(of_regions).transpose()?.flatten();
        let (beside, table) = {
            let _phase = context.phase("writing");
            let beside = variance::write(&values, variance.as_ref(), destination)?;
            let table = regions.as_ref().map(|own| regions::write(own, classes.as_deref(), destination)).transpose()?;
            (beside, table.flatten())
        };
        let findings = PosteriorFindings {
            posterior: self.place.clone(),
            n_samples: self.samples.n_samples,
            shape: values.shape().to_vec(),
            classes,
            noise,
            output: destination.path.as_ref().map(|path| path.display().to_string()),
            variances: beside.as_ref().map(|path| path.display().to_string()),
            conformal,
            regions: table.as_ref().map(|path| path.display().to_string()),
            quality,
        };
        Ok(Predicted {
            beside: beside.into_iter().chain(table).collect(),
            findings: PredictFindings::Posterior(findings),
            shape: values.shape().to_vec(),
            precision: Precision::F64,
            inputs: inputs("from", &self.place, self.fingerprint.clone(), &self.samples)?,
        })
    }

    fn quality(&self, predictions: &Predictions) -> Result<Quality, Error> {
        match (predictions, &self.samples.labels) {
            (Predictions::Classes { probabilities, .. }, Some(Labels::Classes(classes))) => {
                let decide = |row: ndarray::ArrayView1<'_, f64>| largest(&row.to_vec());
                let decided: Vec<usize> = probabilities.rows().into_iter().map(decide).collect();
                Quality::of_classes(&decided, Some(probabilities.view()), classes.indices())
            }
            (Predictions::Values { mean, variance, noise, .. }, Some(Labels::Targets(targets))) => {
                let observed: Array2<f64> = variance.mapv(|variance| variance + noise * noise);
                Quality::of_numbers(mean, Some(&observed), targets)
            }
            (_, None) => Ok(Quality::default()),
            (Predictions::Classes { .. }, _) => Err(Error::new("‹labels›: one class per sample is needed")),
            (Predictions::Values { .. }, _) => Err(Error::new("‹labels›: numbers are needed")),
        }
    }
}
