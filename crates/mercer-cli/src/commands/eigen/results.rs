//! What is done with functions, whatever method found them: evaluated, compared, scored, written.

use super::report::{Before, Compared, EigenReport};
use super::solve::failure;
use super::{EigenArguments, MethodName, codes, figure};
use crate::failure::Failure;
use crate::options::Samples;
use mercer::data::{Dataset, Labels, write_atomic};
use mercer::kernel::{Real, SavedKernel};
use mercer::net::network::TrainedOn;
use mercer::run::Context;
use mercer::spectral::{Eigenfunctions, Spectrum, Truth};
use ndarray::{Array1, Array2};
use serde_json::json;

/// What a method found.
pub(super) struct Found<T: Real> {
    pub(super) functions: Eigenfunctions<T>,
    /// Before the Rayleigh–Ritz finish.
    pub(super) before: Option<Eigenfunctions<T>>,
    pub(super) trace_residual: Option<f64>,
    pub(super) landmarks: Option<usize>,
    /// The functions on the data, if the method knows them: evaluating them would make the kernel's matrix again.
    pub(super) psi: Option<Array2<T>>,
}

impl<T: Real> Found<T> {
    pub(super) fn plain(functions: Eigenfunctions<T>) -> Self {
        Self { functions, before: None, trace_residual: None, landmarks: None, psi: None }
    }

    /// Functions that extend a spectrum on the data.
    pub(super) fn solved((functions, spectrum): (Eigenfunctions<T>, Spectrum<T>)) -> Self {
        Self { psi: Some(spectrum.functions), ..Self::plain(functions) }
    }
}

/// What it was found from, and what it is held against.
pub(super) struct Given<'a, T: Real> {
    pub(super) samples: &'a Samples,
    pub(super) eval: Option<&'a Samples>,
    pub(super) kernel: Option<SavedKernel>,
    pub(super) truth: Option<Truth<T>>,
}

/// The name of the network that gives `ψ(x)` itself.
const NETWORK: &str = "psi.onnx";

impl EigenArguments {
    /// Notes that the folder keeps: the method, the data, and what was done to the data before they were looked at.
    fn noted<T: Real>(&self, functions: Eigenfunctions<T>, samples: &Samples) -> Result<Eigenfunctions<T>, Failure> {
        let data = json!({
            "place": samples.places(),
            "samples": samples.n_samples,
            "fingerprint": samples.fingerprint()?,
        });
        let method = self.method.map_or("", MethodName::name);
        let functions = functions.note("method", method).note("data", data);
        let functions = functions.note("preprocess", samples.preprocess_note()?);
        Ok(match samples.columns_note()? {
            Some(columns) => functions.note("columns", columns),
            None => functions,
        })
    }

    /// Evaluates, compares and writes.
    pub(super) fn keep<T: Real>(
        &self,
        found: Found<T>,
        given: Given<'_, T>,
        report: &mut EigenReport,
        bar: &Context,
    ) -> Result<(), Failure> {
        let Given { samples, eval, kernel, truth } = given;
        let data = &samples.inputs;
        let functions = self.noted(found.functions, samples)?.with_kernel(kernel);
        let before = found.before.map(|before| self.noted(before, samples)).transpose()?;
        report.samples = samples.n_samples;
        report.values = functions.values().to_vec();
        report.repairs = *functions.repairs();
        (report.trace_residual, report.landmarks) = (found.trace_residual, found.landmarks);
        let on_eval = |functions: &Eigenfunctions<T>| {
            eval.map(|eval| functions.eval_data(&eval.inputs, bar).map_err(failure)).transpose()
        };
        let psi = match found.psi {
            Some(psi) => psi,
            None => functions.eval_data(data, bar).map_err(failure)?,
        };
        let queries = on_eval(&functions)?;
        report.truth =
            truth.as_ref().map(|truth| compared(&report.values, &psi, queries.as_ref(), truth)).transpose()?;
        if let Some(before) = &before {
            let values = before.values().to_vec();
            let comparison = match &truth {
                Some(truth) => {
                    let (psi, queries) = (before.eval_data(data, bar).map_err(failure)?, on_eval(before)?);
                    Some(compared(&values, &psi, queries.as_ref(), truth)?.measured)
                }
                None => None,
            };
            report.before = Some(Before { values, comparison });
        }
        let (folder, existing) = (self.folder.path(), self.folder.existing());
        functions.save(folder, existing).map_err(failure)?;
        if let Some(before) = &before {
            before.save(&folder.join("before"), existing).map_err(failure)?;
        }
        if functions.basis().network().is_some() {
            let mut network = functions.to_network().map_err(failure)?;
            if network.inputs().len() == data.len() {
                network.set_trained_on(TrainedOn { classes: None, ..samples.trained_on() })?;
            }
            let bytes = network.to_onnx_bytes().map_err(|error| Failure::of_network(&folder.join(NETWORK), error))?;
            write_atomic(&folder.join(NETWORK), existing, |writer| writer.write_all(&bytes))?;
        }
        self.folder.write("psi_data.npy", &psi)?;
        if let (Some(eval), Some(queries)) = (eval, queries) {
            self.folder.write("psi.npy", &queries)?;
            report.evaluated = Some(eval.n_samples);
            report.codes = codes::scores((&psi, samples.labels.as_ref()), (&queries, eval.labels.as_ref()))?;
        }
        self.draw(data, &psi, &report.values, samples.labels.as_ref())
    }

    pub(super) fn draw<T: Real>(
        &self,
        data: &[Dataset],
        psi: &Array2<T>,
        values: &[f64],
        labels: Option<&Labels>,
    ) -> Result<(), Failure> {
        let psi = psi.mapv(|x| x.wide());
        let line = match data {
            [one] if one.sample_shape().iter().product::<usize>() == 1 && one.n_samples() == psi.nrows() => {
                Some(Array1::from_iter(one.read::<f64>()?))
            }
            _ => None,
        };
        let figure = figure::draw(line.as_ref().map(|line| line.view()), &psi, values, labels);
        Ok(figure.write(&self.folder.path().join("functions.svg"), self.folder.existing())?)
    }
}

pub(super) fn compared<T: Real>(
    values: &[f64],
    psi: &Array2<T>,
    held_out: Option<&Array2<T>>,
    truth: &Truth<T>,
) -> Result<Compared, Failure> {
    let measured = truth.measure(ndarray::aview1(values), psi.view(), held_out.map(|psi| psi.view()));
    Ok(Compared { values: truth.spectrum.values.to_vec(), measured: measured.map_err(failure)? })
}
