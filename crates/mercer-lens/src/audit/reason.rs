//! Reasons in plain words.

use serde::Serialize;
use std::fmt;

/// Why a sample looks wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// Most of the nearest samples are of another class.
    Neighbours {
        /// How many are of that class.
        count: usize,
        /// How many were looked at.
        of: usize,
        /// The class.
        class: usize,
    },
    /// A model that has not seen the sample finds its label unlikely.
    Probability {
        /// The probability of its label.
        probability: f64,
        /// The most probable class.
        class: usize,
        /// The probability of that class.
        best: f64,
    },
    /// Leave-one-out scores prefer another class.
    LeaveOneOut {
        /// The preferred class.
        class: usize,
        /// By how much.
        margin: f64,
    },
    /// A copy of the sample has another label.
    Duplicate {
        /// The copy.
        index: usize,
        /// Its label.
        label: usize,
        /// Whether it is an exact copy.
        exact: bool,
    },
    /// A score is among the highest.
    Score {
        /// The name of the score.
        name: String,
        /// Its value.
        score: f64,
        /// Its place, from 1 for the highest.
        place: usize,
        /// The number of samples.
        of: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Neighbours { count, of, class } => write!(f, "{count} of {of} nearest samples are of class {class}"),
            Self::Probability { probability, class, best } => {
                write!(f, "out-of-fold probability of its label is {probability:.2}, of class {class} {best:.2}")
            }
            Self::LeaveOneOut { class, margin } => {
                write!(f, "without it, class {class} scores {margin:.2} higher than its label")
            }
            Self::Duplicate { index, label, exact } => {
                let kind = if *exact { "exact" } else { "near" };
                write!(f, "{kind} duplicate of sample {index}, which is labelled {label}")
            }
            Self::Score { name, score, place, of } => write!(f, "{name} is {score:.3}, number {place} of {of}"),
        }
    }
}
