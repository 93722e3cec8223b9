//! Options of the methods that learn networks.

use mercer::job::eigen::{EigenMethod, LearnSpec, Objective, Views};
use std::path::PathBuf;

/// How networks learn the functions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Learning (spin, neuralef, shared, contrastive)")]
pub(super) struct LearnOptions {
    /// The networks, described in TOML: one output, or k for shared and contrastive, which also go on with a model of k
    /// outputs [default: two layers of 32, sine and cosine; contrastive: two convolutions for images]
    #[arg(long, value_name = "FILE.toml|MODEL.onnx")]
    functions: Option<PathBuf>,

    /// What they learn: game is NeuralEF's; sequential and joint are nested low-rank approximations, unordered is one that is not
    /// nested (not for spin) [default: game; contrastive: joint]
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<ObjectiveName>,

    /// So many more functions than K are learnt, and left out after the finish, which then finds the others better [default: 0]
    #[arg(long, value_name = "N")]
    extra: Option<usize>,

    /// Steps of training [default: 2000]
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// Samples per step, or pairs [default: 256]
    #[arg(long, value_name = "B")]
    batch: Option<usize>,

    /// The learning rate of Adam [default: 1e-3; contrastive: 2e-3, falling along a cosine]
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,

    /// The share of moving averages that is kept at every step: of Σ and its Jacobian in spin, of values and scales in the others
    /// [default: 0.01 for spin, 0.9 for the others]
    #[arg(long, value_name = "SHARE")]
    keep: Option<f64>,

    /// Steps after which the state is written down [default: 500]
    #[arg(long, value_name = "N")]
    checkpoint: Option<usize>,

    /// Go on with a run that was interrupted
    #[arg(long)]
    resume: bool,
}

/// What functions are trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ObjectiveName {
    Game,
    Sequential,
    Joint,
    Unordered,
}

impl LearnOptions {
    pub(super) fn resume(&self) -> bool {
        self.resume
    }

    pub(super) fn has_objective(&self) -> bool {
        self.objective.is_some()
    }

    /// The first flag that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("‹functions›", self.functions.is_some()),
            ("‹objective›", self.objective.is_some()),
            ("‹extra›", self.extra.is_some()),
            ("‹iterations›", self.iterations.is_some()),
            ("‹batch›", self.batch.is_some()),
            ("‹learning-rate›", self.learning_rate.is_some()),
            ("‹keep›", self.keep.is_some()),
            ("‹checkpoint›", self.checkpoint.is_some()),
            ("‹resume›", self.resume),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// One network per function, by spectral inference.
    pub(super) fn spin(&self) -> EigenMethod {
        EigenMethod::Spin { learning: self.learning(LearnSpec::spin()) }
    }

    /// One network per function.
    pub(super) fn neuralef(&self) -> EigenMethod {
        EigenMethod::Neuralef {
            learning: self.learning(LearnSpec::neural()),
            objective: self.objective(Objective::Game),
        }
    }

    /// One network for all.
    pub(super) fn shared(&self) -> EigenMethod {
        EigenMethod::Shared { learning: self.learning(LearnSpec::neural()), objective: self.objective(Objective::Game) }
    }

    /// One network for all, from pairs of views.
    pub(super) fn contrastive(&self, views: Views) -> EigenMethod {
        let learning = self.learning(LearnSpec::contrastive());
        EigenMethod::Contrastive { learning, objective: self.objective(Objective::CONTRASTIVE), views }
    }

    /// What is given, beside what is usual.
    fn learning(&self, usual: LearnSpec) -> LearnSpec {
        LearnSpec {
            functions: self.functions.clone(),
            extra: self.extra.unwrap_or(usual.extra),
            iterations: self.iterations.unwrap_or(usual.iterations),
            batch: self.batch.unwrap_or(usual.batch),
            learning_rate: self.learning_rate.unwrap_or(usual.learning_rate),
            keep: self.keep.unwrap_or(usual.keep),
            checkpoint: self.checkpoint.unwrap_or(usual.checkpoint),
        }
    }

    fn objective(&self, usual: Objective) -> Objective {
        self.objective.map_or(usual, |name| match name {
            ObjectiveName::Game => Objective::Game,
            ObjectiveName::Sequential => Objective::Sequential,
            ObjectiveName::Joint => Objective::Joint,
            ObjectiveName::Unordered => Objective::Unordered,
        })
    }
}
