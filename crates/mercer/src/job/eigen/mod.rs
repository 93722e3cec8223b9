//! The eigenvalues and eigenfunctions of a kernel, of a matrix, or of pairs of views.
//!
//! ```
//! use mercer::data::Dataset;
//! use mercer::job::{Destination, EigenJob, Job, Opened};
//! use mercer::prelude::Context;
//! use mercer::spec::{Inputs, Opening};
//!
//! let points = ndarray::Array2::from_shape_fn((20, 1), |(i, _)| i as f64 / 10.0);
//! let inputs = Inputs::none().with("x", Dataset::from_array("x", points.view().into_dyn())?);
//! let job: EigenJob = serde_json::from_value(serde_json::json!({
//!     "of": { "kernel": { "kernel": "rbf()" } }, "data": { "data": [{ "given": "x" }] },
//!     "method": { "name": "exact" }, "k": 3, "precision": "f64", "seed": 0,
//! }))?;
//! let folder = tempfile::tempdir()?;
//! let context = Context::new();
//! let destination = Destination::new(folder.path().join("functions"));
//! let outcome = job.open(&destination, Opening { inputs: &inputs, context: &context })?.run(&context)?;
//! assert_eq!(outcome.findings.values.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod codes;
mod figure;
mod findings;
mod gram;
mod kernel;
mod learn;
mod method;
mod pairs;
mod place;
mod results;
mod saved;

pub use findings::{Before, CodeScore, CodesFindings, Compared, EigenFindings};
pub use method::{EigenMethod, LandmarkChoice, LearnSpec, MatrixFree, Objective, Views};
pub use saved::SavedFunctions;
pub(crate) use saved::{located, precision_of};

use super::record::InputRecord;
use super::{Destination, Job, Opened, Outcome, Stopwatch};
use crate::Error;
use crate::spec::{DataRef, DataSpec, KernelSpec, Opening, Precision, Samples};
use gram::GramProblem;
use kernel::KernelProblem;
use mercer_kernel::Real;
use mercer_run::Context;
use mercer_spectral::MemoryNeeds;
use pairs::PairProblem;
use place::Place;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The leading eigenfunctions of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EigenJob {
    /// The kernel or matrix; none for pairs of views, which replace a kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<EigenSource>,
    /// The samples; none for a matrix that is decomposed without them.
    #[serde(default)]
    pub data: DataSpec,
    /// Also evaluate the functions on these samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub eval: Vec<DataRef>,
    /// The labels of these samples. If the data have labels too, codes of several lengths are scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_labels: Option<DataRef>,
    /// The method.
    pub method: EigenMethod,
    /// How many.
    pub k: usize,
    /// Also decompose the whole matrix, and report the error of the functions.
    #[serde(default)]
    pub truth: bool,
    /// The precision to compute in.
    pub precision: Precision,
    /// The seed of the method.
    #[serde(with = "crate::job::seed")]
    pub seed: u64,
}

/// The source of eigenfunctions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EigenSource {
    /// Of a kernel on the data.
    Kernel(Box<KernelSpec>),
    /// Of a Gram matrix: an array file, a store, or a list of layers.
    Gram(PathBuf),
}

/// The planned work and its cost.
#[derive(Clone, Debug, Serialize)]
pub struct EigenPlan {
    /// The method.
    pub method: &'static str,
    /// The precision to compute in.
    pub precision: Precision,
    /// The samples that functions are found from.
    pub samples: usize,
    /// Rows of the kernel's matrix.
    pub rows: usize,
    /// The number of functions requested.
    pub wanted: usize,
    /// The largest consumer of memory, if known in advance.
    pub memory: Option<MemoryNeeds>,
    /// Training steps, if networks learn.
    pub steps: Option<usize>,
    /// Whether the matrix does not fit into memory and is read piece by piece for every product.
    pub piecewise: bool,
}

impl EigenJob {
    /// How samples to evaluate are read.
    fn eval_data(&self) -> DataSpec {
        self.data.reading(&self.eval, self.eval_labels.as_ref())
    }

    fn open_as<T: Real>(&self, place: Option<Place>, opening: Opening<'_>) -> Result<Typed<T>, Error> {
        let watch = Stopwatch::start();
        let _phase = opening.context.phase("opening");
        let problem = match &self.of {
            Some(EigenSource::Kernel(spec)) => Problem::Kernel(Box::new(KernelProblem::open(self, spec, opening)?)),
            Some(EigenSource::Gram(path)) => Problem::Gram(Box::new(GramProblem::open(self, path, opening)?)),
            None => Problem::Pairs(Box::new(PairProblem::open(self, opening)?)),
        };
        Ok(Typed { job: self.clone(), place, problem, watch })
    }
}

/// Samples to evaluate must have the shape of the training samples.
fn check_eval(eval: Option<&Samples>, samples: &Samples) -> Result<(), Error> {
    match eval.map(Samples::shapes) {
        Some(found) if found != samples.shapes() => {
            Err(Error::new(format!("‹test› has samples of shape {found:?}, ‹data› of {:?}", samples.shapes())))
        }
        _ => Ok(()),
    }
}

/// An input of a run, for its record.
fn input(setting: &str, place: impl Into<String>, fingerprint: impl Into<String>) -> InputRecord {
    InputRecord { setting: setting.to_owned(), place: place.into(), fingerprint: fingerprint.into() }
}

/// The samples that a run reads.
fn inputs_of(samples: &Samples, eval: Option<&Samples>) -> Result<Vec<InputRecord>, Error> {
    let mut inputs = vec![input("data", samples.places(), samples.fingerprint()?)];
    if let Some(eval) = eval {
        inputs.push(input("test", eval.places(), eval.fingerprint()?));
    }
    Ok(inputs)
}

impl Job for EigenJob {
    const NAME: &'static str = "eigen";

    type Opened = OpenedEigen;

    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<OpenedEigen, Error> {
        self.check()?;
        let place = Place::begin(destination)?;
        let (typed, plan) = match self.precision {
            Precision::F32 => {
                let typed = self.open_as::<f32>(place, opening)?;
                let plan = typed.plan(opening.context)?;
                (Either::F32(Box::new(typed)), plan)
            }
            Precision::F64 => {
                let typed = self.open_as::<f64>(place, opening)?;
                let plan = typed.plan(opening.context)?;
                (Either::F64(Box::new(typed)), plan)
            }
        };
        Ok(OpenedEigen { typed, plan })
    }
}

/// A job of eigenfunctions with everything opened.
pub struct OpenedEigen {
    typed: Either,
    plan: EigenPlan,
}

enum Either {
    F32(Box<Typed<f32>>),
    F64(Box<Typed<f64>>),
}

impl Opened for OpenedEigen {
    type Plan = EigenPlan;
    type Findings = EigenFindings;

    fn plan(&self) -> &EigenPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<EigenFindings>, Error> {
        match self.typed {
            Either::F32(typed) => typed.run(context),
            Either::F64(typed) => typed.run(context),
        }
    }
}

/// The same in one precision.
struct Typed<T: Real> {
    job: EigenJob,
    place: Option<Place>,
    problem: Problem<T>,
    watch: Stopwatch,
}

enum Problem<T: Real> {
    Kernel(Box<KernelProblem<T>>),
    Gram(Box<GramProblem>),
    Pairs(Box<PairProblem>),
}

impl<T: Real> Typed<T> {
    /// Work that does not fit into memory is rejected in advance.
    fn plan(&self, context: &Context) -> Result<EigenPlan, Error> {
        let (samples, rows, memory, piecewise) = match &self.problem {
            Problem::Kernel(problem) => {
                let needs = problem.needs(&self.job);
                (problem.samples.n_samples, problem.rows(), needs, false)
            }
            Problem::Gram(problem) => {
                let piecewise = problem.is_piecewise::<T>(context);
                (problem.rows / problem.per_sample, problem.rows, problem.needs(&self.job), piecewise)
            }
            Problem::Pairs(problem) => (problem.samples.n_samples, problem.samples.n_samples, None, false),
        };
        if let Some(needs) = &memory {
            needs.check(context)?;
        }
        // A decomposition needs more than its matrix, so this check comes after the one above.
        if let Problem::Gram(problem) = &self.problem {
            problem.check_memory::<T>(&self.job, context)?;
        }
        let steps = self.job.method.learning().map(|learning| learning.iterations);
        let (method, precision, wanted) = (self.job.method.name(), self.job.precision, self.job.k);
        Ok(EigenPlan { method, precision, samples, rows, wanted, memory, steps, piecewise })
    }

    fn run(self, context: &Context) -> Result<Outcome<EigenFindings>, Error> {
        let Self { job, place, problem, watch } = self;
        let place = place.ok_or_else(|| Error::new("there is no destination for the results").hint("‹out› DIR"))?;
        place.clear()?;
        let findings = EigenFindings::new(job.method.name(), job.precision, job.k);
        let learns = job.method.learning().is_some();
        let task = Task { job: &job, place, watch, context };
        let done = match problem {
            Problem::Kernel(problem) => problem.run(task, findings),
            Problem::Gram(problem) => problem.run::<T>(task, findings),
            Problem::Pairs(problem) => problem.run::<T>(task, findings),
        };
        done.map_err(|error| {
            error.when_interrupted(|| match learns {
                true => "the same command with ‹resume› continues from here".to_owned(),
                false => "nothing was written; the same command starts again".to_owned(),
            })
        })
    }
}

/// The state shared by all methods.
struct Task<'a> {
    job: &'a EigenJob,
    place: Place,
    watch: Stopwatch,
    context: &'a Context,
}
