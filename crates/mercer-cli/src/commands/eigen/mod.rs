//! `mercer eigen`: the eigenvalues and eigenfunctions of a kernel.

mod flags;
mod learn;
mod pairs;
mod report;

use crate::console::Console;
use crate::options::{
    ClassOptions, DataOptions, KernelOptions, ParameterOptions, PreprocessOptions, choice, references,
};
use learn::LearnOptions;
use mercer::Error;
use mercer::job::eigen::{EigenMethod, EigenSource, LandmarkChoice, MatrixFree};
use mercer::job::{Destination, EigenJob, EvaluateJob, Job, Opened};
use mercer::spec::Precision;
use pairs::PairOptions;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer eigen --kernel 'polynomial(degree=4, bias=1.5)' --data x.npy --method exact -k 10 -o functions
  mercer eigen --net model.onnx --kind pseudo --data train.npz:x --method nystrom -k 10 --eval test.npz:x -o functions
  mercer eigen --net model.onnx --kind trace --data many.npy --method lanczos --matrix-free -k 10 -o functions
  mercer eigen --kernel 'rbf(lengthscale=2)' --data x.npy --method rff --n-features 4000 --orthogonal -k 20 -o functions
  mercer eigen --kernel 'rbf()' --data x.npy --method neuralef -k 10 --truth -o functions
  mercer eigen --method contrastive --data train.npz:x --labels train.npz:y --scale 1/255 --layout nhwc -k 64 \
      --eval test.npz:x --eval-labels test.npz:y -o codes
  mercer eigen --gram gram.zarr --method lanczos -k 50 -o spectrum
  mercer eigen --gram gram.zarr --data train.npz:x --method shared -k 10 --eval test.npz:x -o functions
  mercer eigen --load functions --eval new.npy -o new

With N samples and K u = λ u: μ = λ/N and ψ(x_n) = √N u_n, so that the functions are orthonormal under the data, and
κ(x, x') = Σ μ_j ψ_j(x) ψ_j(x'). A function is positive where its magnitude first reaches half of its largest.

Methods: exact (all of the matrix), lanczos (its largest part), randomised (five products with a block), nystrom (from
landmarks, with an estimate of the error), rff (random Fourier features of rbf, laplacian and Matérn kernels; for other
kernels with features, such as --kind ck, --sketch and nngp-mc, these), and networks that learn the functions: neuralef and
spin (one network per function), shared (one network with k outputs), contrastive (the same, from pairs of views instead of
a kernel: random changes of images, or --pairs). Learnt functions are finished by Rayleigh–Ritz; the folder holds them
as they were, too (--load DIR/before). Functions are ordered, so that their first numbers are a shorter code; with --labels and
--eval-labels, codes of several lengths are scored: samples of --eval look up and are classified by those of --data.

The folder: values.npy (μ), psi_data.npy and psi.npy (ψ of --data and of --eval, a row per sample, or per sample and output),
functions.svg, result.json, run.json, and folder.json with its objects: the functions, which --load evaluates on new data,
after the preprocessing they were found with. Learnt functions are one network too, psi.onnx.";

/// Take a kernel apart into its eigenvalues and eigenfunctions, which can be evaluated on new data
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Eigenfunctions")]
pub(crate) struct EigenArguments {
    /// How they are found
    #[arg(long, value_name = "METHOD", required_unless_present = "load")]
    method: Option<MethodName>,

    /// How many functions
    #[arg(short = 'k', value_name = "K", default_value_t = 10)]
    k: usize,

    /// The eigenvectors of this matrix (.npy) or store (.zarr); with --data, methods that learn find its functions
    #[arg(long, value_name = "FILE", conflicts_with_all = ["net", "arch", "kernel", "load"])]
    gram: Option<PathBuf>,

    /// The functions of a folder that this command wrote
    #[arg(long, value_name = "DIR", requires = "eval")]
    load: Option<PathBuf>,

    /// Evaluate the functions on these samples, too
    #[arg(long, value_name = "[NAME=]FILE[:KEY]")]
    eval: Vec<String>,

    /// Also decompose the whole matrix, and say how far the functions are from the truth; with --eval there, too, where Nyström's
    /// formula extends the exact functions to
    #[arg(long)]
    truth: bool,

    /// Whether products with a tangent kernel do without its matrix (lanczos and randomised): auto takes what needs fewer
    /// operations, or fits [default: auto]
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    matrix_free: Option<MatrixFreeName>,

    /// Landmarks: all, uniform, k-means++ or rpcholesky (nystrom) [default: uniform]
    #[arg(long, value_name = "CHOICE")]
    landmarks: Option<LandmarksName>,

    /// So many landmarks (nystrom) [default: 500]
    #[arg(long, value_name = "M")]
    n_landmarks: Option<usize>,

    /// So many random Fourier features (rff) [default: 2000]
    #[arg(long, value_name = "D")]
    n_features: Option<usize>,

    /// Random Fourier features with orthogonal directions (rff)
    #[arg(long)]
    orthogonal: bool,

    /// Compute in single or double precision [default: f64; f32 for networks that learn, spin excepted; as stored for --load]
    #[arg(long, value_name = "TYPE", value_parser = choice::<Precision>())]
    precision: Option<Precision>,

    #[command(flatten)]
    learn: LearnOptions,

    #[command(flatten)]
    pairs: PairOptions,

    #[command(flatten)]
    kernel: KernelOptions,

    #[command(flatten)]
    data: EigenData,

    #[command(flatten)]
    target: TargetOptions,

    #[command(flatten)]
    parameters: ParameterOptions,
}

/// What to run on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Data")]
struct EigenData {
    /// The samples; with several inputs once per input, as in --data input_ids=tokens.npz:ids
    #[arg(long, value_name = "[NAME=]FILE[:KEY]")]
    data: Vec<String>,

    /// What the samples show, for the colours of the figure
    #[arg(long, value_name = "FILE[:KEY]", requires = "data")]
    labels: Option<String>,

    /// What the samples of --eval show: with --labels, codes of several lengths are scored
    #[arg(long, value_name = "FILE[:KEY]", requires = "eval")]
    eval_labels: Option<String>,

    #[command(flatten)]
    classes: ClassOptions,

    #[command(flatten)]
    preprocess: PreprocessOptions,
}

/// Where the results go.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct TargetOptions {
    /// Write the results to this folder
    #[arg(short = 'o', long = "out", value_name = "DIR")]
    path: PathBuf,

    /// Replace the results that are in the folder
    #[arg(long)]
    force: bool,
}

impl EigenData {
    /// As the options of other commands.
    fn options(&self) -> DataOptions {
        let Self { data, labels, classes, preprocess, .. } = self;
        DataOptions {
            data: data.clone(),
            labels: labels.clone(),
            classes: classes.clone(),
            preprocess: preprocess.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MethodName {
    Exact,
    Lanczos,
    Randomised,
    Nystrom,
    Rff,
    Spin,
    Neuralef,
    Shared,
    Contrastive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LandmarksName {
    All,
    Uniform,
    #[value(name = "k-means++")]
    KMeansPlusPlus,
    Rpcholesky,
}

/// When a matrix is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MatrixFreeName {
    Auto,
    Always,
    Never,
}

impl EigenArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        self.check_flags()?;
        let TargetOptions { path, force } = &self.target;
        let destination = Destination { force: *force, resume: self.learn.resume(), ..Destination::new(path.clone()) };
        let outcome = match &self.load {
            Some(folder) => self.evaluation(folder).open(&destination, console.opening())?.run(console.context())?,
            None => self.job().open(&destination, console.opening())?.run(console.context())?,
        };
        console.result(&outcome, || report::outcome(&outcome, path))
    }

    /// What is to be found.
    fn job(&self) -> EigenJob {
        let kernel = self.kernel.spec(&self.parameters);
        let (method, seed) = (self.settings(), kernel.seed);
        let of = match &self.gram {
            Some(path) => Some(EigenSource::Gram(path.clone())),
            None if kernel.is_given() => Some(EigenSource::Kernel(Box::new(kernel))),
            None => None,
        };
        EigenJob {
            of,
            data: self.data.options().spec(),
            eval: references(&self.eval),
            eval_labels: self.data.eval_labels.clone().map(Into::into),
            precision: self.precision.unwrap_or(method.precision()),
            method,
            k: self.k,
            truth: self.truth,
            seed,
        }
    }

    /// What is to be evaluated.
    fn evaluation(&self, folder: &std::path::Path) -> EvaluateJob {
        let data = self.data.options().spec();
        let labels = self.data.eval_labels.clone().map(Into::into);
        let eval = data.reading(&references(&self.eval), labels.as_ref());
        EvaluateJob { functions: folder.to_owned(), eval, data, precision: self.precision }
    }

    /// The method with its settings; those of others were refused.
    fn settings(&self) -> EigenMethod {
        let matrix_free = self.matrix_free.map(|name| match name {
            MatrixFreeName::Auto => MatrixFree::Auto,
            MatrixFreeName::Always => MatrixFree::Always,
            MatrixFreeName::Never => MatrixFree::Never,
        });
        match self.method.unwrap_or(MethodName::Exact) {
            MethodName::Exact => EigenMethod::Exact {},
            MethodName::Lanczos => EigenMethod::Lanczos { matrix_free },
            MethodName::Randomised => EigenMethod::Randomised { matrix_free },
            MethodName::Nystrom => EigenMethod::Nystrom {
                landmarks: match self.landmarks.unwrap_or(LandmarksName::Uniform) {
                    LandmarksName::All => LandmarkChoice::All,
                    LandmarksName::Uniform => LandmarkChoice::Uniform,
                    LandmarksName::KMeansPlusPlus => LandmarkChoice::KMeansPlusPlus,
                    LandmarksName::Rpcholesky => LandmarkChoice::Rpcholesky,
                },
                n: self.n_landmarks.unwrap_or(EigenMethod::LANDMARKS),
            },
            MethodName::Rff => {
                EigenMethod::Rff { n: self.n_features.unwrap_or(EigenMethod::FEATURES), orthogonal: self.orthogonal }
            }
            MethodName::Spin => self.learn.spin(),
            MethodName::Neuralef => self.learn.neuralef(),
            MethodName::Shared => self.learn.shared(),
            MethodName::Contrastive => self.learn.contrastive(self.pairs.views()),
        }
    }
}
