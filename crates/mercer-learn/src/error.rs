//! Errors of this crate.

use crate::samples::SampleKind;

/// An error of this crate. It names the setting, row, class or file concerned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// An input that is not finite or not symmetric, or a solve that failed.
    #[error(transparent)]
    Algebra(#[from] mercer_linalg::LinalgError),
    /// Data could not be read, or a file could not be written.
    #[error(transparent)]
    Data(Box<mercer_data::DataError>),
    /// A kernel could not be computed.
    #[error(transparent)]
    Kernel(Box<mercer_kernel::KernelError>),
    /// A network could not be run.
    #[error(transparent)]
    Network(Box<mercer_net::NetError>),
    /// An invalid setting.
    #[error("{name} is {value}, but {reason}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        reason: &'static str,
    },
    /// Two sizes that should agree do not.
    #[error("{what} should be {expected}, but is {found}")]
    Shape {
        /// What was counted.
        what: &'static str,
        /// The size that was expected.
        expected: usize,
        /// The size that was given.
        found: usize,
    },
    /// There are no samples to fit or to evaluate.
    #[error("{what}: there are no samples")]
    Empty {
        /// What is empty.
        what: &'static str,
    },
    /// All samples belong to one class, so there is no boundary.
    #[error("all samples belong to the class {class}, but a classifier needs samples of at least two classes")]
    OneClass {
        /// The name of the class.
        class: String,
    },
    /// A machine for two classes was given more.
    #[error("this machine separates two classes, but the labels have {found}; use a machine for several classes")]
    NotBinary {
        /// The number of classes.
        found: usize,
    },
    /// A class has too few samples for what is asked.
    #[error("the class {class} has {count} of the {needed} samples that {what} needs")]
    TooFew {
        /// The name of the class.
        class: String,
        /// How many samples it has.
        count: usize,
        /// How many are needed.
        needed: usize,
        /// What needs them.
        what: &'static str,
    },
    /// A class that does not exist.
    #[error("sample {row} is of class {class}, but there are {n_classes} classes")]
    Class {
        /// The sample.
        row: usize,
        /// Its class.
        class: usize,
        /// The number of classes.
        n_classes: usize,
    },
    /// A machine fitted on one kind of samples was given the other kind.
    #[error("the machine was fitted on {fitted}, but was given {given}")]
    Basis {
        /// What it was fitted on.
        fitted: SampleKind,
        /// What it was given.
        given: SampleKind,
    },
    /// An iteration did not converge.
    #[error("{solver}: not converged after {iterations} iterations: the {measure} is {reached:.3e}, above {goal:.1e}")]
    NotConverged {
        /// The solver.
        solver: &'static str,
        /// What was measured.
        measure: &'static str,
        /// The value reached.
        reached: f64,
        /// The tolerance.
        goal: f64,
        /// The number of iterations.
        iterations: usize,
    },
    /// More memory is needed than is allowed.
    #[error(
        "the {what} posterior decomposes a matrix of side {side} and needs {needed} bytes in all, but only {allowed} are allowed; {instead}"
    )]
    Memory {
        /// The structure.
        what: String,
        /// The side of its largest matrix.
        side: usize,
        /// What it takes.
        needed: usize,
        /// What may be used.
        allowed: usize,
        /// What needs less memory.
        instead: &'static str,
    },
    /// A measure that is undefined for these numbers.
    #[error("{metric} is not defined: {reason}")]
    Undefined {
        /// The measure.
        metric: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// Numbers that overflowed while they were fitted.
    #[error(
        "the fit overflowed: some numbers in its {what} are not finite; rescale the data, the kernel or the targets"
    )]
    NotFinite {
        /// What is not finite.
        what: &'static str,
    },
}

impl From<mercer_data::DataError> for LearnError {
    fn from(error: mercer_data::DataError) -> Self {
        Self::Data(Box::new(error))
    }
}

impl From<mercer_kernel::KernelError> for LearnError {
    fn from(error: mercer_kernel::KernelError) -> Self {
        Self::Kernel(Box::new(error))
    }
}

impl From<mercer_net::NetError> for LearnError {
    fn from(error: mercer_net::NetError) -> Self {
        Self::Network(Box::new(error))
    }
}

/// The result type of this crate.
pub type Result<T, E = LearnError> = std::result::Result<T, E>;

/// Returns an error unless two sizes agree.
pub(crate) fn check_size(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(LearnError::Shape { what, expected, found }) }
}

/// Returns an error unless a setting is a finite positive number.
pub(crate) fn check_positive(name: &'static str, value: f64) -> Result<f64> {
    let reason = "it must be a finite number above zero";
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(setting(name, value, reason)) }
}

/// Returns an error unless a setting is a finite nonnegative number.
pub(crate) fn check_not_negative(name: &'static str, value: f64) -> Result<f64> {
    let reason = "it must be a finite number, zero or above";
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(setting(name, value, reason)) }
}

pub(crate) fn setting(name: &'static str, value: impl ToString, reason: &'static str) -> LearnError {
    LearnError::Setting { name, value: value.to_string(), reason }
}

impl From<mercer_run::Cancelled> for LearnError {
    fn from(_: mercer_run::Cancelled) -> Self {
        mercer_kernel::KernelError::Cancelled.into()
    }
}
