//! Methods that decompose a matrix, or a part of it.

use super::source::{OfKernel, OfMatrix};
use crate::options::{LandmarksOption, choice, with_default};
use mercer::Error;
use mercer::job::EigenJob;
use mercer::job::eigen::{EigenMethod, LandmarkChoice, MatrixFree};

/// Decompose the whole kernel matrix
#[derive(Debug, clap::Args)]
#[command(mut_arg("precision", |arg| arg.default_value("f64")), after_help = "\
Examples:
  mercer eigen exact --kernel 'polynomial(degree=4, bias=1.5)' --data x.npy -o functions
  mercer eigen exact --gram gram.npy -k 50 -o spectrum")]
pub(super) struct Exact {
    #[command(flatten)]
    pub(super) of: OfMatrix,
}

/// Find the largest eigenvalues by Lanczos iteration
#[derive(Debug, clap::Args)]
#[command(mut_arg("precision", |arg| arg.default_value("f64")), after_help = "\
Examples:
  mercer eigen lanczos --gram gram.zarr -k 50 -o spectrum
  mercer eigen lanczos --net model.onnx --data many.npy --matrix-free -o functions")]
pub(super) struct Lanczos {
    #[command(flatten)]
    pub(super) of: OfMatrix,

    #[command(flatten)]
    products: ProductOptions,
}

/// Find the largest eigenvalues by a randomised decomposition: five products with a block of vectors
#[derive(Debug, clap::Args)]
#[command(mut_arg("precision", |arg| arg.default_value("f64")), after_help = "\
Examples:
  mercer eigen randomised --gram gram.zarr -k 50 -o spectrum
  mercer eigen randomised --net model.onnx --data many.npy --matrix-free=always -o functions")]
pub(super) struct Randomised {
    #[command(flatten)]
    pub(super) of: OfMatrix,

    #[command(flatten)]
    products: ProductOptions,
}

/// How matrix products are computed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Eigenfunctions")]
struct ProductOptions {
    /// Multiply with a network's tangent kernel without forming its matrix [default: auto]
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        value_parser = choice::<MatrixFree>()
    )]
    matrix_free: Option<MatrixFree>,
}

/// Approximate the eigenfunctions from landmarks (Nyström's method), and estimate the error
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("precision", |arg| arg.default_value("f64")),
    mut_arg("landmarks", |arg| with_default(arg, "500")),
    after_help = "\
Examples:
  mercer eigen nystrom --kernel 'rbf(lengthscale=2)' --data x.npy -k 20 -o functions
  mercer eigen nystrom --kernel 'rbf()' --data x.npy --landmarks 2000 --landmark-choice rpcholesky -o functions"
)]
pub(super) struct Nystrom {
    #[command(flatten)]
    pub(super) of: OfKernel,

    #[command(flatten)]
    landmarks: LandmarksOption,

    /// How to pick
    #[arg(
        long,
        value_name = "CHOICE",
        default_value = "uniform",
        value_parser = choice::<LandmarkChoice>(),
        help_heading = "Eigenfunctions",
        long_help = "How landmarks are chosen"
    )]
    landmark_choice: LandmarkChoice,
}

/// Use random Fourier features of an rbf, Laplacian or Matérn kernel, or the features a kernel has itself
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("precision", |arg| arg.default_value("f64")),
    after_help = "\
Examples:
  mercer eigen rff --kernel 'rbf(lengthscale=2)' --data x.npy --frequencies 4000 --orthogonal -k 20 -o functions
  mercer eigen rff --net model.onnx --kernel ck --data x.npy -o functions"
)]
pub(super) struct Rff {
    #[command(flatten)]
    pub(super) of: OfKernel,

    /// Number of random Fourier features
    #[arg(long, value_name = "D", default_value_t = EigenMethod::FEATURES, help_heading = "Eigenfunctions")]
    frequencies: usize,

    /// Draw orthogonal frequencies
    #[arg(long, help_heading = "Eigenfunctions")]
    orthogonal: bool,
}

impl Exact {
    pub(super) fn job(&self) -> EigenJob {
        self.of.job(EigenMethod::Exact {})
    }
}

impl Lanczos {
    pub(super) fn job(&self) -> EigenJob {
        self.of.job(EigenMethod::Lanczos { matrix_free: self.products.matrix_free })
    }
}

impl Randomised {
    pub(super) fn job(&self) -> EigenJob {
        self.of.job(EigenMethod::Randomised { matrix_free: self.products.matrix_free })
    }
}

impl Nystrom {
    pub(super) fn job(&self) -> Result<EigenJob, Error> {
        let n = match (self.landmarks.landmarks, self.landmark_choice) {
            (Some(_), LandmarkChoice::All) => {
                return Err(Error::new(
                    "‹landmarks› is a number of samples, but ‹landmark-choice› all takes all of them",
                )
                .hint("leave one of them out"));
            }
            (given, _) => given.unwrap_or(EigenMethod::LANDMARKS),
        };
        Ok(self.of.job(EigenMethod::Nystrom { landmarks: self.landmark_choice, n }))
    }
}

impl Rff {
    pub(super) fn job(&self) -> EigenJob {
        self.of.job(EigenMethod::Rff { n: self.frequencies, orthogonal: self.orthogonal })
    }
}
