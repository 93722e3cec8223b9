//! `mercer eigen`: the eigenvalues and eigenfunctions of a kernel.

mod codes;
mod contrastive;
mod figure;
mod flags;
mod folder;
mod gram;
mod learn;
mod load;
mod report;
mod results;
mod solve;

use crate::console::Console;
use crate::failure::Failure;
use crate::options::{
    ClassOptions, DataOptions, KernelOptions, ParameterOptions, Precision, PreprocessOptions, Samples,
};
use contrastive::PairOptions;
use folder::Folder;
use learn::{Course, LearnOptions, Task};
use mercer::data::Dataset;
use mercer::run::Context;
use mercer::spectral::{Description, Way};
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
as they were in before/ too. Functions are ordered, so that their first numbers are a shorter code; with --labels and
--eval-labels, codes of several lengths are scored: samples of --eval look up and are classified by those of --data.

The folder: values.npy (μ), psi_data.npy and psi.npy (ψ of --data and of --eval, a row per sample, or per sample and output),
functions.svg, result.json, and folder.json with its objects: the functions, which --load evaluates on new data, after
the preprocessing they were found with. Learnt functions are one network too, psi.onnx.";

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
    matrix_free: Option<MatrixFree>,

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
    #[arg(long, value_name = "TYPE")]
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
    folder: Folder,

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

impl EigenData {
    /// As the options of other commands.
    fn options(&self) -> DataOptions {
        DataOptions { labels: self.labels.clone(), ..self.unlabelled() }
    }

    /// For `--eval`.
    fn eval_options(&self) -> DataOptions {
        DataOptions { labels: self.eval_labels.clone(), ..self.unlabelled() }
    }

    /// For samples without labels.
    fn unlabelled(&self) -> DataOptions {
        let (data, classes, preprocess) = (self.data.clone(), self.classes.clone(), self.preprocess.clone());
        DataOptions { data, classes, preprocess, ..DataOptions::default() }
    }
}

/// Samples to evaluate must be such as the functions are found from.
fn check_eval(eval: Option<&Samples>, samples: &Samples) -> Result<(), Failure> {
    match eval.map(Samples::shapes) {
        Some(found) if found != samples.shapes() => {
            Err(Failure::new(format!("--eval has samples of shape {found:?}, --data of {:?}", samples.shapes())))
        }
        _ => Ok(()),
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
enum MatrixFree {
    Auto,
    Always,
    Never,
}

impl MatrixFree {
    /// The way that is taken whatever it costs.
    fn way(self) -> Option<Way> {
        match self {
            Self::Auto => None,
            Self::Always => Some(Way::Products),
            Self::Never => Some(Way::Matrix),
        }
    }
}

impl MethodName {
    fn is_learnt(self) -> bool {
        self == Self::Spin || self == Self::Neuralef || self.shares()
    }

    /// Whether one network gives all functions.
    fn shares(self) -> bool {
        matches!(self, Self::Shared | Self::Contrastive)
    }

    /// As the user writes it.
    fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Lanczos => "lanczos",
            Self::Randomised => "randomised",
            Self::Nystrom => "nystrom",
            Self::Rff => "rff",
            Self::Spin => "spin",
            Self::Neuralef => "neuralef",
            Self::Shared => "shared",
            Self::Contrastive => "contrastive",
        }
    }

    /// SpIN decorrelates its functions by a Cholesky factor, which amplifies rounding.
    fn precision(self) -> Precision {
        if self.is_learnt() && self != Self::Spin { Precision::F32 } else { Precision::F64 }
    }
}

impl EigenArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        self.check_flags()?;
        self.folder.check(self.learn.resume())?;
        let mut report = match self.precision()? {
            Precision::F32 => self.solve::<f32>(console)?,
            Precision::F64 => self.solve::<f64>(console)?,
        };
        self.folder.write_report(&mut report)?;
        for repair in report.repairs() {
            console.note(&format!("note: {repair}"));
        }
        console.result(&report, || report.text())
    }

    fn method(&self) -> MethodName {
        self.method.unwrap_or(MethodName::Exact)
    }

    /// What the user wants, or what suits the method, or that of the folder.
    fn precision(&self) -> Result<Precision, Failure> {
        match (self.precision, &self.load) {
            (Some(given), _) => Ok(given),
            (None, Some(folder)) => {
                let description = Description::read(folder).map_err(solve::failure)?;
                Ok(if description.precision == "f32" { Precision::F32 } else { Precision::F64 })
            }
            (None, None) => Ok(self.method().precision()),
        }
    }

    /// What is learnt from these samples.
    fn task<'a>(&self, data: &'a [Dataset], per_sample: usize) -> Task<'a> {
        Task { method: self.method(), k: self.k, per_sample, data, seed: self.kernel.seed() }
    }

    /// How it is learnt.
    fn course<'a>(&'a self, bar: &'a Context) -> Course<'a> {
        let method = self.method();
        Course {
            k: self.k,
            method: self.learn.objective(method),
            decays: method == MethodName::Contrastive,
            folder: self.folder.path(),
            context: bar,
        }
    }
}
