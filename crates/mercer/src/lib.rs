//! A workbench for neural kernels: the library behind the `mercer` command.
//!
//! A network and data become a kernel, and a kernel becomes eigenfunctions, machines and uncertainties. [`door`] is the
//! short way from arrays to arrays; the `examples` folder has six programs that use it.
//!
//! ```no_run
//! use mercer::prelude::*;
//!
//! # fn main() -> Result<(), mercer::Error> {
//! # let x = ndarray::Array4::<f32>::zeros((100, 3, 32, 32));
//! # let (new, labels) = (x.clone(), vec![0; 100]);
//! let network = Network::from_onnx("model.onnx")?;
//! let kernel = KernelFn::new("normalised(trace)", &network)?; // the empirical NTK
//! let gram = kernel.gram(&x)?; // 100 × 100
//! let machine = kernel.fit(&Svm::new(1.0)?, &x, &labels[..])?; // a machine that stands in for the network
//! let classes = machine.classify(&new)?;
//! let functions = kernel.eigen(&x, 10)?; // eigenfunctions, also on new data
//! let values = functions.evaluate(&new)?; // 100 × 10
//! let posterior = mercer::posterior(&network, &x, &labels[..], Structure::LastLayerFull)?;
//! let probabilities = posterior.evaluate(&new)?.probit();
//! # Ok(())
//! # }
//! ```
//!
//! Every crate is a module here: [`net`] opens a trained network and runs it, [`kernel`] computes its tangent kernel,
//! [`spectral`] decomposes kernels, [`learn`] fits machines on them and estimates the uncertainty of a network,
//! [`report`] draws, [`data`] reads and writes data sets larger than memory, [`linalg`] is the underlying linear
//! algebra. [`job`] has the work of each command as data.

mod csv;
pub mod demo;
pub mod door;
mod error;
pub mod info;
pub mod job;
mod json;
pub mod spec;
pub mod text;

pub use door::{classify, posterior, predict, train};
pub use error::{AboutNetwork, Error, Hint, rendered};
pub use json::Json;
pub use mercer_data as data;
pub use mercer_kernel as kernel;
pub use mercer_learn as learn;
pub use mercer_lens as lens;
pub use mercer_linalg as linalg;
pub use mercer_net as net;
pub use mercer_report as report;
pub use mercer_run as run;
pub use mercer_spectral as spectral;

/// What most programs need: `use mercer::prelude::*`.
///
/// ```
/// use mercer::prelude::*;
///
/// let x = ndarray::array![[0.0], [1.0], [2.0]];
/// let machine = KernelFn::new("rbf()", None)?.fit(&Ridge::new(0.1)?, &x, &ndarray::array![0.0, 1.0, 4.0])?;
/// assert_eq!(machine.predict(&x)?.dim(), (3, 1));
/// # Ok::<(), mercer::Error>(())
/// ```
pub mod prelude {
    pub use crate::door::{Evaluate, FittedMachine, InputArrays, IntoRecipe, KernelFn, TargetArrays};
    pub use crate::job::train::TrainingSpec;
    pub use mercer_data::{Classes, Dataset, Existing, Labels, Preprocess, Source, digits, synthetic, write_npy};
    pub use mercer_kernel::gram::KeptGram;
    pub use mercer_kernel::store::Store;
    pub use mercer_kernel::{Kernel, Recipe};
    pub use mercer_learn::classification::{Glm, NearestNeighbours, Svm};
    pub use mercer_learn::laplace::{Functional, Laplace, Posterior, Structure};
    pub use mercer_learn::process::ProcessRegression;
    pub use mercer_learn::regression::{LeastSquares, Ridge};
    pub use mercer_learn::{KernelMachine, Machine, metrics};
    pub use mercer_net::Network;
    pub use mercer_net::arch::{Activation, Cnn, CnnLayer, Mlp, Residual, Resnet};
    pub use mercer_net::network::{Input, Parameter, Prediction};
    pub use mercer_run::Context;
    pub use mercer_spectral::{Eigenfunctions, Landmarks, Solver, Spectrum};
}

/// The Rust of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
