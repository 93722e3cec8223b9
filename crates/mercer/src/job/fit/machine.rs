//! The machines by name, and the settings of each.

use crate::Error;
use mercer_learn::classification::By;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The machines, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum MachineName {
    /// Kernel ridge regression.
    Ridge,
    /// Least squares through the pseudo-inverse.
    LeastSquares,
    /// Gradient flow from zero, stopped at a time.
    Flow,
    /// Gaussian process regression.
    Process,
    /// Multinomial logistic regression in kernel rows or features.
    Glm,
    /// One class against the others by stochastic gradient descent.
    Sgd,
    /// Logistic regression of two classes in the kernel's space.
    Logistic,
    /// Support vector machines, one class against the others.
    Svm,
    /// Gaussian process classification.
    ProcessClassifier,
    /// Votes of nearest neighbours.
    Neighbours,
    /// Nearest class mean.
    Centres,
}

impl MachineName {
    /// All of them, as they are written, with what they are.
    pub const ALL: [(Self, &'static str, &'static str); 11] = [
        (Self::Ridge, "ridge", "Kernel ridge regression"),
        (Self::LeastSquares, "least-squares", "Least squares through the pseudo-inverse"),
        (Self::Flow, "flow", "Gradient flow from zero, stopped at a time"),
        (Self::Process, "process", "Gaussian process regression"),
        (Self::Glm, "glm", "Multinomial logistic regression in kernel rows or features"),
        (Self::Sgd, "sgd", "One class against the others by stochastic gradient descent"),
        (Self::Logistic, "logistic", "Logistic regression of two classes in the kernel's space"),
        (Self::Svm, "svm", "Support vector machines, one class against the others"),
        (Self::ProcessClassifier, "process-classifier", "Gaussian process classification"),
        (Self::Neighbours, "neighbours", "Votes of nearest neighbours"),
        (Self::Centres, "centres", "Nearest class mean"),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(machine, ..)| *machine == self).map_or("", |(_, name, _)| name)
    }

    /// Whether it tells classes apart; the others predict numbers.
    pub fn is_classifier(self) -> bool {
        !matches!(self, Self::Ridge | Self::LeastSquares | Self::Flow | Self::Process)
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for MachineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name, _)| *name == text).map(|(machine, ..)| *machine);
        let names = || Self::ALL.map(|(_, name, _)| name).join(", ");
        found.ok_or_else(|| format!("there is no machine `{text}`; machines are {}", names()))
    }
}

impl From<MachineName> for String {
    fn from(machine: MachineName) -> Self {
        machine.to_string()
    }
}

impl TryFrom<String> for MachineName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// How the scores of several classes become probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// Sigmoids that are made to sum to one.
    #[default]
    Sigmoids,
    /// The softmax of the scores.
    Softmax,
}

/// A machine with its settings. What is not said is the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MachineSpec {
    /// Kernel ridge regression.
    Ridge {
        /// The penalty; of several the best by leave-one-out.
        #[serde(default = "one_penalty")]
        alpha: Vec<f64>,
        /// Solve by conjugate gradients with a preconditioner of this rank.
        #[serde(default)]
        rank: Option<usize>,
        /// Fit what the targets differ from their mean by.
        #[serde(default)]
        centred: bool,
    },
    /// Least squares through the pseudo-inverse.
    LeastSquares {
        /// Leave out directions below this share of the largest.
        #[serde(default)]
        cutoff: Option<f64>,
    },
    /// Gradient flow.
    Flow {
        /// When to stop, as learning rate × steps; it must be said.
        #[serde(default)]
        time: Option<f64>,
    },
    /// Gaussian process regression.
    Process {
        /// The variance of the noise.
        #[serde(default = "usual_noise")]
        noise: f64,
        /// Fit what the targets differ from their mean by.
        #[serde(default)]
        centred: bool,
        /// Find the parameters of the kernel and the noise by marginal likelihood, from where they are.
        #[serde(default)]
        tune: bool,
    },
    /// Multinomial logistic regression.
    Glm {
        /// The penalty, scikit-learn's 1/C.
        #[serde(default = "one")]
        penalty: f64,
        /// Every class counts the same.
        #[serde(default)]
        balanced: bool,
    },
    /// One class against the others by stochastic gradient descent.
    Sgd {
        /// The penalty.
        #[serde(default = "penalty_of_descent")]
        alpha: f64,
        /// How scores become probabilities.
        #[serde(default)]
        link: Link,
    },
    /// Logistic regression of two classes.
    Logistic {
        /// The penalty, scikit-learn's 1/C.
        #[serde(default = "one")]
        penalty: f64,
    },
    /// Support vector machines.
    Svm {
        /// What a sample on the wrong side costs, C.
        #[serde(default = "one")]
        cost: f64,
    },
    /// Gaussian process classification.
    ProcessClassifier {},
    /// Votes of nearest neighbours.
    Neighbours {
        /// How many vote.
        #[serde(default = "usual_neighbours")]
        neighbours: usize,
        /// What makes a neighbour.
        #[serde(default)]
        by: By,
    },
    /// Nearest class mean.
    Centres {},
}

fn one() -> f64 {
    1.0
}

fn one_penalty() -> Vec<f64> {
    vec![1.0]
}

fn usual_noise() -> f64 {
    0.1
}

fn penalty_of_descent() -> f64 {
    1e-2
}

fn usual_neighbours() -> usize {
    5
}

impl From<MachineName> for MachineSpec {
    /// With the default of every setting.
    fn from(name: MachineName) -> Self {
        match name {
            MachineName::Ridge => Self::Ridge { alpha: one_penalty(), rank: None, centred: false },
            MachineName::LeastSquares => Self::LeastSquares { cutoff: None },
            MachineName::Flow => Self::Flow { time: None },
            MachineName::Process => Self::Process { noise: usual_noise(), centred: false, tune: false },
            MachineName::Glm => Self::Glm { penalty: one(), balanced: false },
            MachineName::Sgd => Self::Sgd { alpha: penalty_of_descent(), link: Link::default() },
            MachineName::Logistic => Self::Logistic { penalty: one() },
            MachineName::Svm => Self::Svm { cost: one() },
            MachineName::ProcessClassifier => Self::ProcessClassifier {},
            MachineName::Neighbours => Self::Neighbours { neighbours: usual_neighbours(), by: By::default() },
            MachineName::Centres => Self::Centres {},
        }
    }
}

impl MachineSpec {
    /// Which machine.
    pub fn name(&self) -> MachineName {
        match self {
            Self::Ridge { .. } => MachineName::Ridge,
            Self::LeastSquares { .. } => MachineName::LeastSquares,
            Self::Flow { .. } => MachineName::Flow,
            Self::Process { .. } => MachineName::Process,
            Self::Glm { .. } => MachineName::Glm,
            Self::Sgd { .. } => MachineName::Sgd,
            Self::Logistic { .. } => MachineName::Logistic,
            Self::Svm { .. } => MachineName::Svm,
            Self::ProcessClassifier {} => MachineName::ProcessClassifier,
            Self::Neighbours { .. } => MachineName::Neighbours,
            Self::Centres {} => MachineName::Centres,
        }
    }

    /// Whether its kernel is to be tuned.
    pub fn is_tuned(&self) -> bool {
        matches!(self, Self::Process { tune: true, .. })
    }

    /// Settings that mean nothing together are refused instead of ignored.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Flow { time: None } => {
                Err(Error::new("flow: when to stop?").hint("‹time› T, as learning rate × steps"))
            }
            Self::Ridge { alpha, .. } if alpha.is_empty() => Err(Error::new("‹alpha›: there is none")),
            Self::Ridge { alpha, rank: Some(_), .. } if alpha.len() > 1 => {
                Err(Error::new("‹alpha›: one, for conjugate gradients").hint("leave ‹rank› out to try several"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name is read as it is written, and stands for a machine of that name, in JSON, too.
    #[test]
    fn machines_have_one_name() {
        for (machine, name, _) in MachineName::ALL {
            assert_eq!(name.parse(), Ok(machine));
            let spec = MachineSpec::from(machine);
            assert_eq!((spec.name(), machine.to_string()), (machine, name.to_owned()));
            // A record is complete, and defaults are those of the name.
            let json = serde_json::to_value(&spec).unwrap();
            assert_eq!(json["name"], name);
            assert_eq!(serde_json::from_value::<MachineSpec>(json).unwrap(), spec);
            let bare = serde_json::json!({ "name": name });
            assert_eq!(serde_json::from_value::<MachineSpec>(bare).unwrap(), spec);
        }
        for wrong in [r#"{"name": "svm", "alpha": 1}"#, r#"{"name": "svn"}"#, r#"{"name": "centres", "cost": 1}"#] {
            assert!(serde_json::from_str::<MachineSpec>(wrong).is_err(), "{wrong}");
        }
    }
}
