//! How to train: options of the command line as data of the job.

use mercer::job::train::{self, TrainingSpec};
use std::num::NonZeroUsize;

/// Optimiser, learning rate and length of a run.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingOptions {
    /// Passes over the data
    #[arg(long, value_name = "N", default_value = "10")]
    epochs: NonZeroUsize,

    /// Samples per step; gd takes all of them [default: 128]
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroUsize>,

    /// How a gradient becomes a step
    #[arg(long, value_name = "NAME", default_value = "adam")]
    optimiser: OptimiserName,

    /// The learning rate [default: 0.001 for adam and adamw, 0.01 for adagrad, 0.05 for sgd and gd]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    learning_rate: Option<f64>,

    /// How much of the last step sgd keeps, 0.9 for instance [default: 0]
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    momentum: Option<f64>,

    /// Nesterov's look-ahead for sgd, with --momentum
    #[arg(long)]
    nesterov: bool,

    /// Pull weights to zero; decoupled from the gradient in adamw [default: 0, 0.01 for adamw]
    #[arg(long, value_name = "STRENGTH", allow_negative_numbers = true)]
    weight_decay: Option<f64>,

    /// What to make small [default: cross-entropy for classes, squared for numbers]
    #[arg(long, value_name = "NAME")]
    loss: Option<LossName>,

    /// How the learning rate falls
    #[arg(long, value_name = "NAME", default_value = "constant")]
    schedule: ScheduleName,

    /// Epochs between two falls of the step schedule
    #[arg(long, value_name = "N", default_value = "10")]
    step_every: NonZeroUsize,

    /// What the step schedule multiplies the learning rate by
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1, allow_negative_numbers = true)]
    step_factor: f64,

    /// Epochs in which the learning rate rises from zero, before the schedule; may be a fraction
    #[arg(long, value_name = "EPOCHS", default_value_t = 0.0, allow_negative_numbers = true)]
    warm_up: f64,

    /// Keep the weights every so many epochs
    #[arg(long, value_name = "N")]
    checkpoint_every: Option<NonZeroUsize>,

    /// Keep the weights after these epochs, as in 0,1,5,20; 0 are the initial ones
    #[arg(long, value_name = "EPOCHS", value_delimiter = ',')]
    checkpoint_at: Vec<usize>,

    /// Initial weights and the order of the samples depend on this and nothing else
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OptimiserName {
    /// Gradient descent on the whole set
    Gd,
    /// Stochastic gradient descent, plain unless --momentum is given
    Sgd,
    /// Adam
    Adam,
    /// Adam with decoupled weight decay
    #[value(name = "adamw")]
    AdamW,
    /// AdaGrad
    #[value(name = "adagrad")]
    AdaGrad,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LossName {
    /// The negative logarithm of the softmax at the class
    CrossEntropy,
    /// Half the squared distance; classes become one-hot
    Squared,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ScheduleName {
    /// It does not
    Constant,
    /// By --step-factor every --step-every epochs
    Step,
    /// Along half a cosine down to zero
    Cosine,
}

impl TrainingOptions {
    /// As data.
    pub(super) fn spec(&self) -> TrainingSpec {
        TrainingSpec {
            epochs: self.epochs,
            batch: self.batch,
            optimiser: match self.optimiser {
                OptimiserName::Gd => train::OptimiserName::Gd,
                OptimiserName::Sgd => train::OptimiserName::Sgd,
                OptimiserName::Adam => train::OptimiserName::Adam,
                OptimiserName::AdamW => train::OptimiserName::AdamW,
                OptimiserName::AdaGrad => train::OptimiserName::AdaGrad,
            },
            learning_rate: self.learning_rate,
            momentum: self.momentum,
            nesterov: self.nesterov,
            weight_decay: self.weight_decay,
            loss: self.loss.map(|name| match name {
                LossName::CrossEntropy => train::LossName::CrossEntropy,
                LossName::Squared => train::LossName::Squared,
            }),
            schedule: match self.schedule {
                ScheduleName::Constant => train::ScheduleName::Constant,
                ScheduleName::Step => train::ScheduleName::Step,
                ScheduleName::Cosine => train::ScheduleName::Cosine,
            },
            step_every: self.step_every,
            step_factor: self.step_factor,
            warm_up: self.warm_up,
            checkpoint_every: self.checkpoint_every,
            checkpoint_at: self.checkpoint_at.clone(),
            seed: self.seed,
        }
    }
}
