//! The eigenvectors of a matrix, or functions learnt from it and the samples of its rows.

use super::learn::Learning;
use super::results::{Given, compared, figure_of};
use super::{EigenFindings, EigenJob, Task, check_eval, input, inputs_of, place};
use crate::Error;
use crate::job::Outcome;
use crate::spec::{Opening, Samples};
use crate::text::{bytes, suggested};
use mercer_data::{Fingerprint, Source};
use mercer_kernel::gram::KeptGram;
use mercer_kernel::{KernelError, Real};
use mercer_run::Context;
use mercer_spectral::learnt::Matrices;
use mercer_spectral::{EigenDescription, MemoryNeeds, Solver, Spectrum, Truth};
use ndarray::{Array2, ArrayD};
use serde_json::{Map, json};
use std::path::{Path, PathBuf};

/// A Gram matrix in a file or a store, not read yet.
pub(super) struct GramProblem {
    path: PathBuf,
    kept: KeptGram,
    pub(super) rows: usize,
    /// Rows of a sample.
    pub(super) per_sample: usize,
    learning: Option<FromSamples>,
}

/// The samples of the rows, and the networks that learn from them.
struct FromSamples {
    samples: Samples,
    eval: Option<Samples>,
    learning: Learning,
}

impl GramProblem {
    pub(super) fn open(job: &EigenJob, path: &Path, opening: Opening<'_>) -> Result<Self, Error> {
        let kept = KeptGram::open(&Source::new(path, None)).map_err(unreadable)?;
        let (rows, per_sample) =
            kept.square().map_err(|error| Error::from(error).hint("a square matrix, of samples with themselves"))?;
        let learning = match job.method.learning() {
            Some(_) => {
                let samples = Samples::plain("data", &job.data.data, &job.data, &[], opening)?;
                let eval = match &job.eval[..] {
                    [] => None,
                    data => {
                        let options = job.eval_data().learnt_from(&samples);
                        Some(Samples::plain("test", data, &options, &samples.columns, opening)?)
                    }
                };
                check_eval(eval.as_ref(), &samples)?;
                check_samples((path, &kept), rows / per_sample, &samples, opening.context)?;
                let learning = Learning::new(job, &samples.inputs, per_sample, opening.context)?;
                Some(FromSamples { samples, eval, learning })
            }
            None => None,
        };
        Ok(Self { path: path.to_owned(), kept, rows, per_sample, learning })
    }

    /// Whether the matrix is too large for memory.
    pub(super) fn is_piecewise<T>(&self, context: &Context) -> bool {
        self.kept.bytes::<T>() > context.memory()
    }

    /// Rejects a matrix that does not fit into memory, unless the method needs only a few products.
    pub(super) fn check_memory<T>(&self, job: &EigenJob, context: &Context) -> Result<(), Error> {
        if !self.is_piecewise::<T>(context) || job.method.multiplies() {
            return Ok(());
        }
        let (place, rows, needed) = (self.path.display(), self.rows, self.kept.bytes::<T>());
        let text = format!(
            "{place}: {rows} × {rows} numbers need {}, but {} may be used",
            bytes(needed),
            bytes(context.memory())
        );
        Err(Error::with_code("memory", text).hint(format!(
            "‹memory› {}; or the methods lanczos and randomised, which read the matrix piece by piece",
            suggested(needed)
        )))
    }

    /// The memory of the decomposition; products need little besides the matrix.
    pub(super) fn needs(&self, job: &EigenJob) -> Option<MemoryNeeds> {
        let whole = self.learning.is_none() && !job.method.multiplies();
        (whole || job.truth).then(|| MemoryNeeds::whole("all eigenvectors", self.rows, self.rows))
    }

    pub(super) fn run<T: Real>(
        self,
        task: Task<'_>,
        mut findings: EigenFindings,
    ) -> Result<Outcome<EigenFindings>, Error> {
        let place = self.path.display().to_string();
        findings.kernel = Some(place.clone());
        if self.is_piecewise::<T>(task.context) {
            return self.piecewise::<T>(task, findings);
        }
        let matrix = {
            let _phase = task.context.phase("reading");
            self.read::<T>(task.context)?
        };
        let diagonal = matrix.diag();
        findings.mean_diagonal = Some(diagonal.iter().map(|v| v.wide()).sum::<f64>() / diagonal.len() as f64);
        let print = fingerprint(matrix.iter().copied());
        match self.learning {
            Some(from) => from.run((&place, print), (matrix, self.per_sample), task, findings),
            None => {
                let (k, context) = (task.job.k, task.context);
                let solver = task.job.method.solver(task.job.seed);
                let spectrum = {
                    let _phase = context.phase("decomposing");
                    Spectrum::of_matrix(matrix.view(), k, solver, context)?
                };
                if task.job.truth {
                    let _phase = context.phase("truth");
                    let truth = Truth::of_spectrum(Spectrum::of_matrix(matrix.view(), k, Solver::Full, context)?);
                    findings.truth = Some(compared(&spectrum.values.to_vec(), &spectrum.functions, None, &truth)?);
                }
                drop(matrix);
                keep((spectrum, self.per_sample), (&place, print), task, findings)
            }
        }
    }

    /// The matrix.
    fn read<T: Real>(&self, context: &Context) -> Result<Array2<T>, Error> {
        let array: ArrayD<T> = self.kept.read(context).map_err(unreadable)?;
        let entries = array.as_standard_layout().into_owned().into_shape_with_order((self.rows, self.rows));
        entries.map_err(|error| Error::new(format!("{}: {error}", self.path.display())))
    }

    /// A few eigenpairs of a matrix that does not fit into memory.
    fn piecewise<T: Real>(self, task: Task<'_>, mut findings: EigenFindings) -> Result<Outcome<EigenFindings>, Error> {
        let (place, context) = (self.path.display().to_string(), task.context);
        context.note(&format!(
            "{place}: the matrix takes {}, more than the {} that may be used: it is read again for every product",
            bytes(self.kept.bytes::<T>()),
            bytes(context.memory())
        ));
        let operator = self.kept.operator::<T>(context).map_err(unreadable)?;
        let diagonal = operator.diagonal().map_err(unreadable)?;
        findings.mean_diagonal = Some(diagonal.iter().map(|v| v.wide()).sum::<f64>() / diagonal.len() as f64);
        let spectrum = {
            let _phase = context.phase("decomposing");
            let solver = task.job.method.solver(task.job.seed);
            let solved = Spectrum::of_operator(&operator, task.job.k, solver, context);
            solved.map_err(|error| operator.failure().map_or_else(|| error.into(), unreadable))?
        };
        // The whole matrix is too large to be worth reading once more.
        let print = fingerprint(diagonal.into_iter());
        keep((spectrum, self.per_sample), (&place, print), task, findings)
    }
}

/// Eigenvectors known only on the samples of the matrix.
fn keep<T: Real>(
    (spectrum, per_sample): (Spectrum<T>, usize),
    (place, print): (&str, String),
    task: Task<'_>,
    mut findings: EigenFindings,
) -> Result<Outcome<EigenFindings>, Error> {
    findings.samples = spectrum.functions.nrows();
    findings.values = spectrum.values.to_vec();
    findings.repairs = spectrum.repairs;
    let content = {
        let _phase = task.context.phase("writing");
        let folder = &task.place.folder;
        let notes =
            Map::from_iter([("method".to_owned(), json!(task.job.method.name())), ("matrix".to_owned(), json!(place))]);
        folder.array(place::VALUES, &spectrum.values)?;
        folder.array(place::ON_DATA, &spectrum.functions)?;
        let figure = figure_of(&[], &spectrum.functions, &findings.values, None)?;
        folder.file(place::FIGURE, figure.as_bytes())?;
        let values = (&spectrum.values, per_sample);
        EigenDescription::on_samples::<T>(&folder.writer().objects(), values, spectrum.repairs, notes)?
    };
    task.finish(vec![input("gram", place, print)], findings, &content)
}

impl FromSamples {
    /// Networks learn functions of the samples behind the rows of a matrix.
    fn run<T: Real>(
        self,
        (place, print): (&str, String),
        (matrix, per_sample): (Array2<T>, usize),
        task: Task<'_>,
        findings: EigenFindings,
    ) -> Result<Outcome<EigenFindings>, Error> {
        let Self { samples, eval, learning } = self;
        let (k, context) = (task.job.k, task.context);
        let truth = match task.job.truth {
            true => {
                let _phase = context.phase("truth");
                let spectrum = Spectrum::of_matrix(matrix.view(), k, Solver::Full, context)?;
                if eval.is_some() {
                    context.note(
                        "a matrix does not determine its exact functions on ‹test›, so ‹truth› is measured on ‹data› only",
                    );
                }
                Some(Truth::of_spectrum(spectrum))
            }
            false => None,
        };
        let found = {
            let _phase = context.phase("learning");
            let mut coupling = Matrices::new(matrix, per_sample)?;
            learning.of_coupling(&mut coupling, &samples.inputs, &task)?
        };
        let mut inputs = vec![input("gram", place, print)];
        inputs.extend(inputs_of(&samples, eval.as_ref())?);
        let given = Given { samples: &samples, eval: eval.as_ref(), kernel: None, truth, inputs };
        task.keep(found, given, findings)
    }
}

/// One row per sample, or one per sample and output.
fn check_samples(
    (path, kept): (&Path, &KeptGram),
    rows: usize,
    samples: &Samples,
    context: &Context,
) -> Result<(), Error> {
    let (place, count) = (path.display(), samples.n_samples);
    if rows != count {
        let text = format!("{place}: a matrix of {rows} samples, but ‹data› has {count}");
        return Err(Error::new(text).hint("row i of the matrix belongs to row i of the data"));
    }
    if kept.data().is_some_and(|data| samples.fingerprint().is_ok_and(|own| own != *data)) {
        context.note(&format!("{place} was not computed from ‹data›; its rows must belong to the same samples"));
    }
    Ok(())
}

fn fingerprint<T: Real>(numbers: impl Iterator<Item = T>) -> String {
    let mut print = Fingerprint::new();
    numbers.for_each(|number| print.update(&number.wide().to_le_bytes()));
    print.finish()
}

fn unreadable(error: KernelError) -> Error {
    match error {
        KernelError::Setting(text) => Error::new(format!("‹gram› {text}")),
        other => other.into(),
    }
}
