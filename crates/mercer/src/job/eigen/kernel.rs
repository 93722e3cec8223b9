//! Functions of a kernel on data.

use super::learn::Learning;
use super::results::{Found, Given};
use super::{EigenFindings, EigenJob, EigenMethod, Task, check_eval, input, inputs_of};
use crate::Error;
use crate::job::Outcome;
use crate::spec::{KernelSpec, NetworkSource, Opening, Samples};
use mercer_data::folder::digest;
use mercer_kernel::classic::Formula;
use mercer_kernel::{Built, Real, Recipe, SavedKernel};
use mercer_run::Context;
use mercer_spectral::{
    self as spectral, Basis, Fourier, FourierSpec, Mapped, MemoryNeeds, Nystrom, Solver, SpectralError, TangentChoice,
    TangentKernel, Truth, exact, of_features, trace,
};
use std::cell::RefCell;
use std::sync::Arc;

/// A kernel on data, opened.
pub(super) struct KernelProblem<T: Real> {
    spec: KernelSpec,
    source: NetworkSource,
    recipe: Recipe,
    built: Built<T>,
    saved: SavedKernel,
    pub(super) samples: Samples,
    eval: Option<Samples>,
    way: PreparedMethod<T>,
}

/// A method, with its needs besides the kernel and the data.
enum PreparedMethod<T: Real> {
    Matrix,
    /// Products with the tangent kernel of a network, with or without its matrix.
    Tangent,
    Landmarks(Nystrom),
    Features(Arc<dyn Basis<T>>),
    Networks(Box<Learning>),
}

impl<T: Real> KernelProblem<T> {
    pub(super) fn open(job: &EigenJob, spec: &KernelSpec, opening: Opening<'_>) -> Result<Self, Error> {
        let source = spec.open()?;
        let samples = source.samples("data", &job.data.data, &job.data, &[], opening)?;
        samples.hint(source.network(), opening)?;
        let shapes = samples.shapes();
        source.check_shapes(&shapes, spec.path())?;
        let recipe = spec.recipe(&source)?;
        let built = recipe.build::<T>(source.network(), &shapes).map_err(|error| spec.failure(error))?;
        let saved = spec.saved(&recipe, &source, &built)?;
        spec.tell(&recipe, &source, &shapes, opening.context);
        let eval = match &job.eval[..] {
            [] => None,
            data => {
                let options = job.eval_data().learnt_from(&samples);
                Some(source.samples("test", data, &options, &samples.columns, opening)?)
            }
        };
        check_eval(eval.as_ref(), &samples)?;
        let way = way(job, (&recipe, &built), &source, &samples, opening.context)?;
        Ok(Self { spec: spec.clone(), source, recipe, built, saved, samples, eval, way })
    }

    /// Rows of the kernel's matrix.
    pub(super) fn rows(&self) -> usize {
        self.samples.n_samples * self.built.kernel.per_sample()
    }

    /// The largest consumer of memory, if known.
    pub(super) fn needs(&self, job: &EigenJob) -> Option<MemoryNeeds> {
        let (rows, kernel) = (self.rows(), &self.built.kernel);
        let whole = || MemoryNeeds::whole("all eigenvectors", rows, rows);
        let matrix = || MemoryNeeds::matrix::<T>("the entries of the kernel's matrix", rows, kernel.parts().len());
        let own = match &self.way {
            PreparedMethod::Matrix if job.method.multiplies() => Some(matrix()),
            PreparedMethod::Matrix => Some(whole()),
            PreparedMethod::Tangent => match job.method.matrix_free().and_then(super::MatrixFree::way) {
                Some(spectral::TangentMethod::Matrix) => Some(matrix()),
                _ => None,
            },
            PreparedMethod::Landmarks(method) => {
                Some(method.needs((self.samples.n_samples, kernel.per_sample(), job.k)))
            }
            PreparedMethod::Features(basis) => Some(MemoryNeeds::features("features", rows, basis.n_functions())),
            PreparedMethod::Networks(learning) => learning.makes_matrix().then(matrix),
        };
        match (own, job.truth) {
            (Some(own), true) => Some(own.or(whole())),
            (None, true) => Some(whole()),
            (own, false) => own,
        }
    }

    pub(super) fn run(self, task: Task<'_>, mut findings: EigenFindings) -> Result<Outcome<EigenFindings>, Error> {
        let Self { spec, source, recipe, built, saved, samples, eval, way } = self;
        let Task { job, context, .. } = task;
        let failure = |error: SpectralError| match error {
            SpectralError::Kernel(error) => spec.failure(*error),
            other => other.into(),
        };
        let (data, kernel) = (&samples.inputs[..], &built.kernel);
        let found = match way {
            PreparedMethod::Matrix => {
                let _phase = context.phase("decomposing");
                let solver = job.method.solver(job.seed);
                Found::solved(exact(Arc::clone(kernel), data, job.k, solver, context).map_err(failure)?)
            }
            PreparedMethod::Tangent => {
                let _phase = context.phase("decomposing");
                let (Recipe::Tangent { kind, selection, .. }, Some(network)) = (&recipe, source.network()) else {
                    return Err(not_tangent());
                };
                let tangent = TangentKernel { network, kind: *kind, selection };
                let chosen = RefCell::new(None);
                let told = |choice: &TangentChoice| {
                    if job.method.matrix_free().is_some() || choice.way == spectral::TangentMethod::Products {
                        context.note(&choice.sentence());
                    }
                    chosen.replace(Some(choice.clone()));
                };
                let way = job.method.matrix_free().and_then(super::MatrixFree::way);
                let wanted = (job.k, job.method.solver(job.seed));
                let solved = tangent.eigenfunctions(Arc::clone(kernel), data, wanted, way, &told, context);
                let solved = solved.map_err(failure)?;
                findings.choice = chosen.take();
                Found::solved(solved)
            }
            PreparedMethod::Landmarks(method) => {
                let _phase = context.phase("decomposing");
                let fit = method.fit(Arc::clone(kernel), data, job.k, context).map_err(failure)?;
                Found {
                    trace_residual: fit.trace_residual,
                    landmarks: Some(fit.landmarks.len()),
                    ..Found::plain(fit.functions)
                }
            }
            PreparedMethod::Features(basis) => {
                let _phase = context.phase("decomposing");
                Found::plain(of_features(basis, data, job.k, Solver::Lanczos, context).map_err(failure)?.0)
            }
            PreparedMethod::Networks(learning) => {
                let _phase = context.phase("learning");
                learning.of_kernel(Arc::clone(kernel), data, &task)?
            }
        };
        let diagonal = {
            let _phase = context.phase("kernel");
            trace(&**kernel, data, context).map_err(failure)?
        };
        findings.kernel = Some(spec.name());
        findings.mean_diagonal = Some(diagonal / (samples.n_samples * kernel.per_sample()) as f64);
        let truth = match job.truth {
            true => {
                let _phase = context.phase("truth");
                let others = eval.as_ref().map(|eval| &eval.inputs[..]);
                Some(Truth::new(Arc::clone(kernel), data, others, job.k, context).map_err(failure)?)
            }
            false => None,
        };
        let mut inputs = inputs_of(&samples, eval.as_ref())?;
        if let Some(file) = spec.file() {
            let print = digest(kernel.identity().to_string().as_bytes());
            inputs.insert(0, input(spec.setting(), file.display().to_string(), print));
        }
        let given = Given { samples: &samples, eval: eval.as_ref(), kernel: Some(saved), truth, inputs };
        task.keep(found, given, findings)
    }
}

fn not_tangent() -> Error {
    Error::new("‹matrix-free› is for tangent kernels").hint("‹kernel› trace, pseudo, full or logit(I)")
}

/// Rejects a method that does not suit the kernel, and networks that cannot be built, before anything is written.
fn way<T: Real>(
    job: &EigenJob,
    (recipe, built): (&Recipe, &Built<T>),
    source: &NetworkSource,
    samples: &Samples,
    context: &Context,
) -> Result<PreparedMethod<T>, Error> {
    match &job.method {
        EigenMethod::Exact {} => Ok(PreparedMethod::Matrix),
        EigenMethod::Lanczos { matrix_free } | EigenMethod::Randomised { matrix_free } => {
            match (recipe, source.network()) {
                (Recipe::Tangent { .. }, Some(_)) => Ok(PreparedMethod::Tangent),
                _ if matrix_free.is_some() => Err(not_tangent()),
                _ => Ok(PreparedMethod::Matrix),
            }
        }
        EigenMethod::Nystrom { landmarks, n } => {
            Ok(PreparedMethod::Landmarks(Nystrom::new(landmarks.landmarks(*n)).seed(job.seed)))
        }
        EigenMethod::Rff { n, orthogonal } => {
            Ok(PreparedMethod::Features(features((recipe, built), samples, (*n, *orthogonal, job.seed))?))
        }
        EigenMethod::Spin { .. }
        | EigenMethod::Neuralef { .. }
        | EigenMethod::Shared { .. }
        | EigenMethod::Contrastive { .. } => Ok(PreparedMethod::Networks(Box::new(Learning::new(
            job,
            &samples.inputs,
            built.kernel.per_sample(),
            context,
        )?))),
    }
}

/// Random Fourier features of a classic kernel, or the kernel's own features.
fn features<T: Real>(
    (recipe, built): (&Recipe, &Built<T>),
    samples: &Samples,
    (n, orthogonal, seed): (usize, bool, u64),
) -> Result<Arc<dyn Basis<T>>, Error> {
    let shapes = samples.shapes();
    match (recipe, &built.map) {
        (Recipe::Classic(formula), _) => {
            let kernel: Formula = formula.parse().map_err(|error| Error::new(format!("‹kernel›, {error}")))?;
            let spec = FourierSpec::of_classic(&kernel, n)?;
            Ok(Arc::new(Fourier::<T>::new(&FourierSpec { orthogonal, seed, ..spec }, &shapes[0])?))
        }
        (_, Some(map)) => Ok(Arc::new(Mapped::new(Arc::clone(map), &shapes))),
        _ => Err(Error::new("rff: this kernel has no random features")
            .hint("‹kernel› rbf, 'trace(sketch=sjlt:4096)', ck or nngp-mc; or the method nystrom")),
    }
}
