//! Settings of a Laplace approximation.

use super::likelihood::Likelihood;
use super::target::Target;
use crate::error::{Result, check_positive, setting};
use mercer_kernel::empirical::Selection;
use mercer_kernel::sketch;
use mercer_net::graph::Graph;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The form of the curvature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Structure {
    /// The whole matrix.
    Full,
    /// Its diagonal.
    Diagonal,
    /// A Kronecker product for every weight, a matrix for every bias.
    Kronecker,
    /// The whole matrix of the last layer, with the other layers fixed.
    LastLayerFull,
    /// Kronecker factors of the last layer, with the other layers fixed.
    LastLayerKronecker,
    /// The diagonal of the last layer, with the other layers fixed.
    LastLayerDiagonal,
    /// Jacobians projected to a few numbers, with the same projection for every output.
    Sketch {
        /// How they are projected.
        method: sketch::SketchMethod,
        /// To how many numbers.
        k: usize,
        /// The random seed.
        seed: u64,
        /// Whether the residual correction restores the variance that the projection misses.
        residual: bool,
    },
    /// Given features, such as scaled eigenfunctions of the tangent kernel.
    Features {
        /// Whether the residual correction restores the variance that the features miss.
        residual: bool,
    },
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Diagonal => f.write_str("diag"),
            Self::Kronecker => f.write_str("kron"),
            Self::LastLayerFull => f.write_str("last-layer-full"),
            Self::LastLayerKronecker => f.write_str("last-layer-kron"),
            Self::LastLayerDiagonal => f.write_str("last-layer-diag"),
            Self::Sketch { method, k, .. } => write!(f, "sketch ({method}:{k})"),
            Self::Features { .. } => f.write_str("eigen"),
        }
    }
}

/// The complete settings of a Laplace approximation, apart from its network and data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaplaceSettings {
    /// The form of the curvature.
    pub structure: Structure,
    /// How targets are distributed around the outputs.
    pub likelihood: Likelihood,
    /// The precision `δ` of the prior; with weight decay `λ` in a mean loss of `N` samples it is `Nλ`.
    pub prior_precision: f64,
    /// The output, or any other value of the network. The default is the first output or, for classes, the logits
    /// before its final softmax or sigmoid.
    #[serde(default)]
    pub output: Option<String>,
    /// Only the parameters whose name or layer matches one of these (`*` and `?` are wildcards); all if empty.
    #[serde(default)]
    pub parameters: Vec<String>,
    /// The size of the training set, if fewer samples are given. They then stand for the whole set: the sums over
    /// samples in curvature and likelihood are multiplied by the ratio of the sizes.
    #[serde(default)]
    pub train_size: Option<usize>,
}

impl LaplaceSettings {
    /// All parameters, the first output, unit prior.
    pub fn new(structure: Structure, likelihood: Likelihood) -> Self {
        let (output, parameters, train_size) = (None, Vec::new(), None);
        Self { structure, likelihood, prior_precision: 1.0, output, parameters, train_size }
    }

    /// With another prior.
    pub fn prior_precision(self, prior_precision: f64) -> Self {
        Self { prior_precision, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        self.likelihood.check()?;
        check_positive("the prior precision", self.prior_precision)?;
        if !self.parameters.is_empty() && self.is_last_layer() {
            let reason = "a last-layer posterior has only the parameters of the last layer";
            return Err(setting("the choice of parameters", self.parameters.join(" "), reason));
        }
        Ok(())
    }

    /// Refuses a training set size below the number of given samples.
    ///
    /// # Errors
    /// [`LearnError::Setting`](crate::LearnError::Setting).
    pub fn check_samples(&self, n_samples: usize) -> Result<()> {
        match self.train_size.filter(|&size| size < n_samples) {
            Some(size) => Err(setting("the size of the training set", size, "there are more samples than that")),
            None => Ok(()),
        }
    }

    /// The selection of the posterior, with the output by name, so that nothing depends on a default.
    ///
    /// # Errors
    /// For an output that does not exist, and for probabilities of classes whose logits cannot be found: the node is
    /// named.
    pub fn selection(&self, graph: &Graph) -> Result<Selection> {
        let output = Some(Target::new(graph, self)?.name);
        Ok(Selection { output, parameters: self.parameters.clone(), ..Selection::default() })
    }

    /// The number of outputs of the posterior.
    ///
    /// # Errors
    /// As [`selection`](Self::selection).
    pub fn n_outputs(&self, graph: &Graph) -> Result<usize> {
        Ok(graph.value(Target::new(graph, self)?.value).meta.numel())
    }

    pub(super) fn is_last_layer(&self) -> bool {
        let last = [Structure::LastLayerFull, Structure::LastLayerKronecker, Structure::LastLayerDiagonal];
        last.contains(&self.structure)
    }
}
