//! From arguments to functions.

use super::learn::{Course, Task};
use super::report::EigenReport;
use super::results::{Found, Given, compared};
use super::{EigenArguments, LandmarksName, MethodName, check_eval};
use crate::console::Console;
use crate::failure::Failure;
use crate::options::{Samples, Source};
use crate::progress::Bar;
use mercer::data;
use mercer::kernel::classic::Expression;
use mercer::kernel::store::Store;
use mercer::kernel::{Built, NtkOperator, Real, Recipe};
use mercer::spectral::learnt::Method;
use mercer::spectral::{
    Fourier, FourierSpec, Landmarks, Mapped, Nystrom, Origin, Solver, SpectralError, Spectrum, exact, extend,
    gram_matrix, of_features, trace,
};
use ndarray::{Array2, ArrayD, Ix2};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// What kind of result it is.
const KIND: &str = "eigenfunctions";

/// What went wrong, in the words of the command line.
pub(super) fn failure(error: SpectralError) -> Failure {
    match error {
        SpectralError::Data(error) => (*error).into(),
        SpectralError::Cancelled => Failure::interrupted("interrupted"),
        SpectralError::NoSpectrum { .. } => {
            Failure::new(error.to_string()).hint("is the kernel zero on these data, or the matrix negative?")
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

impl EigenArguments {
    fn solver(&self) -> Solver {
        match self.method() {
            MethodName::Lanczos => Solver::Lanczos,
            MethodName::Randomised => Solver::Randomised { seed: self.kernel.seed() },
            _ => Solver::Full,
        }
    }

    pub(super) fn solve<T: Real>(&self, console: &Console) -> Result<EigenReport, Failure> {
        let mut report = EigenReport {
            kind: KIND,
            method: self.method.map_or("load", MethodName::name).to_owned(),
            precision: <T as data::Element>::NAME.to_owned(),
            wanted: self.k,
            output: self.folder.path().display().to_string(),
            ..EigenReport::default()
        };
        match (&self.load, &self.gram) {
            (Some(folder), _) => self.evaluate::<T>(folder, &mut report, console)?,
            (None, Some(path)) => self.of_gram::<T>(path, &mut report)?,
            (None, None) if self.method() == MethodName::Contrastive => self.of_pairs::<T>(&mut report, console)?,
            (None, None) => self.of_kernel::<T>(&mut report, console)?,
        }
        Ok(report)
    }

    /// `--gram`.
    fn of_gram<T: Real>(&self, path: &Path, report: &mut EigenReport) -> Result<(), Failure> {
        let gram = read_gram::<T>(path)?;
        let start = Instant::now();
        let spectrum = Spectrum::of_matrix(gram.view(), self.k, self.solver()).map_err(failure)?;
        report.seconds = start.elapsed().as_secs_f64();
        report.kernel = Some(path.display().to_string());
        report.samples = gram.nrows();
        report.values = spectrum.values.to_vec();
        report.repairs = spectrum.repairs;
        report.mean_diagonal = Some(gram.diag().iter().map(|v| v.wide()).sum::<f64>() / gram.nrows() as f64);
        if self.truth {
            let truth = Spectrum::of_matrix(gram.view(), self.k, Solver::Full).map_err(failure)?;
            report.truth = Some(compared(&spectrum.values.to_vec(), &spectrum.functions, &truth)?);
        }
        self.folder.create(self.learn.resume())?;
        self.folder.write("values.npy", &spectrum.values)?;
        self.folder.write("psi_data.npy", &spectrum.functions)?;
        self.draw(&[], &spectrum.functions, &report.values, None)
    }

    fn of_kernel<T: Real>(&self, report: &mut EigenReport, console: &Console) -> Result<(), Failure> {
        let source = self.kernel.open(&self.parameters)?;
        let problem = self.open::<T>(&source)?;
        let eval = match &self.eval[..] {
            [] => None,
            texts => Some(source.samples("--eval", texts, &self.data.eval_options())?),
        };
        check_eval(eval.as_ref(), &problem.samples)?;
        if self.method().is_learnt()
            && let [data] = &problem.samples.inputs[..]
        {
            // Networks that cannot be are refused before anything is written.
            let per_sample = problem.built.kernel.per_sample();
            self.learn.network(self.method(), self.k, per_sample, data.sample_shape(), self.kernel.seed())?;
        }
        self.folder.create(self.learn.resume())?;
        let (data, kernel) = (&problem.samples.inputs, &*problem.built.kernel);
        let bar = Bar(console.progress(1, ""));
        let start = Instant::now();
        let found = self.find(&source, &problem, &bar)?;
        report.seconds = start.elapsed().as_secs_f64();
        report.kernel = Some(self.kernel.name());
        let rows = problem.samples.n_samples * kernel.per_sample();
        report.mean_diagonal = Some(trace(kernel, data).map_err(failure)? / rows as f64);
        let truth = match self.truth {
            true => {
                let gram = gram_matrix(kernel, data, &bar).map_err(failure)?;
                Some(Spectrum::of_matrix(gram.view(), self.k, Solver::Full).map_err(failure)?)
            }
            false => None,
        };
        let origin = Some(problem.origin.clone());
        self.keep(found, Given { samples: &problem.samples, eval: eval.as_ref(), origin, truth }, report, &bar)
    }

    fn open<T: Real>(&self, source: &Source) -> Result<Problem<T>, Failure> {
        let samples = source.samples("--data", &self.data.data, &self.data.options())?;
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
            (Source::Trained(_), Some(path)) => {
                Some(std::fs::read(path).map_err(|error| crate::failure::cannot_open(path.display(), &error))?)
            }
            (Source::Described(network, _), _) => {
                Some(network.to_onnx_bytes().map_err(|error| Failure::of_network(self.kernel.path(), error))?)
            }
            _ => None,
        };
        let (include, exclude) = self.parameters.names();
        let origin = Origin::new(recipe.clone(), bytes).parameters(include, exclude);
        Ok(Problem { recipe, built, origin, samples })
    }

    fn find<T: Real>(&self, source: &Source, problem: &Problem<T>, bar: &Bar) -> Result<Found<T>, Failure> {
        let (kernel, data) = (Arc::clone(&problem.built.kernel), &problem.samples.inputs[..]);
        match self.method() {
            MethodName::Exact | MethodName::Lanczos | MethodName::Randomised => {
                if self.matrix_free {
                    return self.matrix_free(source, problem);
                }
                Ok(Found::plain(exact(kernel, data, self.k, self.solver(), bar).map_err(failure)?.0))
            }
            MethodName::Nystrom => {
                let m = self.n_landmarks;
                let landmarks = match self.landmarks {
                    LandmarksName::All => Landmarks::All,
                    LandmarksName::Uniform => Landmarks::Uniform(m),
                    LandmarksName::KMeansPlusPlus => Landmarks::KMeansPlusPlus(m),
                    LandmarksName::Rpcholesky => Landmarks::PivotedCholesky(m),
                };
                let method = Nystrom::new(landmarks).seed(self.kernel.seed());
                let fit = method.fit(kernel, data, self.k, bar).map_err(failure)?;
                Ok(Found {
                    trace_residual: fit.trace_residual,
                    landmarks: Some(fit.landmarks.len()),
                    ..Found::plain(fit.functions)
                })
            }
            MethodName::Rff => self.features(problem, bar),
            method => {
                let task = Task { method, k: self.k, kernel, data, seed: self.kernel.seed() };
                let objective = if method == MethodName::Spin { Method::Spin } else { Method::NeuralEf };
                let folder = self.folder.path();
                let course = Course { method: objective, decays: false, folder, progress: bar };
                self.learn.of_kernel(&task, &course)
            }
        }
    }

    /// Products with the tangent kernel, without its matrix.
    fn matrix_free<T: Real>(&self, source: &Source, problem: &Problem<T>) -> Result<Found<T>, Failure> {
        let (Recipe::Tangent { kind, selection, .. }, Some(network)) = (&problem.recipe, source.network()) else {
            return Err(
                Failure::new("--matrix-free is for tangent kernels").hint("--kind trace, pseudo, full or logit:I")
            );
        };
        let data = &problem.samples.inputs;
        let operator =
            NtkOperator::<T>::new(network, data, *kind, selection).map_err(|error| self.kernel.failure(error))?;
        let spectrum = Spectrum::of_operator(&operator, self.k, self.solver());
        let spectrum = spectrum.map_err(|error| match operator.failure() {
            Some(error) => self.kernel.failure(error),
            None => failure(error),
        })?;
        let functions = extend(&spectrum, Arc::clone(&problem.built.kernel), data).map_err(failure)?;
        Ok(Found::plain(functions))
    }

    /// Random Fourier features of a classic kernel, or the features that a kernel has.
    fn features<T: Real>(&self, problem: &Problem<T>, bar: &Bar) -> Result<Found<T>, Failure> {
        let (data, shapes) = (&problem.samples.inputs, problem.samples.shapes());
        let (functions, _) = match (&problem.recipe, &problem.built.map) {
            (Recipe::Classic(formula), _) => {
                let kernel: Expression = formula.parse().map_err(|error| Failure::new(format!("--kernel, {error}")))?;
                let spec = FourierSpec::of_classic(&kernel, self.n_features).map_err(failure)?;
                let spec = FourierSpec { orthogonal: self.orthogonal, seed: self.kernel.seed(), ..spec };
                let basis = Arc::new(Fourier::<T>::new(&spec, &shapes[0]).map_err(failure)?);
                of_features(basis, data, self.k, Solver::Lanczos, bar).map_err(failure)?
            }
            (_, Some(map)) => {
                let basis = Arc::new(Mapped::new(Arc::clone(map), &shapes));
                of_features(basis, data, self.k, Solver::Lanczos, bar).map_err(failure)?
            }
            _ => {
                return Err(Failure::new("--method rff: this kernel has no random features")
                    .hint("--kernel rbf(), --sketch METHOD:K, --kind ck or nngp-mc; or --method nystrom"));
            }
        };
        Ok(Found::plain(functions))
    }
}

/// A matrix of a store, the sum of its layers, or of a file.
fn read_gram<T: Real>(path: &Path) -> Result<Array2<T>, Failure> {
    let array: ArrayD<T> = if path.join("zarr.json").is_file() {
        let store = Store::open(path)?;
        let mut names = store.layout().arrays.clone();
        // Standard errors are kept beside a kernel, and are no part of it.
        names.retain(|name| name != "standard error");
        let mut sum: Option<ArrayD<T>> = None;
        for name in &names {
            let part = store.read_all::<T>(name)?;
            sum = Some(match sum {
                Some(sum) => sum + part,
                None => part,
            });
        }
        sum.ok_or_else(|| Failure::new(format!("{}: there is no matrix in it", path.display())))?
    } else {
        mercer::data::Source::new(path, None).open()?.read()?
    };
    let shape = array.shape().to_vec();
    let square = match shape[..] {
        [n, m] if n == m => Some(n),
        [n, c, m, d] if n == m && c == d => Some(n * c),
        _ => None,
    };
    let wrong = || {
        Failure::new(format!("{}: an array of shape {shape:?} is no Gram matrix", path.display()))
            .hint("a square matrix, of samples with themselves")
    };
    let rows = square.ok_or_else(wrong)?;
    let matrix = array.as_standard_layout().into_owned().into_shape_with_order((rows, rows)).map_err(|_| wrong())?;
    matrix.into_dimensionality::<Ix2>().map_err(|_| wrong())
}
