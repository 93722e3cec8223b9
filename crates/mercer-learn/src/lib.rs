//! Machines on kernels: regression, classification, uncertainty, metrics.
//!
//! A machine is fitted on [`Samples`]: a Gram matrix, or features, which may be eigenfunctions or those of a network.
//! Settings are checked on construction. [Fitting](Fit) turns them into a machine that [predicts](Predict); an unfitted
//! machine does not exist as a type. Repairs (jitter, dropped directions, absent classes) are part of the machine.
//!
//! [`metrics`] measures its quality.

mod arrays;
mod classes;
pub mod classification;
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
mod softmax;
mod traits;

pub use classes::ClassSet;
pub use error::{LearnError, Result};
pub use kernel_machine::{KernelMachine, Rows};
pub use linear::{Linear, LinearClassifier, ScoreLink, Solved};
pub use machine::Machine;
pub use minimise::{Minimise, Minimum, Precondition};
pub use repair::Repair;
pub use samples::{SampleKind, Samples};
pub use softmax::{log_softmax, softmax};
pub use traits::{Classify, Fit, Predict};
