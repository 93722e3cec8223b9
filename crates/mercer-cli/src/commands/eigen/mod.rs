//! `mercer eigen`: the eigenvalues and eigenfunctions of a kernel.

mod figure;
mod folder;
mod learn;
mod report;
mod solve;

use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;
use crate::options::{DataOptions, KernelOptions, ParameterOptions, Precision, PreprocessOptions};
use folder::Folder;
use learn::LearnOptions;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer eigen --kernel 'polynomial(degree=4, bias=1.5)' --data x.npy --method exact -k 10 -o functions
  mercer eigen --net model.onnx --kind pseudo --data train.npz:x --method nystrom -k 10 --eval test.npz:x -o functions
  mercer eigen --net model.onnx --kind trace --data many.npy --method lanczos --matrix-free -k 10 -o functions
  mercer eigen --kernel 'rbf(lengthscale=2)' --data x.npy --method rff --n-features 4000 --orthogonal -k 20 -o functions
  mercer eigen --kernel 'rbf()' --data x.npy --method neuralef -k 10 --truth -o functions
  mercer eigen --gram gram.zarr --method lanczos -k 50 -o spectrum
  mercer eigen --load functions --eval new.npy -o new

With N samples and K u = λ u: μ = λ/N and ψ(x_n) = √N u_n, so that the functions are orthonormal under the data, and
κ(x, x') = Σ μ_j ψ_j(x) ψ_j(x'). A function is positive where its magnitude first reaches half of its largest.

Methods: exact (all of the matrix), lanczos (its largest part), randomised (five products with a block), nystrom (from
landmarks, with an estimate of the error), rff (random Fourier features of rbf, laplacian and Matérn kernels; for other
kernels with features, such as --kind ck, --sketch and nngp-mc, these), and networks that learn the functions: neuralef and
spin (one network per function), shared (one network with k outputs). Learnt functions are finished by Rayleigh–Ritz;
the folder holds them as they were in before/ too.

The folder: values.npy (μ), psi_data.npy and psi.npy (ψ of --data and of --eval, a row per sample, or per sample and output),
functions.svg, result.json, and eigenfunctions.json with its files: the functions, which --load evaluates on new data.";

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

    /// The eigenvectors of this matrix (.npy) or store (.zarr), instead of the functions of a kernel
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "net", "arch", "kernel", "load"])]
    gram: Option<PathBuf>,

    /// The functions of a folder that this command wrote
    #[arg(long, value_name = "DIR", requires = "eval")]
    load: Option<PathBuf>,

    /// Evaluate the functions on these samples, too
    #[arg(long, value_name = "[NAME=]FILE[:KEY]")]
    eval: Vec<String>,

    /// Also decompose the whole matrix, and say how far the functions are from the truth
    #[arg(long)]
    truth: bool,

    /// Multiply with the tangent kernel without making its matrix (lanczos and randomised)
    #[arg(long)]
    matrix_free: bool,

    /// Landmarks: all, uniform, k-means++ or rpcholesky (nystrom)
    #[arg(long, value_name = "CHOICE", default_value = "uniform")]
    landmarks: LandmarksName,

    /// So many landmarks (nystrom)
    #[arg(long, value_name = "M", default_value_t = 500)]
    n_landmarks: usize,

    /// So many random Fourier features (rff)
    #[arg(long, value_name = "D", default_value_t = 2000)]
    n_features: usize,

    /// Random Fourier features with orthogonal directions (rff)
    #[arg(long)]
    orthogonal: bool,

    /// Compute in single or double precision [default: f64, and f32 for networks that learn]
    #[arg(long, value_name = "TYPE")]
    precision: Option<Precision>,

    #[command(flatten)]
    learn: LearnOptions,

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

    #[command(flatten)]
    preprocess: PreprocessOptions,
}

impl EigenData {
    /// As the options of other commands.
    fn options(&self, labels: bool) -> DataOptions {
        let labels = self.labels.clone().filter(|_| labels);
        DataOptions { data: self.data.clone(), labels, preprocess: self.preprocess.clone() }
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LandmarksName {
    All,
    Uniform,
    #[value(name = "k-means++")]
    KMeansPlusPlus,
    Rpcholesky,
}

impl MethodName {
    fn is_learnt(self) -> bool {
        matches!(self, Self::Spin | Self::Neuralef | Self::Shared)
    }
}

impl EigenArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        self.check_flags()?;
        self.folder.check(self.learn.resume())?;
        interrupt::watch();
        let usual = if self.method.is_some_and(MethodName::is_learnt) { Precision::F32 } else { Precision::F64 };
        let report = match self.precision.unwrap_or(usual) {
            Precision::F32 => self.solve::<f32>(console)?,
            Precision::F64 => self.solve::<f64>(console)?,
        };
        self.folder.write_report(&report)?;
        for repair in report.repairs() {
            console.note(&format!("note: {repair}"));
        }
        console.result(&report, || report.text())
    }

    /// Flags that mean nothing together are refused instead of ignored.
    fn check_flags(&self) -> Result<(), Failure> {
        let method = self.method.unwrap_or(MethodName::Exact);
        if self.k == 0 {
            return Err(Failure::new("-k 0: take at least one function"));
        }
        if self.gram.is_none() && self.load.is_none() {
            if !self.kernel.is_given() {
                return Err(Failure::new("there is neither a kernel nor a matrix nor a folder")
                    .hint("--kernel FORMULA, --net MODEL.onnx --kind KIND, --gram STORE or --load DIR"));
            }
            if self.data.data.is_empty() {
                return Err(Failure::new("there are no data").hint("--data FILE[:KEY]"));
            }
            self.kernel.check()?;
        }
        let products = matches!(method, MethodName::Lanczos | MethodName::Randomised);
        if self.matrix_free && !products {
            return Err(Failure::new("--matrix-free is for --method lanczos and randomised"));
        }
        if self.gram.is_some() && !products && method != MethodName::Exact {
            return Err(Failure::new("--gram: the eigenvectors of a matrix are found by exact, lanczos or randomised")
                .hint("--kernel or --net instead of --gram, with the data"));
        }
        if self.gram.is_some() && !self.eval.is_empty() {
            return Err(Failure::new("--eval: a matrix says nothing about new samples")
                .hint("--kernel or --net instead of --gram, with the data"));
        }
        if self.load.is_some() && (self.kernel.is_given() || self.truth) {
            let flag = if self.truth { "--truth" } else { "a kernel" };
            return Err(Failure::new(format!("--load evaluates what was found before; {flag} means nothing to it")));
        }
        self.learn.check(method.is_learnt())
    }
}
