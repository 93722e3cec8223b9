//! Machines on kernels: regression, classification, uncertainty, metrics.
//!
//! A machine is fitted on [`SampleRows`]: a Gram matrix, or features, which may be eigenfunctions or those of a network.
//! Settings are checked on construction. [Fitting](Fit) turns them into a machine that [predicts](Predict); an unfitted
//! machine does not exist as a type. Repairs (jitter, dropped directions, absent classes) are part of the machine.
//!
//! [`metrics`] measures its quality.
//!
//! ```
//! use mercer_learn::regression::Ridge;
//! use mercer_learn::{Fit, Predict, SampleRows};
//! use ndarray::array;
//!
//! let features = array![[0.0], [1.0], [2.0]];
//! let machine = Ridge::new(1e-9)?.fit(&SampleRows::Features(features.view()), &array![[0.0], [3.0], [6.0]])?;
//! let new = machine.predict(&SampleRows::Features(array![[5.0]].view()))?;
//! assert!((new[[0, 0]] - 15.0).abs() < 1e-6);
//! # Ok::<(), mercer_learn::LearnError>(())
//! ```

mod arrays;
mod classes;
pub mod classification;
pub mod conformal;
pub mod ensemble;
mod error;
mod kernel_machine;
pub mod laplace;
mod linear;
mod machine;
pub mod metrics;
mod minimise;
mod normal;
pub mod process;
pub mod regression;
mod repair;
mod samples;
pub mod selection;
mod softmax;
pub mod surrogate;
mod traits;

pub use classes::ClassSet;
pub use error::{LearnError, Result};
pub use kernel_machine::{KernelMachine, Rows};
pub use linear::{Linear, LinearClassifier, ScoreLink, Solved};
pub use machine::Machine;
pub use minimise::{Minimise, Minimum, Precondition};
pub use repair::Repair;
pub use samples::{SampleKind, SampleRows};
pub use softmax::{log_softmax, softmax};
pub use traits::{Classify, Fit, Predict};
