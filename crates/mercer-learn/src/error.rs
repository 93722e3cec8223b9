//! What can go wrong with a machine.

use crate::samples::Basis;

/// An error of this crate. It names the setting, the row, the class or the file it speaks of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// An input that is not finite or not symmetric, or a solve that failed.
    #[error(transparent)]
    Algebra(#[from] mercer_linalg::Error),
    /// Data could not be read, or a file could not be written.
    #[error(transparent)]
    Data(Box<mercer_data::Error>),
    /// A kernel could not be computed.
    #[error(transparent)]
    Kernel(Box<mercer_kernel::KernelError>),
    /// A network could not be run.
    #[error(transparent)]
    Network(Box<mercer_net::NetError>),
    /// A setting that makes no sense.
    #[error("{name} is {value}, but {reason}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What it should be.
        reason: &'static str,
    },
    /// Two sizes that should agree do not.
    #[error("{what} should be {expected}, but is {found}")]
    Shape {
        /// What was counted.
        what: &'static str,
        /// The size that fits.
        expected: usize,
        /// The size that was given.
        found: usize,
    },
    /// Nothing to learn from, or to judge by.
    #[error("{what}: there are no samples")]
    Empty {
        /// What is empty.
        what: &'static str,
    },
    /// All samples are of one class: there is no boundary to be found.
    #[error("all samples are of the class {class}; a classifier needs at least two classes among its samples")]
    OneClass {
        /// The name of the class.
        class: String,
    },
    /// A machine for two classes met more.
    #[error("this machine separates two classes, but the labels have {found}; use one for many classes")]
    NotBinary {
        /// How many there are.
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
    /// A machine fitted on one kind of samples was given the other.
    #[error("the machine was fitted on {fitted}, but is given {given}")]
    Basis {
        /// What it was fitted on.
        fitted: Basis,
        /// What it should predict from.
        given: Basis,
    },
    /// An iteration ended before it came to its goal.
    #[error("{solver}: the {measure} is {reached:.3e} after {iterations} iterations, not yet {goal:.1e}")]
    NotConverged {
        /// What iterated.
        solver: &'static str,
        /// What was measured.
        measure: &'static str,
        /// What it became.
        reached: f64,
        /// What it should have become.
        goal: f64,
        /// How long it took.
        iterations: usize,
    },
    /// More memory is needed than is allowed.
    #[error(
        "the {what} posterior takes a matrix of side {side} apart, {needed} bytes in all, but {allowed} are allowed; {instead}"
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
        /// What takes less.
        instead: &'static str,
    },
    /// A measure that has no value for these numbers.
    #[error("{metric} is not defined: {reason}")]
    Undefined {
        /// The measure.
        metric: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// Numbers that overflowed while they were fitted.
    #[error("the fit overflows: numbers in its {what} are not finite; scale the data, the kernel or the targets")]
    NotFinite {
        /// What is not finite.
        what: &'static str,
    },
}

impl From<mercer_data::Error> for LearnError {
    fn from(error: mercer_data::Error) -> Self {
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

/// The result of this crate's fallible calls.
pub type Result<T, E = LearnError> = std::result::Result<T, E>;

/// An error unless two sizes agree.
pub(crate) fn check_size(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(LearnError::Shape { what, expected, found }) }
}

/// An error unless a setting is a finite number above zero.
pub(crate) fn check_positive(name: &'static str, value: f64) -> Result<f64> {
    let reason = "it must be a finite number above zero";
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(setting(name, value, reason)) }
}

/// An error unless a setting is a finite number that is not negative.
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
