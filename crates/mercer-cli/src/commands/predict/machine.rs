//! Predictions of a machine that `mercer fit` wrote.

use super::PredictArguments;
use crate::commands::fit::read_rows;
use crate::console::Console;
use crate::failure::Failure;
use crate::format::{count, shape};
use crate::options::{DataOptions, Samples};
use mercer::data::{ClassOrder, Classes, Labels, Source, write_npy};
use mercer::kernel::KernelError;
use mercer::learn::metrics::{
    BINS, accuracy, brier, gaussian_log_likelihood, negative_log_likelihood, r_squared, reliability,
    root_mean_square_error,
};
use mercer::learn::{self, Basis, KernelMachine, LearnError, Machine, Predict};
use ndarray::{Array1, Array2};
use serde::Serialize;
use std::path::Path;

/// What `--json` shows.
#[derive(Debug, Default, Serialize)]
struct MachineReport {
    machine: String,
    n_samples: usize,
    shape: Vec<usize>,
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    negative_log_likelihood: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_calibration_error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    brier: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_mean_square_error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r_squared: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_likelihood: Option<f64>,
}

/// The rows of new samples, and their prior variances where they are known.
struct Rows {
    matrix: Array2<f64>,
    prior: Option<Array1<f64>>,
}

pub(super) fn run(arguments: &PredictArguments, folder: &Path, console: &Console) -> Result<(), Failure> {
    let saved = KernelMachine::load(folder).map_err(|error| {
        Failure::from(error).hint("`mercer fit` writes machines; --machine names the folder of one")
    })?;
    let rows = rows(arguments, folder, &saved, console)?;
    let machine = saved.machine;
    let samples = match machine.basis() {
        Basis::Gram => learn::Samples::Gram(rows.matrix.view()),
        Basis::Features => learn::Samples::Features(rows.matrix.view()),
    };
    let values = match (machine.as_classifier(), arguments.probabilities) {
        (Some(_), true) => probabilities(&machine, &samples, &rows)?,
        (None, true) => return Err(Failure::new("--probabilities: the machine is a regression")),
        _ => machine.predict(&samples)?,
    };
    let mut report = MachineReport {
        machine: folder.display().to_string(),
        n_samples: samples.n_samples(),
        shape: values.shape().to_vec(),
        ..MachineReport::default()
    };
    if let Some(text) = &arguments.data.labels {
        let dataset = text.parse::<Source>()?.open()?;
        if dataset.n_samples() != report.n_samples {
            let text = format!("--labels {text}: {} labels for {} samples", dataset.n_samples(), report.n_samples);
            return Err(Failure::new(text).hint("samples and labels must be in the same order"));
        }
        match machine.as_classifier() {
            Some(classifier) => {
                let given = arguments.data.classes.names()?;
                let names = classifier.classes().names();
                let order = ClassOrder::of(given.as_deref(), Some(names), None)?;
                let order = order.unwrap_or(ClassOrder::Outputs(names.len()));
                let classes = Classes::read(&dataset)?.ordered(dataset.place(), &order)?;
                report.accuracy = Some(accuracy(&classifier.decide(&samples)?, classes.indices())?);
                report.judge(&machine, &samples, &rows, classes.indices())?;
            }
            None => {
                if let Labels::Targets(targets) = Labels::targets(&dataset)? {
                    report.compare(&machine, &samples, &rows, &targets)?;
                }
            }
        }
    }
    if let Some(path) = &arguments.output.path {
        write_npy(path, &values, arguments.output.existing())?;
        report.output = Some(path.display().to_string());
    }
    console.result(&report, || report.text())
}

/// What the machine sees of the samples.
fn rows(
    arguments: &PredictArguments,
    folder: &Path,
    saved: &KernelMachine,
    console: &Console,
) -> Result<Rows, Failure> {
    let columns = &saved.samples.columns;
    // The labels are read in the machine's own way.
    let used = arguments.data.labels.iter().cloned().collect();
    let options = DataOptions { labels: None, used, ..arguments.data.clone() };
    if saved.kernel.is_some() {
        let network = saved.network()?;
        let samples = match &network {
            Some(network) => Samples::given("--data", &options.data, &options, network, columns, console)?,
            None => Samples::plain("--data", &options.data, &options, columns, console)?,
        };
        let steps = serde_json::to_value(saved.samples.preprocess());
        let steps = steps.map_err(|error| Failure::new(format!("preprocessing cannot be written: {error}")))?;
        let samples = samples.preprocessed_as(&arguments.data.preprocess, Some(&steps), console)?;
        samples.hint(network.as_ref(), console)?;
        let (shapes, fitted) = (samples.shapes(), saved.samples.shapes());
        if shapes != fitted {
            let text = format!("--data has samples of shape {shapes:?}, the machine learnt from {fitted:?}");
            return Err(Failure::new(text));
        }
        let failed = |error: LearnError| match error {
            LearnError::Kernel(error) => match *error {
                KernelError::Network(error) => Failure::of_network(folder, *error),
                KernelError::Cancelled => Failure::interrupted("interrupted; nothing was written"),
                other => Failure::new(format!("{}: {other}", folder.display())),
            },
            other => other.into(),
        };
        let found = saved.rows_with(network.as_ref(), &samples.inputs, console.context()).map_err(failed)?;
        return Ok(Rows { matrix: found.matrix, prior: Some(found.prior) });
    }
    let [text] = &arguments.data.data[..] else {
        return Err(Failure::new("--data: one matrix, a row per sample"));
    };
    let (matrix, _) = read_rows("--data", text, &options, columns, console)?;
    let prior = match saved.machine.basis() {
        Basis::Gram => None,
        Basis::Features => Some(matrix.rows().into_iter().map(|row| row.dot(&row)).collect()),
    };
    Ok(Rows { matrix, prior })
}

/// With the variance of a Gaussian process where it is known.
fn probabilities(machine: &Machine, samples: &learn::Samples<'_>, rows: &Rows) -> Result<Array2<f64>, Failure> {
    match (machine, &rows.prior, machine.as_classifier()) {
        (Machine::ProcessClassifier(process), Some(prior), _) => {
            Ok(process.posterior_probabilities(samples, prior.view())?)
        }
        (_, _, Some(classifier)) => Ok(classifier.probabilities(samples)?),
        _ => Err(Failure::new("--probabilities: the machine is a regression")),
    }
}

impl MachineReport {
    fn judge(
        &mut self,
        machine: &Machine,
        samples: &learn::Samples<'_>,
        rows: &Rows,
        labels: &[usize],
    ) -> Result<(), Failure> {
        // Margins are no probabilities; there is nothing more to say then.
        if let Ok(found) = probabilities(machine, samples, rows) {
            self.negative_log_likelihood = Some(negative_log_likelihood(found.view(), labels)?);
            self.expected_calibration_error = Some(reliability(found.view(), labels, BINS)?.expected_error);
            self.brier = Some(brier(found.view(), labels)?);
        }
        Ok(())
    }

    fn compare(
        &mut self,
        machine: &Machine,
        samples: &learn::Samples<'_>,
        rows: &Rows,
        targets: &Array2<f64>,
    ) -> Result<(), Failure> {
        let found = machine.predict(samples)?;
        if found.dim() != targets.dim() {
            let text = format!("--labels: {} targets for {} predictions per sample", targets.ncols(), found.ncols());
            return Err(Failure::new(text));
        }
        let flat = |array: &Array2<f64>| array.iter().copied().collect::<Array1<f64>>();
        let (predicted, truth) = (flat(&found), flat(targets));
        self.root_mean_square_error = Some(root_mean_square_error(predicted.view(), truth.view())?);
        self.r_squared = r_squared(predicted.view(), truth.view()).ok();
        if let (Machine::Process(process), Some(prior)) = (machine, &rows.prior) {
            let posterior = process.posterior(samples, prior.view())?;
            let spread = |row: usize| posterior.variances[row] + process.noise();
            let variances = Array2::from_shape_fn(found.dim(), |(row, _)| spread(row));
            self.log_likelihood = gaussian_log_likelihood(predicted.view(), flat(&variances).view(), truth.view()).ok();
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = format!("{} by {}\n", count(self.n_samples, "sample"), self.machine);
        if let Some(accuracy) = self.accuracy {
            text += &format!("accuracy {:.2} %\n", 100.0 * accuracy);
        }
        let measures = [
            ("negative log-likelihood", self.negative_log_likelihood),
            ("expected calibration error", self.expected_calibration_error),
            ("Brier score", self.brier),
            ("root mean square error", self.root_mean_square_error),
            ("R²", self.r_squared),
            ("log-likelihood per sample", self.log_likelihood),
        ];
        for (name, value) in measures.iter().filter_map(|(name, value)| value.map(|value| (name, value))) {
            text += &format!("{name} {value:.6}\n");
        }
        if let Some(output) = &self.output {
            text += &format!("array of shape {} in {output}\n", shape(&self.shape));
        }
        text
    }
}
