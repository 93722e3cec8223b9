//! Predictions of a saved machine.

use super::saved::Known;
use super::{PredictFindings, PredictJob, PredictPlan, Predicted, Quality, Work, inputs, variance};
use crate::Error;
use crate::job::Destination;
use crate::job::record::InputRecord;
use crate::job::rows::{UserRows, fingerprint};
use crate::spec::{self, DataSpec, Opening, Precision};
use mercer_data::ClassOrder;
use mercer_data::folder::Folder;
use mercer_learn::{KernelMachine, Machine, Predict, SampleKind, SampleRows};
use mercer_net::Network;
use mercer_run::Context;
use ndarray::{Array1, Array2};
use serde::Serialize;
use std::path::Path;

/// The findings for the predictions of a machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachineFindings {
    /// The folder.
    pub machine: String,
    /// The samples.
    pub n_samples: usize,
    /// Of the array.
    pub shape: Vec<usize>,
    /// The variance of the noise of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_variance: Option<f64>,
    /// The array that was written.
    pub output: Option<String>,
    /// The variances of the means of a process, without noise, beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variances: Option<String>,
    /// Their quality, if there are labels.
    #[serde(flatten)]
    pub quality: Quality,
}

/// A machine with the samples to predict.
#[derive(Debug)]
pub(super) struct SavedMachine {
    place: String,
    fingerprint: String,
    machine: KernelMachine,
    given: Given,
    known: Option<spec::Known>,
}

/// New samples, in the form that the machine takes.
#[derive(Debug)]
enum Given {
    /// The machine holds its kernel; this is the kernel's network.
    Samples(Box<spec::Samples>, Option<Box<Network>>),
    Rows(UserRows),
}

/// What the machine sees of new samples, and their prior variances where they are known.
struct Seen {
    matrix: Array2<f64>,
    prior: Option<Array1<f64>>,
}

impl SavedMachine {
    pub(super) fn open(
        job: &PredictJob,
        place: &Path,
        (folder, destination): (&Folder, &Destination),
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let machine = KernelMachine::read(folder)?;
        if matches!(machine.machine, Machine::Process(_)) {
            variance::check(destination)?;
        }
        if job.probabilities && machine.machine.as_classifier().is_none() {
            return Err(Error::new("‹probabilities›: the machine is a regression"));
        }
        let columns = &machine.samples.columns;
        // The machine reads the labels in its own way.
        let used = job.data.labels.iter().cloned().collect();
        let options = DataSpec { labels: None, used, ..job.data.clone() };
        let (given, n_samples) = match (machine.kernel.is_some(), &job.data.data[..]) {
            (true, _) => {
                let network = machine.network()?;
                let known = Known { columns, preprocess: Some(machine.samples.preprocess()) };
                let samples = known.samples(&options, network.as_ref(), opening)?;
                samples.hint(network.as_ref(), opening)?;
                let (shapes, fitted) = (samples.shapes(), machine.samples.shapes());
                if shapes != fitted {
                    let text = format!("‹data› has samples of shape {shapes:?}, the machine learnt from {fitted:?}");
                    return Err(Error::with_code("shape", text));
                }
                let n_samples = samples.n_samples;
                (Given::Samples(Box::new(samples), network.map(Box::new)), n_samples)
            }
            (false, [rows]) => {
                let rows = UserRows::open("data", rows, &options, columns, opening)?;
                let n_samples = rows.dim().0;
                (Given::Rows(rows), n_samples)
            }
            (false, _) => return Err(Error::new("‹data›: one matrix, a row per sample")),
        };
        let known = known(&job.data, &machine.machine, n_samples, opening)?;
        let (place, fingerprint) = (place.display().to_string(), folder.fingerprint());
        Ok(Self { place, fingerprint, machine, given, known })
    }

    fn n_samples(&self) -> usize {
        match &self.given {
            Given::Samples(samples, _) => samples.n_samples,
            Given::Rows(rows) => rows.dim().0,
        }
    }

    /// Returns it with its plan.
    pub(super) fn planned(self) -> (Work, PredictPlan) {
        let (kind, n_samples) = (KernelMachine::KIND.name.to_owned(), self.n_samples());
        (Work::Machine(Box::new(self)), PredictPlan { kind, n_samples, numbers: None, gflop: None })
    }

    pub(super) fn run(
        &self,
        job: &PredictJob,
        destination: &Destination,
        context: &Context,
    ) -> Result<Predicted, Error> {
        let (seen, inputs) = self.seen(context)?;
        let machine = &self.machine.machine;
        let (values, variances, mut findings) = {
            let _phase = context.phase("evaluating");
            let samples = match machine.basis() {
                SampleKind::Gram => SampleRows::Gram(seen.matrix.view()),
                SampleKind::Features => SampleRows::Features(seen.matrix.view()),
            };
            let values = match job.probabilities {
                true => probabilities(machine, &samples, &seen)?,
                false => machine.predict(&samples)?,
            };
            let variances = variances(machine, &samples, &seen, values.ncols())?;
            let known = self.known.as_ref();
            let quality = known.map(|known| quality(machine, &samples, &seen, known)).transpose()?;
            let findings = MachineFindings {
                machine: self.place.clone(),
                n_samples: samples.n_samples(),
                shape: values.shape().to_vec(),
                noise_variance: noise_of(machine),
                output: destination.path.as_ref().map(|path| path.display().to_string()),
                variances: None,
                quality: quality.unwrap_or_default(),
            };
            (values, variances, findings)
        };
        context.check()?;
        if variances.is_none() && findings.noise_variance.is_some() && destination.path.is_some() {
            context.note(
                "variances are not written: they need κ(x, x) of the new samples, which rows of a Gram matrix do not hold; \
                 fit the process on ‹kernel› and ‹data›, or on ‹features›",
            );
        }
        let beside = {
            let _phase = context.phase("writing");
            variance::write(&values, variances.as_ref(), destination)?
        };
        findings.variances = beside.as_ref().map(|path| path.display().to_string());
        let (shape, precision) = (findings.shape.clone(), Precision::F64);
        let findings = PredictFindings::Machine(findings);
        Ok(Predicted { findings, shape, precision, inputs, beside: beside.into_iter().collect() })
    }

    /// What the machine sees of the samples, and what they were.
    fn seen(&self, context: &Context) -> Result<(Seen, Vec<InputRecord>), Error> {
        let _phase = context.phase("kernel");
        match &self.given {
            Given::Samples(samples, network) => {
                let rows = self.machine.rows_with(network.as_deref(), &samples.inputs, context)?;
                let inputs = inputs("from", &self.place, self.fingerprint.clone(), samples)?;
                Ok((Seen { matrix: rows.matrix, prior: Some(rows.prior) }, inputs))
            }
            Given::Rows(rows) => {
                let matrix = rows.read(context)?;
                let prior = match self.machine.machine.basis() {
                    SampleKind::Gram => None,
                    SampleKind::Features => Some(matrix.rows().into_iter().map(|row| row.dot(&row)).collect()),
                };
                let inputs = vec![
                    InputRecord::new("from", &self.place, self.fingerprint.clone()),
                    InputRecord::new("data", rows.place(), fingerprint(&matrix)),
                ];
                Ok((Seen { matrix, prior }, inputs))
            }
        }
    }
}

/// What is known of the samples: classes in the machine's order, or numbers.
fn known(
    data: &DataSpec,
    machine: &Machine,
    n_samples: usize,
    opening: Opening<'_>,
) -> Result<Option<spec::Known>, Error> {
    let Some(labels) = &data.labels else { return Ok(None) };
    let dataset = labels.open_labels(opening.inputs)?;
    if dataset.n_samples() != n_samples {
        let text = format!("‹labels› {labels}: {} labels for {n_samples} samples", dataset.n_samples());
        return Err(Error::new(text).hint("samples and labels must be in the same order"));
    }
    let Some(classifier) = machine.as_classifier() else {
        return spec::Known::read(&dataset, false, None).map(Some);
    };
    let names = classifier.classes().names();
    let order = ClassOrder::resolve(data.class_names()?.as_deref(), Some(names), None)?;
    let order = order.unwrap_or(ClassOrder::Outputs(names.len()));
    spec::Known::read(&dataset, true, Some(&order)).map(Some)
}

/// With the variance of a Gaussian process where it is known.
fn probabilities(machine: &Machine, samples: &SampleRows<'_>, seen: &Seen) -> Result<Array2<f64>, Error> {
    match (machine, &seen.prior, machine.as_classifier()) {
        (Machine::ProcessClassifier(process), Some(prior), _) => {
            Ok(process.posterior_probabilities(samples, prior.view())?)
        }
        (_, _, Some(classifier)) => Ok(classifier.probabilities(samples)?),
        _ => Err(Error::new("‹probabilities›: the machine is a regression")),
    }
}

/// The variance of the noise of a process.
fn noise_of(machine: &Machine) -> Option<f64> {
    match machine {
        Machine::Process(process) => Some(process.noise()),
        _ => None,
    }
}

/// The posterior variances of a process without noise, the same for every target; nothing where prior variances are not known.
fn variances(
    machine: &Machine,
    samples: &SampleRows<'_>,
    seen: &Seen,
    n_targets: usize,
) -> Result<Option<Array2<f64>>, Error> {
    let (Machine::Process(process), Some(prior)) = (machine, &seen.prior) else { return Ok(None) };
    let of_samples = process.posterior(samples, prior.view())?.variances;
    Ok(Some(Array2::from_shape_fn((of_samples.len(), n_targets), |(row, _)| of_samples[row])))
}

/// Of the predictions of a machine.
fn quality(machine: &Machine, samples: &SampleRows<'_>, seen: &Seen, known: &spec::Known) -> Result<Quality, Error> {
    match (known, machine.as_classifier()) {
        (spec::Known::Classes(classes), Some(classifier)) => {
            // Margins are no probabilities; there is nothing more to say then.
            let found = probabilities(machine, samples, seen).ok();
            let decided = classifier.decide(samples)?;
            Quality::of_classes(&decided, found.as_ref().map(|found| found.view()), classes.indices())
        }
        (spec::Known::Classes(_), None) => Ok(Quality::default()),
        (spec::Known::Numbers(targets), _) => {
            let found = machine.predict(samples)?;
            let noise = noise_of(machine).unwrap_or(0.0);
            let variances = variances(machine, samples, seen, found.ncols())?.map(|own| own + noise);
            Quality::of_numbers(&found, variances.as_ref(), targets)
        }
    }
}
