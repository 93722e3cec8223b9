//! From arguments to functions.

use super::report::EigenReport;
use super::results::{Found, Given};
use super::{EigenArguments, LandmarksName, MatrixFree, MethodName, check_eval};
use crate::console::Console;
use crate::failure::Failure;
use crate::format::bytes;
use crate::options::{Samples, Source};
use mercer::data;
use mercer::kernel::classic::Expression;
use mercer::kernel::{Built, Real, Recipe};
use mercer::net::Network;
use mercer::run::Context;
use mercer::spectral::{
    self, Basis, Choice, Fourier, FourierSpec, Landmarks, Mapped, Nystrom, Origin, Solver, SpectralError, Tangent,
    Truth, exact, files, of_features, trace,
};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

/// What went wrong, in the words of the command line.
pub(super) fn failure(error: SpectralError) -> Failure {
    match error {
        SpectralError::Data(error) => (*error).into(),
        SpectralError::Cancelled => Failure::interrupted("interrupted"),
        SpectralError::NoSpectrum { .. } => {
            Failure::new(error.to_string()).hint("is the kernel zero on these data, or the matrix negative?")
        }
        SpectralError::Memory { what, rows, columns, needed, allowed } => Failure::new(format!(
            "{what} of {rows} × {columns} numbers need some {}, but {} may be used",
            bytes(needed),
            bytes(allowed)
        ))
        .hint("--method lanczos, nystrom with fewer --n-landmarks, or rff with fewer --n-features"),
        SpectralError::Indefinite { .. } => {
            Failure::new(error.to_string()).hint("--landmarks uniform, k-means++ or all; --method exact counts them")
        }
        SpectralError::OtherKernel { .. } => {
            Failure::new(error.to_string()).hint("find the functions again with `mercer eigen`")
        }
        other => Failure::new(other.to_string()),
    }
}

/// A kernel on data, opened.
struct Problem<T: Real> {
    recipe: Recipe,
    built: Built<T>,
    origin: Origin,
    samples: Samples,
}

/// A method, with what it needs beside the kernel and the data.
enum Way<'a, T: Real> {
    Matrix,
    /// Products with the tangent kernel of a network, with its matrix or without.
    Tangent(Tangent<'a>),
    Landmarks,
    Features(Arc<dyn Basis<T>>),
    Networks(Network),
}

impl EigenArguments {
    pub(super) fn solver(&self) -> Solver {
        match self.method() {
            MethodName::Lanczos => Solver::Lanczos,
            MethodName::Randomised => Solver::Randomised { seed: self.kernel.seed() },
            _ => Solver::Full,
        }
    }

    pub(super) fn solve<T: Real>(&self, console: &Console) -> Result<EigenReport, Failure> {
        let mut report = EigenReport {
            kind: files::KIND,
            method: self.method.map_or("load", MethodName::name).to_owned(),
            precision: T::NAME.to_owned(),
            wanted: self.k,
            output: self.folder.path().display().to_string(),
            ..EigenReport::default()
        };
        match (&self.load, &self.gram) {
            (Some(folder), _) => self.evaluate::<T>(folder, &mut report, console)?,
            (None, Some(path)) => self.of_gram::<T>(path, &mut report, console)?,
            (None, None) if self.method() == MethodName::Contrastive => self.of_pairs::<T>(&mut report, console)?,
            (None, None) => self.of_kernel::<T>(&mut report, console)?,
        }
        Ok(report)
    }

    fn of_kernel<T: Real>(&self, report: &mut EigenReport, console: &Console) -> Result<(), Failure> {
        let source = self.kernel.open(&self.parameters)?;
        let problem = self.open::<T>(&source, console)?;
        self.kernel.tell(&problem.recipe, &source, &problem.samples.shapes(), console);
        let eval = match &self.eval[..] {
            [] => None,
            texts => {
                let like = &problem.samples.columns;
                Some(source.samples("--eval", texts, &self.data.eval_options(), like, console)?)
            }
        };
        check_eval(eval.as_ref(), &problem.samples)?;
        let way = self.way(&source, &problem, console)?;
        self.folder.create(self.learn.resume())?;
        let (data, kernel) = (&problem.samples.inputs, &*problem.built.kernel);
        let bar = console.context();
        let start = Instant::now();
        let found = self.find(way, &problem, report, (&bar, console))?;
        report.seconds = start.elapsed().as_secs_f64();
        report.kernel = Some(self.kernel.name());
        let rows = problem.samples.n_samples * kernel.per_sample();
        report.mean_diagonal = Some(trace(kernel, data).map_err(failure)? / rows as f64);
        let truth = match self.truth {
            true => {
                let (kernel, others) = (Arc::clone(&problem.built.kernel), eval.as_ref().map(|eval| &eval.inputs[..]));
                Some(Truth::new(kernel, data, others, self.k, &bar).map_err(failure)?)
            }
            false => None,
        };
        let origin = Some(problem.origin.clone());
        self.keep(found, Given { samples: &problem.samples, eval: eval.as_ref(), origin, truth }, report, &bar)
    }

    fn open<T: Real>(&self, source: &Source, console: &Console) -> Result<Problem<T>, Failure> {
        let samples = source.samples("--data", &self.data.data, &self.data.options(), &[], console)?;
        samples.hint(source.network(), console)?;
        let shapes = samples.shapes();
        source.check_shapes(&shapes, self.kernel.path())?;
        let recipe = match self.kernel.recipe(source, false)? {
            // Standard errors are of no use to a spectrum.
            Recipe::MonteCarlo { of, rule, networks, seed, .. } => {
                Recipe::MonteCarlo { of, rule, networks, seed, errors: false }
            }
            recipe => recipe,
        };
        let built = recipe.build::<T>(source.network(), &shapes).map_err(|error| self.kernel.failure(error))?;
        let bytes = match (source, self.kernel.file()) {
            (Source::Trained(_), Some(path)) => Some(
                mercer::data::read_regular(path, u64::MAX)
                    .map_err(|error| crate::failure::cannot_open(path.display(), &error))?,
            ),
            (Source::Described(network, _), _) => {
                Some(network.to_onnx_bytes().map_err(|error| Failure::of_network(self.kernel.path(), error))?)
            }
            _ => None,
        };
        let (include, exclude) = self.parameters.names();
        let origin =
            Origin::new(recipe.clone(), bytes).parameters(include, exclude).unmerged(self.parameters.unmerged());
        Ok(Problem { recipe, built, origin, samples })
    }

    /// A method that does not suit the kernel, and networks that cannot be, are refused before anything is written.
    fn way<'a, T: Real>(
        &self,
        source: &'a Source,
        problem: &'a Problem<T>,
        console: &Console,
    ) -> Result<Way<'a, T>, Failure> {
        match self.method() {
            MethodName::Exact => Ok(Way::Matrix),
            MethodName::Lanczos | MethodName::Randomised => {
                match (&problem.recipe, source.network()) {
                    (Recipe::Tangent { kind, selection, .. }, Some(network)) => {
                        Ok(Way::Tangent(Tangent { network, kind: *kind, selection }))
                    }
                    _ if self.matrix_free.is_some() => Err(Failure::new("--matrix-free is for tangent kernels")
                        .hint("--kind trace, pseudo, full or logit:I")),
                    _ => Ok(Way::Matrix),
                }
            }
            MethodName::Nystrom => Ok(Way::Landmarks),
            MethodName::Rff => Ok(Way::Features(self.features(problem)?)),
            MethodName::Spin | MethodName::Neuralef | MethodName::Shared | MethodName::Contrastive => {
                let task = self.task(&problem.samples.inputs, problem.built.kernel.per_sample());
                task.advise(&self.learn, console)?;
                Ok(Way::Networks(task.network(&self.learn)?))
            }
        }
    }

    fn find<T: Real>(
        &self,
        way: Way<'_, T>,
        problem: &Problem<T>,
        report: &mut EigenReport,
        (bar, console): (&Context, &Console),
    ) -> Result<Found<T>, Failure> {
        let (kernel, data) = (Arc::clone(&problem.built.kernel), &problem.samples.inputs[..]);
        match way {
            Way::Matrix => Ok(Found::solved(exact(kernel, data, self.k, self.solver(), bar).map_err(failure)?)),
            Way::Tangent(tangent) => {
                let chosen = RefCell::new(None);
                let told = |choice: &Choice| {
                    if self.matrix_free.is_some() || choice.way == spectral::Way::Products {
                        console.note(&format!("note: {}", choice.sentence()));
                    }
                    chosen.replace(Some(choice.clone()));
                };
                let way = self.matrix_free.and_then(MatrixFree::way);
                let solved = tangent.eigenfunctions(kernel, data, (self.k, self.solver()), way, &told, bar);
                let solved = solved.map_err(|error| match error {
                    SpectralError::Kernel(error) => self.kernel.failure(*error),
                    other => failure(other),
                })?;
                report.choice = chosen.take();
                Ok(Found::solved(solved))
            }
            Way::Landmarks => {
                let m = self.n_landmarks.unwrap_or(500);
                let landmarks = match self.landmarks {
                    Some(LandmarksName::All) => Landmarks::All,
                    Some(LandmarksName::Uniform) | None => Landmarks::Uniform(m),
                    Some(LandmarksName::KMeansPlusPlus) => Landmarks::KMeansPlusPlus(m),
                    Some(LandmarksName::Rpcholesky) => Landmarks::PivotedCholesky(m),
                };
                let method = Nystrom::new(landmarks).seed(self.kernel.seed());
                let fit = method.fit(kernel, data, self.k, bar).map_err(failure)?;
                Ok(Found {
                    trace_residual: fit.trace_residual,
                    landmarks: Some(fit.landmarks.len()),
                    ..Found::plain(fit.functions)
                })
            }
            Way::Features(basis) => {
                Ok(Found::plain(of_features(basis, data, self.k, Solver::Lanczos, bar).map_err(failure)?.0))
            }
            Way::Networks(network) => {
                let task = self.task(data, kernel.per_sample());
                self.learn.of_kernel(kernel, network, &task, &self.course(bar))
            }
        }
    }

    /// Random Fourier features of a classic kernel, or the features that a kernel has.
    fn features<T: Real>(&self, problem: &Problem<T>) -> Result<Arc<dyn Basis<T>>, Failure> {
        let shapes = problem.samples.shapes();
        match (&problem.recipe, &problem.built.map) {
            (Recipe::Classic(formula), _) => {
                let kernel: Expression = formula.parse().map_err(|error| Failure::new(format!("--kernel, {error}")))?;
                let spec = FourierSpec::of_classic(&kernel, self.n_features.unwrap_or(2000)).map_err(failure)?;
                let spec = FourierSpec { orthogonal: self.orthogonal, seed: self.kernel.seed(), ..spec };
                Ok(Arc::new(Fourier::<T>::new(&spec, &shapes[0]).map_err(failure)?))
            }
            (_, Some(map)) => Ok(Arc::new(Mapped::new(Arc::clone(map), &shapes))),
            _ => Err(Failure::new("--method rff: this kernel has no random features")
                .hint("--kernel rbf(), --sketch METHOD:K, --kind ck or nngp-mc; or --method nystrom")),
        }
    }
}
