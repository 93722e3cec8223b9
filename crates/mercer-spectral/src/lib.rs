//! Eigenvalues and eigenfunctions of kernels: `κ(x, x') = Σ_j μ_j ψ_j(x) ψ_j(x')`.
//!
//! Every method returns [`Eigenfunctions`]: values, and functions that can be evaluated on new data. The functions are
//! linear combinations of a [`Basis`], `ψ(x) = b(x)·W`: sections of the kernel at landmarks (Nyström), random features,
//! or networks. Eigenvectors of a matrix, which are known only at the data, are a [`Spectrum`].
//!
//! # Conventions
//!
//! With `R` rows of the Gram matrix `K` (samples, or samples times outputs for a matrix-valued kernel) and its
//! eigenpairs `K u = λ u`, `‖u‖ = 1`,
//!
//! ```text
//! μ = λ / R        ψ(x_n) = √R · u_n        hence (1/R) Σ_n ψ_i(x_n) ψ_j(x_n) = δ_ij
//! ```
//!
//! Values descend. The sign of a function makes it positive at the first row where its magnitude is at least half of
//! its maximum. Unlike "the largest entry is positive", this rule does not flip when two entries of opposite sign are
//! equally large, as for odd functions on symmetric data. Eigenvalues within rounding are dropped. [`Repairs`] counts
//! what was dropped or clipped.
//!
//! ```
//! use mercer_data::Dataset;
//! use mercer_kernel::classic::{Classic, Formula};
//! use mercer_run::Context;
//! use mercer_spectral::{Solver, exact};
//! use std::sync::Arc;
//!
//! let x = ndarray::Array1::linspace(-1.0, 1.0, 50).insert_axis(ndarray::Axis(1));
//! let data = [Dataset::from_array("x", x.view().into_dyn())?];
//! let kernel = Classic::<f64>::new(&"rbf(lengthscale=0.5)".parse::<Formula>()?, 1)?;
//! let (functions, _) = exact(Arc::new(kernel), &data, 3, Solver::Full, &Context::new())?;
//! assert!(functions.values()[0] > functions.values()[1]);
//! // The first function has one sign, the second is odd.
//! let values = functions.eval(&[&[-0.5, 0.5]], 2)?;
//! assert!(values[[0, 0]] * values[[1, 0]] > 0.0 && values[[0, 1]] * values[[1, 1]] < 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod basis;
mod compare;
mod error;
mod exact;
mod features;
mod folder;
mod fourier;
mod functions;
mod landmarks;
pub mod learnt;
mod memory;
mod nystrom;
pub mod retrieval;
mod samples;
mod sections;
mod spectrum;
mod tangent;

pub use basis::{Basis, on_data};
pub use compare::{Comparison, HeldOut, Measured, Truth, integral_residuals};
pub use error::{Result, SpectralError};
pub use exact::{Solver, exact, extend, gram_matrix, trace};
pub use features::{Mapped, of_features};
pub use folder::{BEFORE, EigenDescription, KIND};
pub use fourier::{Density, Fourier, FourierSpec};
pub use functions::Eigenfunctions;
pub use landmarks::Landmarks;
pub use memory::MemoryNeeds;
pub use nystrom::{Measure, Nystrom, NystromFit};
pub use sections::Sections;
pub use spectrum::{Repairs, Spectrum, orient};
pub use tangent::{TangentChoice, TangentKernel, TangentMethod};
