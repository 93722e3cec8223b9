//! Repairs that make a problem solvable. Nothing is repaired silently.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A repair, kept with its machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repair {
    /// Jitter was added to the diagonal of a matrix that was singular up to rounding.
    Jitter {
        /// What was added.
        added: f64,
        /// The same relative to the mean of the diagonal.
        relative: f64,
    },
    /// Directions below a cut-off were dropped from a pseudo-inverse.
    Truncated {
        /// How many were kept.
        kept: usize,
        /// Of how many.
        of: usize,
        /// The smallest singular value or eigenvalue that would be kept, relative to the largest.
        cutoff: f64,
    },
    /// Eigenvalues of a kernel that rounding had made negative were set to zero.
    Clipped {
        /// How many.
        count: usize,
        /// The most negative.
        least: f64,
    },
    /// A target is constant: the machine predicts its value.
    ConstantTarget {
        /// The column of the target.
        column: usize,
    },
    /// A class has no samples, so the machine never predicts it.
    AbsentClass {
        /// The name of the class.
        class: String,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jitter { added, relative } => {
                write!(
                    f,
                    "{added:.3e} was added to the diagonal ({relative:.0e} of its mean), because the matrix is singular up to rounding"
                )
            }
            Self::Truncated { kept, of, cutoff } => {
                write!(f, "{kept} of {of} directions are above {cutoff:.1e} of the largest; the others were dropped")
            }
            Self::Clipped { count, least } => {
                write!(f, "{count} negative eigenvalues, down to {least:.3e}, were set to zero")
            }
            Self::ConstantTarget { column } => write!(f, "target {column} is constant"),
            Self::AbsentClass { class } => write!(f, "the class {class} has no samples and is never predicted"),
        }
    }
}

/// The jitter of a Cholesky factorisation, if there was any.
pub(crate) fn jitter(factor: &mercer_linalg::Cholesky<f64>) -> Option<Repair> {
    (factor.jitter > 0.0).then_some(Repair::Jitter { added: factor.jitter, relative: factor.relative_jitter })
}
