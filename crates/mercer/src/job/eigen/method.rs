//! How eigenfunctions are found.

use crate::spec::{DataRef, Precision};
use mercer_spectral::learnt::{Augmentation, LearningMethod, Nesting};
use mercer_spectral::{Landmarks, Solver, TangentMethod};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A method, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EigenMethod {
    /// All of the matrix.
    Exact {},
    /// The largest part of the matrix, to convergence.
    Lanczos {
        /// Whether products with a tangent kernel do without its matrix; what is cheaper, or fits, if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matrix_free: Option<MatrixFree>,
    },
    /// Five products with a block.
    Randomised {
        /// As for Lanczos.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matrix_free: Option<MatrixFree>,
    },
    /// From landmarks.
    Nystrom {
        /// Which samples they are.
        landmarks: LandmarkChoice,
        /// How many, unless they are all.
        n: usize,
    },
    /// Random Fourier features of a classic kernel, or the features that a kernel has.
    Rff {
        /// How many Fourier features.
        n: usize,
        /// With orthogonal directions.
        #[serde(default)]
        orthogonal: bool,
    },
    /// One network per function, by spectral inference.
    Spin {
        /// How they learn.
        learning: LearnSpec,
    },
    /// One network per function.
    Neuralef {
        /// How they learn.
        learning: LearnSpec,
        /// What they learn.
        objective: Objective,
    },
    /// One network with all functions.
    Shared {
        /// How it learns.
        learning: LearnSpec,
        /// What it learns.
        objective: Objective,
    },
    /// One network with all functions of pairs of views, which stand for a kernel.
    Contrastive {
        /// How it learns.
        learning: LearnSpec,
        /// What it learns.
        objective: Objective,
        /// Where the pairs come from.
        views: Views,
    },
}

/// When a matrix is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatrixFree {
    /// What needs fewer operations, or fits; it is told.
    Auto,
    /// It is not made.
    Always,
    /// It is made.
    Never,
}

mercer_run::named! {
    MatrixFree, "choice":
    Auto = "auto", "Whichever needs fewer operations, or fits into memory";
    Always = "always", "Never form the matrix";
    Never = "never", "Form the matrix";
}

impl MatrixFree {
    /// The way that is taken whatever it costs.
    pub(super) fn way(self) -> Option<TangentMethod> {
        match self {
            Self::Auto => None,
            Self::Always => Some(TangentMethod::Products),
            Self::Never => Some(TangentMethod::Matrix),
        }
    }
}

/// Which samples are landmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LandmarkChoice {
    /// All of them.
    All,
    /// Drawn at random.
    Uniform,
    /// Far from each other.
    #[serde(rename = "k-means++")]
    KMeansPlusPlus,
    /// By randomly pivoted Cholesky decomposition.
    Rpcholesky,
}

mercer_run::named! {
    LandmarkChoice, "choice of landmarks":
    All = "all", "All samples";
    Uniform = "uniform", "Drawn uniformly at random";
    KMeansPlusPlus = "k-means++", "Far from each other";
    Rpcholesky = "rpcholesky", "By randomly pivoted Cholesky decomposition";
}

impl LandmarkChoice {
    pub(super) fn landmarks(self, n: usize) -> Landmarks {
        match self {
            Self::All => Landmarks::All,
            Self::Uniform => Landmarks::Uniform(n),
            Self::KMeansPlusPlus => Landmarks::KMeansPlusPlus(n),
            Self::Rpcholesky => Landmarks::PivotedCholesky(n),
        }
    }
}

/// What functions are trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// NeuralEF's.
    Game,
    /// A nested low-rank approximation, function by function.
    Sequential,
    /// A nested low-rank approximation, all at once.
    Joint,
    /// A low-rank approximation that is not nested.
    Unordered,
}

mercer_run::named! {
    Objective, "objective":
    Game = "game", "NeuralEF's objective";
    Sequential = "sequential", "Nested low-rank approximation, one function after the other";
    Joint = "joint", "Nested low-rank approximation, all functions at once";
    Unordered = "unordered", "Low-rank approximation without an order";
}

impl Objective {
    /// What suits pairs of views: the order of the codes is learnt with them. On MNIST, after the finish, codes of four numbers are
    /// right for 59 % of the images, those of the game for 43 %.
    pub const CONTRASTIVE: Self = Self::Joint;

    fn method(self) -> LearningMethod {
        match self {
            Self::Game => LearningMethod::NeuralEf,
            Self::Sequential => LearningMethod::Nested(Nesting::Sequential),
            Self::Joint => LearningMethod::Nested(Nesting::Joint),
            Self::Unordered => LearningMethod::Nested(Nesting::None),
        }
    }
}

/// How networks learn functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnSpec {
    /// The networks, described in TOML, or an ONNX file to go on with; two layers of 32, or convolutions for views of images, if
    /// nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<PathBuf>,
    /// So many more functions than are wanted, which are left out after the finish.
    #[serde(default)]
    pub extra: usize,
    /// Steps of training.
    pub iterations: usize,
    /// Samples per step, or pairs.
    pub batch: usize,
    /// The learning rate of Adam.
    pub learning_rate: f64,
    /// The share of moving averages that is kept at every step.
    pub keep: f64,
    /// Steps after which the state is written down.
    pub checkpoint: usize,
}

impl LearnSpec {
    /// What suits a method: the papers' learning rate and averages, 2000 steps of 256 samples.
    pub fn new(keep: f64, learning_rate: f64) -> Self {
        Self { functions: None, extra: 0, iterations: 2000, batch: 256, learning_rate, keep, checkpoint: 500 }
    }

    /// For SpIN.
    pub fn spin() -> Self {
        Self::new(LearningMethod::Spin.keep(), 1e-3)
    }

    /// For NeuralEF and nested approximations.
    pub fn neural() -> Self {
        Self::new(LearningMethod::NeuralEf.keep(), 1e-3)
    }

    /// For pairs of views.
    pub fn contrastive() -> Self {
        Self::new(LearningMethod::NeuralEf.keep(), 2e-3)
    }

    /// Samples of a step.
    pub(super) fn batch_of(&self, samples: usize) -> usize {
        self.batch.min(samples)
    }
}

/// Where pairs of views come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Views {
    /// The other view of every sample.
    Pairs(DataRef),
    /// Two random changes of each image.
    Augmented(Augmentation),
}

impl EigenMethod {
    /// Landmarks, if nothing is said.
    pub const LANDMARKS: usize = 500;

    /// Random Fourier features, if nothing is said.
    pub const FEATURES: usize = 2000;

    /// As the user writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact {} => "exact",
            Self::Lanczos { .. } => "lanczos",
            Self::Randomised { .. } => "randomised",
            Self::Nystrom { .. } => "nystrom",
            Self::Rff { .. } => "rff",
            Self::Spin { .. } => "spin",
            Self::Neuralef { .. } => "neuralef",
            Self::Shared { .. } => "shared",
            Self::Contrastive { .. } => "contrastive",
        }
    }

    /// How networks learn, if they do.
    pub fn learning(&self) -> Option<&LearnSpec> {
        match self {
            Self::Spin { learning }
            | Self::Neuralef { learning, .. }
            | Self::Shared { learning, .. }
            | Self::Contrastive { learning, .. } => Some(learning),
            _ => None,
        }
    }

    /// What suits it: double precision, but for networks that learn. SpIN decorrelates its functions by a Cholesky factor, which
    /// amplifies rounding.
    pub fn precision(&self) -> Precision {
        match self {
            Self::Neuralef { .. } | Self::Shared { .. } | Self::Contrastive { .. } => Precision::F32,
            _ => Precision::F64,
        }
    }

    /// Whether one network gives all functions.
    pub(super) fn shares(&self) -> bool {
        matches!(self, Self::Shared { .. } | Self::Contrastive { .. })
    }

    /// The views that stand for a kernel.
    pub(super) fn views(&self) -> Option<&Views> {
        match self {
            Self::Contrastive { views, .. } => Some(views),
            _ => None,
        }
    }

    /// What networks learn.
    pub(super) fn objective(&self) -> LearningMethod {
        match self {
            Self::Neuralef { objective, .. } | Self::Shared { objective, .. } | Self::Contrastive { objective, .. } => {
                objective.method()
            }
            _ => LearningMethod::Spin,
        }
    }

    /// How a matrix is taken apart.
    pub(super) fn solver(&self, seed: u64) -> Solver {
        match self {
            Self::Lanczos { .. } => Solver::Lanczos,
            Self::Randomised { .. } => Solver::Randomised { seed },
            _ => Solver::Full,
        }
    }

    /// Whether the matrix may be known by its products alone.
    pub(super) fn multiplies(&self) -> bool {
        matches!(self, Self::Lanczos { .. } | Self::Randomised { .. })
    }

    /// Whether a tangent kernel's matrix is made, if that was said.
    pub(super) fn matrix_free(&self) -> Option<MatrixFree> {
        match self {
            Self::Lanczos { matrix_free } | Self::Randomised { matrix_free } => *matrix_free,
            _ => None,
        }
    }
}
