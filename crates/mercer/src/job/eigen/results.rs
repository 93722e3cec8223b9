//! The steps after any method: functions are evaluated, compared, scored and written.

use super::{Before, Compared, EigenFindings, Task, codes, figure, place};
use crate::Error;
use crate::error::AboutNetwork;
use crate::job::Outcome;
use crate::job::record::InputRecord;
use crate::spec::Samples;
use mercer_data::{Dataset, Labels};
use mercer_kernel::{Real, SavedKernel};
use mercer_net::network::TrainedOn;
use mercer_run::Context;
use mercer_spectral::learnt::clear_state;
use mercer_spectral::{Eigenfunctions, Spectrum, Truth};
use ndarray::{Array1, Array2};
use serde::Serialize;
use serde_json::json;

/// The result of a method.
pub(super) struct Found<T: Real> {
    pub(super) functions: Eigenfunctions<T>,
    /// The functions before the Rayleigh–Ritz step.
    pub(super) before: Option<Eigenfunctions<T>>,
    pub(super) trace_residual: Option<f64>,
    pub(super) landmarks: Option<usize>,
    /// The functions on the data, if the method knows them. Evaluating them would compute the kernel's matrix again.
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

/// Its source, and its reference.
pub(super) struct Given<'a, T: Real> {
    pub(super) samples: &'a Samples,
    pub(super) eval: Option<&'a Samples>,
    pub(super) kernel: Option<SavedKernel>,
    pub(super) truth: Option<Truth<T>>,
    pub(super) inputs: Vec<InputRecord>,
}

/// Functions, with their other findings.
struct Evaluated<T: Real> {
    functions: Eigenfunctions<T>,
    before: Option<Eigenfunctions<T>>,
    psi: Array2<T>,
    queries: Option<Array2<T>>,
}

impl Task<'_> {
    /// Notes that the folder stores: the method, the data and their preprocessing.
    fn noted<T: Real>(&self, functions: Eigenfunctions<T>, samples: &Samples) -> Result<Eigenfunctions<T>, Error> {
        let data = json!({
            "place": samples.places(),
            "samples": samples.n_samples,
            "fingerprint": samples.fingerprint()?,
        });
        let functions = functions.note("method", self.job.method.name()).note("data", data);
        let functions = functions.note("preprocess", samples.preprocess_note()?);
        Ok(match samples.columns_note()? {
            Some(columns) => functions.note("columns", columns),
            None => functions,
        })
    }

    /// Evaluates, compares and writes.
    pub(super) fn keep<T: Real>(
        self,
        found: Found<T>,
        given: Given<'_, T>,
        mut findings: EigenFindings,
    ) -> Result<Outcome<EigenFindings>, Error> {
        let Given { samples, eval, kernel, truth, mut inputs } = given;
        let functions = self.noted(found.functions, samples)?.with_kernel(kernel);
        let before = found.before.map(|before| self.noted(before, samples)).transpose()?;
        findings.samples = samples.n_samples;
        findings.values = functions.values().to_vec();
        findings.repairs = *functions.repairs();
        (findings.trace_residual, findings.landmarks) = (found.trace_residual, found.landmarks);
        let evaluated = {
            let _phase = self.context.phase("evaluating");
            let psi = match found.psi {
                Some(psi) => psi,
                None => functions.eval_data(&samples.inputs, self.context)?,
            };
            let queries = on_eval(&functions, eval, self.context)?;
            findings.truth =
                truth.as_ref().map(|truth| compared(&findings.values, &psi, queries.as_ref(), truth)).transpose()?;
            let values_before = |before: &Eigenfunctions<T>| self.before(before, samples, eval, truth.as_ref());
            findings.before = before.as_ref().map(values_before).transpose()?;
            if let (Some(eval), Some(queries)) = (eval, &queries) {
                findings.evaluated = Some(eval.n_samples);
                let items = (&psi, samples.labels.as_ref());
                findings.codes = codes::scores(items, (queries, eval.labels.as_ref()), self.context)?;
            }
            Evaluated { functions, before, psi, queries }
        };
        if let Some(path) = self.job.method.learning().and_then(|learning| learning.functions.as_ref()) {
            let print = crate::job::record::digest_of(path)?;
            inputs.push(super::input("functions", path.display().to_string(), print));
        }
        let content = {
            let _phase = self.context.phase("writing");
            self.write(&evaluated, samples, &findings)?
        };
        self.finish(inputs, findings, &content)
    }

    /// The functions before the Rayleigh–Ritz step.
    fn before<T: Real>(
        &self,
        before: &Eigenfunctions<T>,
        samples: &Samples,
        eval: Option<&Samples>,
        truth: Option<&Truth<T>>,
    ) -> Result<Before, Error> {
        let values = before.values().to_vec();
        let comparison = match truth {
            Some(truth) => {
                let psi = before.eval_data(&samples.inputs, self.context)?;
                let queries = on_eval(before, eval, self.context)?;
                Some(compared(&values, &psi, queries.as_ref(), truth)?.measured)
            }
            None => None,
        };
        Ok(Before { values, comparison })
    }

    fn write<T: Real>(
        &self,
        evaluated: &Evaluated<T>,
        samples: &Samples,
        findings: &EigenFindings,
    ) -> Result<serde_json::Value, Error> {
        let Evaluated { functions, before, psi, queries } = evaluated;
        let folder = &self.place.folder;
        let content = functions.write_finished(before.as_ref(), &folder.writer().objects())?;
        folder.array(place::VALUES, functions.values())?;
        if let Some(before) = before {
            folder.array(place::VALUES_BEFORE, before.values())?;
        }
        if functions.basis().network().is_some() {
            let mut network = functions.to_network()?;
            if network.inputs().len() == samples.inputs.len() {
                network.set_trained_on(TrainedOn { classes: None, ..samples.trained_on() })?;
            }
            let bytes = network.to_onnx_bytes().about(&self.place.path().join(place::NETWORK))?;
            folder.file(place::NETWORK, &bytes)?;
        }
        folder.array(place::ON_DATA, psi)?;
        if let Some(queries) = queries {
            folder.array(place::ON_EVAL, queries)?;
        }
        let figure = figure_of(&samples.inputs, psi, &findings.values, samples.labels.as_ref())?;
        folder.file(place::FIGURE, figure.as_bytes())?;
        Ok(content)
    }

    /// Moves everything into place; the state is no longer needed.
    pub(super) fn finish(
        self,
        inputs: Vec<InputRecord>,
        findings: EigenFindings,
        content: &impl Serialize,
    ) -> Result<Outcome<EigenFindings>, Error> {
        let Self { job, place, watch, context } = self;
        findings.repairs.sentences().iter().for_each(|sentence| context.note(sentence));
        let path = place.path().to_owned();
        let outcome = place.folder.finish(job.clone(), inputs, findings, content, (watch, context))?;
        if job.method.learning().is_some() {
            clear_state(&path)?;
        }
        Ok(outcome)
    }
}

fn on_eval<T: Real>(
    functions: &Eigenfunctions<T>,
    eval: Option<&Samples>,
    context: &Context,
) -> Result<Option<Array2<T>>, Error> {
    Ok(eval.map(|eval| functions.eval_data(&eval.inputs, context)).transpose()?)
}

/// The figure of functions on samples.
pub(super) fn figure_of<T: Real>(
    data: &[Dataset],
    psi: &Array2<T>,
    values: &[f64],
    labels: Option<&Labels>,
) -> Result<String, Error> {
    let psi = psi.mapv(|x| x.wide());
    let line = match data {
        [one] if one.sample_shape().iter().product::<usize>() == 1 && one.n_samples() == psi.nrows() => {
            Some(Array1::from_iter(one.read::<f64>()?))
        }
        _ => None,
    };
    Ok(figure::draw(line.as_ref().map(|line| line.view()), &psi, values, labels).to_svg())
}

pub(super) fn compared<T: Real>(
    values: &[f64],
    psi: &Array2<T>,
    held_out: Option<&Array2<T>>,
    truth: &Truth<T>,
) -> Result<Compared, Error> {
    let measured = truth.measure(ndarray::aview1(values), psi.view(), held_out.map(|psi| psi.view()))?;
    Ok(Compared { values: truth.spectrum.values.to_vec(), measured })
}
