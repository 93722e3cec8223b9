//! The methods for eigenfunctions.

use crate::spec::{DataRef, Precision};
use mercer_spectral::learnt::{Augmentation, LearningMethod, Nesting};
use mercer_spectral::{Landmarks, Solver, TangentMethod};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A method, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EigenMethod {
    /// Decompose the whole matrix.
    Exact {},
    /// Lanczos iteration for the largest eigenvalues, to convergence.
    Lanczos {
        /// Whether to avoid forming the matrix of a tangent kernel; by default the cheaper way, or the one that fits
        /// into memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matrix_free: Option<MatrixFree>,
    },
    /// Randomised decomposition: five products with a block of vectors.
    Randomised {
        /// As for Lanczos.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matrix_free: Option<MatrixFree>,
    },
    /// Nyström's method, from landmarks.
    Nystrom {
        /// How landmarks are chosen.
        landmarks: LandmarkChoice,
        /// The number of landmarks, unless all samples are landmarks.
        n: usize,
    },
    /// Random Fourier features of a classic kernel, or the kernel's own features.
    Rff {
        /// The number of Fourier features.
        n: usize,
        /// Draw orthogonal frequencies.
        #[serde(default)]
        orthogonal: bool,
    },
    /// One network per function, by SpIN (spectral inference networks).
    Spin {
        /// The training settings.
        learning: LearnSpec,
    },
    /// One network per function.
    Neuralef {
        /// The training settings.
        learning: LearnSpec,
        /// The objective.
        objective: Objective,
    },
    /// One network for all functions.
    Shared {
        /// The training settings.
        learning: LearnSpec,
        /// The objective.
        objective: Objective,
    },
    /// One network for all functions, learnt from pairs of views instead of a kernel.
    Contrastive {
        /// The training settings.
        learning: LearnSpec,
        /// The objective.
        objective: Objective,
        /// Where the pairs come from.
        views: Views,
    },
}

/// When to avoid forming a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatrixFree {
    /// Whichever needs fewer operations, or fits into memory; the choice is reported.
    Auto,
    /// Never form the matrix.
    Always,
    /// Always form the matrix.
    Never,
}

mercer_run::named! {
    MatrixFree, "choice":
    Auto = "auto", "Whichever needs fewer operations, or fits into memory";
    Always = "always", "Never form the matrix";
    Never = "never", "Form the matrix";
}

impl MatrixFree {
    /// The choice, if it does not depend on cost.
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

/// The training objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The objective of NeuralEF.
    Game,
    /// A nested low-rank approximation, function by function.
    Sequential,
    /// A nested low-rank approximation, all at once.
    Joint,
    /// A low-rank approximation without an order.
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
    /// The default for pairs of views, which learns the order of the codes as well. On MNIST, after the Rayleigh–Ritz
    /// step, codes of four numbers classify 59 % of the images correctly, against 43 % for the game.
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

/// Settings for networks that learn functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnSpec {
    /// The networks, described in TOML, or an ONNX file to start from. The default has two layers of 32, or
    /// convolutions for views of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<PathBuf>,
    /// The number of extra functions to learn, which are dropped after the Rayleigh–Ritz step.
    #[serde(default)]
    pub extra: usize,
    /// The number of training steps.
    pub iterations: usize,
    /// Samples per step, or pairs.
    pub batch: usize,
    /// The learning rate of Adam.
    pub learning_rate: f64,
    /// The share of moving averages that is kept at every step.
    pub keep: f64,
    /// The number of steps between two saves of the state.
    pub checkpoint: usize,
}

impl LearnSpec {
    /// The defaults of a method: learning rate and averages from the papers, 2000 steps of 256 samples.
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
    /// The default number of landmarks.
    pub const LANDMARKS: usize = 500;

    /// The default number of random Fourier features.
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

    /// The training settings, if the method learns networks.
    pub fn learning(&self) -> Option<&LearnSpec> {
        match self {
            Self::Spin { learning }
            | Self::Neuralef { learning, .. }
            | Self::Shared { learning, .. }
            | Self::Contrastive { learning, .. } => Some(learning),
            _ => None,
        }
    }

    /// The default precision: double, except for networks that learn. SpIN decorrelates its functions by a Cholesky
    /// factor, which amplifies rounding.
    pub fn precision(&self) -> Precision {
        match self {
            Self::Neuralef { .. } | Self::Shared { .. } | Self::Contrastive { .. } => Precision::F32,
            _ => Precision::F64,
        }
    }

    /// Whether one network computes all functions.
    pub(super) fn shares(&self) -> bool {
        matches!(self, Self::Shared { .. } | Self::Contrastive { .. })
    }

    /// The views that replace a kernel.
    pub(super) fn views(&self) -> Option<&Views> {
        match self {
            Self::Contrastive { views, .. } => Some(views),
            _ => None,
        }
    }

    /// The training objective.
    pub(super) fn objective(&self) -> LearningMethod {
        match self {
            Self::Neuralef { objective, .. } | Self::Shared { objective, .. } | Self::Contrastive { objective, .. } => {
                objective.method()
            }
            _ => LearningMethod::Spin,
        }
    }

    /// The solver for a matrix.
    pub(super) fn solver(&self, seed: u64) -> Solver {
        match self {
            Self::Lanczos { .. } => Solver::Lanczos,
            Self::Randomised { .. } => Solver::Randomised { seed },
            _ => Solver::Full,
        }
    }

    /// Whether the method needs only products with the matrix.
    pub(super) fn multiplies(&self) -> bool {
        matches!(self, Self::Lanczos { .. } | Self::Randomised { .. })
    }

    /// Whether to form the matrix of a tangent kernel, if specified.
    pub(super) fn matrix_free(&self) -> Option<MatrixFree> {
        match self {
            Self::Lanczos { matrix_free } | Self::Randomised { matrix_free } => *matrix_free,
            _ => None,
        }
    }
}
