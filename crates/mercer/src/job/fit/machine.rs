//! The machines by name, and the settings of each.

use crate::Error;
use mercer_learn::classification::By;
use serde::{Deserialize, Serialize};

/// The machines, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

mercer_run::named! {
    MachineName, "machine":
    Ridge = "ridge", "Kernel ridge regression";
    LeastSquares = "least-squares", "Least squares by the pseudo-inverse";
    Flow = "flow", "Gradient flow from zero, stopped early";
    Process = "process", "Gaussian process regression";
    Glm = "glm", "Multinomial logistic regression on kernel rows or features (a linear probe)";
    Sgd = "sgd", "One-vs-rest logistic regression by stochastic gradient descent";
    Logistic = "logistic", "Kernel logistic regression for two classes";
    Svm = "svm", "Support vector machines, one-vs-rest";
    ProcessClassifier = "process-classifier", "Gaussian process classification (Laplace approximation)";
    Neighbours = "neighbours", "Votes of the nearest neighbours";
    Centres = "centres", "Nearest class mean";
}

impl MachineName {
    /// Whether it predicts classes; the others predict numbers.
    pub fn is_classifier(self) -> bool {
        !matches!(self, Self::Ridge | Self::LeastSquares | Self::Flow | Self::Process)
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

mercer_run::named! {
    Link, "link":
    Sigmoids = "sigmoids", "Sigmoids of the scores, normalised to sum to one";
    Softmax = "softmax", "The softmax of the scores";
}

/// A machine with its settings. A setting that is left out has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MachineSpec {
    /// Kernel ridge regression.
    Ridge {
        /// The penalty; of several, the best by leave-one-out.
        #[serde(default = "one")]
        penalty: Vec<f64>,
        /// Solve by conjugate gradients with a preconditioner of this rank.
        #[serde(default)]
        rank: Option<usize>,
        /// Subtract the mean of the targets before the fit.
        #[serde(default)]
        centred: bool,
    },
    /// Least squares through the pseudo-inverse.
    LeastSquares {
        /// Drop singular values below this fraction of the largest.
        #[serde(default)]
        cutoff: Option<f64>,
    },
    /// Gradient flow.
    Flow {
        /// The time at which to stop, as learning rate × steps; required.
        #[serde(default)]
        time: Option<f64>,
    },
    /// Gaussian process regression.
    Process {
        /// The variance of the noise.
        #[serde(default = "usual_noise")]
        noise_variance: f64,
        /// Subtract the mean of the targets before the fit.
        #[serde(default)]
        centred: bool,
        /// Maximise the marginal likelihood over the parameters of the kernel and the noise, from their given values.
        #[serde(default)]
        tune: bool,
    },
    /// Multinomial logistic regression.
    Glm {
        /// The penalty, scikit-learn's 1/C; of several, the best by cross-validation.
        #[serde(default = "one")]
        penalty: Vec<f64>,
        /// The folds of cross-validation.
        #[serde(default = "usual_folds")]
        folds: usize,
        /// Weight the samples so that every class counts the same.
        #[serde(default)]
        balanced: bool,
    },
    /// One class against the others by stochastic gradient descent.
    Sgd {
        /// The penalty, scikit-learn's alpha; of several, the best by cross-validation.
        #[serde(default = "penalty_of_descent")]
        penalty: Vec<f64>,
        /// The folds of cross-validation.
        #[serde(default = "usual_folds")]
        folds: usize,
        /// How scores become probabilities.
        #[serde(default)]
        link: Link,
    },
    /// Logistic regression of two classes.
    Logistic {
        /// The penalty, scikit-learn's 1/C; of several, the best by cross-validation.
        #[serde(default = "one")]
        penalty: Vec<f64>,
        /// The folds of cross-validation.
        #[serde(default = "usual_folds")]
        folds: usize,
    },
    /// Support vector machines.
    Svm {
        /// The cost C of a sample on the wrong side of the margin; of several, the best by cross-validation.
        #[serde(default = "one")]
        cost: Vec<f64>,
        /// The folds of cross-validation.
        #[serde(default = "usual_folds")]
        folds: usize,
    },
    /// Gaussian process classification.
    ProcessClassifier {},
    /// Votes of nearest neighbours.
    Neighbours {
        /// The number of neighbours that vote.
        #[serde(default = "usual_neighbours")]
        neighbours: usize,
        /// The distance that defines neighbours.
        #[serde(default)]
        by: By,
    },
    /// Nearest class mean.
    Centres {},
}

fn one() -> Vec<f64> {
    vec![1.0]
}

fn usual_folds() -> usize {
    5
}

fn usual_noise() -> f64 {
    0.1
}

fn penalty_of_descent() -> Vec<f64> {
    vec![1e-2]
}

fn usual_neighbours() -> usize {
    5
}

impl From<MachineName> for MachineSpec {
    /// With the default of every setting.
    fn from(name: MachineName) -> Self {
        match name {
            MachineName::Ridge => Self::Ridge { penalty: one(), rank: None, centred: false },
            MachineName::LeastSquares => Self::LeastSquares { cutoff: None },
            MachineName::Flow => Self::Flow { time: None },
            MachineName::Process => Self::Process { noise_variance: usual_noise(), centred: false, tune: false },
            MachineName::Glm => Self::Glm { penalty: one(), folds: usual_folds(), balanced: false },
            MachineName::Sgd => {
                Self::Sgd { penalty: penalty_of_descent(), folds: usual_folds(), link: Link::default() }
            }
            MachineName::Logistic => Self::Logistic { penalty: one(), folds: usual_folds() },
            MachineName::Svm => Self::Svm { cost: one(), folds: usual_folds() },
            MachineName::ProcessClassifier => Self::ProcessClassifier {},
            MachineName::Neighbours => Self::Neighbours { neighbours: usual_neighbours(), by: By::default() },
            MachineName::Centres => Self::Centres {},
        }
    }
}

impl MachineSpec {
    /// The machine.
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

    /// The strengths to choose from, and the name of their setting.
    fn strengths(&self) -> Option<(&'static str, &[f64])> {
        match self {
            Self::Ridge { penalty, .. }
            | Self::Glm { penalty, .. }
            | Self::Sgd { penalty, .. }
            | Self::Logistic { penalty, .. } => Some(("penalty", penalty)),
            Self::Svm { cost, .. } => Some(("cost", cost)),
            _ => None,
        }
    }

    /// Whether the strength of its penalty is chosen from several.
    pub(super) fn is_selected(&self) -> bool {
        self.strengths().is_some_and(|(_, values)| values.len() > 1)
    }

    /// Rejects settings that contradict each other.
    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some((setting, [])) = self.strengths() {
            return Err(Error::new(format!("‹{setting}› has no value")));
        }
        match self {
            Self::Flow { time: None } => {
                Err(Error::new("flow needs a time to stop at").hint("‹time› T, as learning rate × steps"))
            }
            Self::Ridge { rank: Some(_), .. } if self.is_selected() => {
                Err(Error::new("‹penalty›: conjugate gradients (‹rank›) take one value")
                    .hint("leave ‹rank› out to try several"))
            }
            _ => Ok(()),
        }
    }
}

/// The matrices that a solver holds beside the rows.
pub(super) struct Held {
    /// Of the shape of the rows.
    pub(super) rows: usize,
    /// With a row and a column per sample, beside the Gram matrix.
    pub(super) squares: usize,
    /// Whether features become a Gram matrix first.
    pub(super) forms_gram: bool,
}

impl MachineSpec {
    /// Counted from the arrays that each solver allocates.
    pub(super) fn held(&self, n_classes: usize) -> Held {
        let gram = |squares: usize| Held { rows: 0, squares, forms_gram: true };
        match self {
            Self::Ridge { .. } if self.is_selected() => Held { rows: DECOMPOSED, squares: 0, forms_gram: false },
            Self::LeastSquares { .. } | Self::Flow { .. } => Held { rows: DECOMPOSED, squares: 0, forms_gram: false },
            Self::Ridge { .. } => gram(2),
            Self::Process { tune, .. } => gram(if *tune { 6 } else { 2 }),
            Self::Glm { .. } | Self::Sgd { .. } => Held { rows: 1, squares: 0, forms_gram: false },
            Self::Svm { .. } => gram(0),
            Self::Logistic { .. } => gram(4),
            // One for each class and their sum, twice while they are made.
            Self::ProcessClassifier {} if n_classes > 2 => gram(n_classes + 5),
            Self::ProcessClassifier {} => gram(4),
            Self::Neighbours { .. } => Held { rows: 1, squares: 0, forms_gram: false },
            Self::Centres {} => Held { rows: 0, squares: 0, forms_gram: false },
        }
    }
}

/// For a full decomposition: the scaled copy, the work space, the vectors, and their ordered copy.
const DECOMPOSED: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use mercer_run::names::Named;

    /// Every name is read as it is written, and stands for a machine of that name, in JSON, too.
    #[test]
    fn machines_have_one_name() {
        for &(machine, name, _) in MachineName::CHOICES {
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
