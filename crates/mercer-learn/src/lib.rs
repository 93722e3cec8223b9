//! Machines on kernels: regression, classification, uncertainty, metrics.
//!
//! A machine is fitted on [`Samples`]: a Gram matrix, or features, which may be eigenfunctions or a network's own. Settings
//! are checked when they are made and [fitted](Fit) into a machine that [predicts](Predict); a machine that is not fitted
//! has no type. What had to be repaired on the way (jitter, cut directions, absent classes) is part of the machine.
//!
//! [`metrics`] says how good it is.

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
pub mod selection;
mod softmax;
mod traits;

pub use classes::ClassSet;
pub use error::{LearnError, Result};
pub use kernel_machine::{KernelMachine, Rows};
pub use linear::{Linear, LinearClassifier, Link, Solved};
pub use machine::Machine;
pub use minimise::{Minimise, Minimum, Precondition};
pub use repair::Repair;
pub use samples::{Basis, Samples};
pub use softmax::{log_softmax, softmax};
pub use traits::{Classify, Fit, Predict};
