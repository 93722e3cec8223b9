//! How to train: options of the command line as settings of the library.

use crate::failure::Failure;
use mercer::net::train::{Decay, FitSettings, Loss, Optimiser, Schedule};
use serde::Serialize;
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
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LossName {
    /// The negative logarithm of the softmax at the class
    CrossEntropy,
    /// Half the squared distance; classes become one-hot
    Squared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ScheduleName {
    /// It does not
    Constant,
    /// By --step-factor every --step-every epochs
    Step,
    /// Along half a cosine down to zero
    Cosine,
}

impl TrainingOptions {
    /// The optimiser with its constants.
    pub(crate) fn optimiser(&self) -> Result<Optimiser, Failure> {
        let mut optimiser = match self.optimiser {
            OptimiserName::Gd => Optimiser::Gd { weight_decay: 0.0 },
            OptimiserName::Sgd => {
                let (momentum, nesterov) = (self.momentum.unwrap_or(0.0), self.nesterov);
                Optimiser::Sgd { momentum, nesterov, weight_decay: 0.0 }
            }
            OptimiserName::Adam => Optimiser::adam(),
            OptimiserName::AdamW => Optimiser::adam_w(),
            OptimiserName::AdaGrad => Optimiser::ada_grad(),
        };
        if (self.momentum.is_some() || self.nesterov) && self.optimiser != OptimiserName::Sgd {
            return Err(Failure::new("--momentum and --nesterov are for --optimiser sgd"));
        }
        if self.nesterov && self.momentum.is_none() {
            return Err(
                Failure::new("--nesterov looks ahead along the momentum, and there is none").hint("--momentum 0.9")
            );
        }
        if let Some(strength) = self.weight_decay {
            match &mut optimiser {
                Optimiser::Gd { weight_decay }
                | Optimiser::Sgd { weight_decay, .. }
                | Optimiser::Adam { weight_decay, .. }
                | Optimiser::AdamW { weight_decay, .. }
                | Optimiser::AdaGrad { weight_decay, .. } => *weight_decay = strength,
            }
        }
        Ok(optimiser)
    }

    /// The loss that suits the labels, unless one is asked for.
    pub(crate) fn loss(&self, classes: bool) -> Loss {
        match self.loss {
            Some(LossName::CrossEntropy) => Loss::CrossEntropy,
            Some(LossName::Squared) => Loss::squared(),
            None if classes => Loss::CrossEntropy,
            None => Loss::squared(),
        }
    }

    /// Length, order and learning rates.
    pub(crate) fn settings(&self) -> FitSettings {
        let epochs = self.epochs.get();
        let whole = self.optimiser == OptimiserName::Gd;
        let batch_size = self.batch.map(NonZeroUsize::get).or((!whole).then_some(128));
        let mut checkpoints = self.checkpoint_at.clone();
        if let Some(every) = self.checkpoint_every {
            checkpoints.extend((0..=epochs).step_by(every.get()));
        }
        checkpoints.sort_unstable();
        checkpoints.dedup();
        FitSettings { epochs, batch_size, seed: self.seed, schedule: self.schedule(), checkpoints }
    }

    fn schedule(&self) -> Schedule {
        let usual = match self.optimiser {
            OptimiserName::Gd | OptimiserName::Sgd => 0.05,
            OptimiserName::Adam | OptimiserName::AdamW => 0.001,
            OptimiserName::AdaGrad => 0.01,
        };
        let decay = match self.schedule {
            ScheduleName::Constant => Decay::Constant,
            ScheduleName::Step => Decay::Step { every: self.step_every.get(), factor: self.step_factor },
            ScheduleName::Cosine => Decay::Cosine { floor: 0.0 },
        };
        Schedule { learning_rate: self.learning_rate.unwrap_or(usual), decay, warm_up: self.warm_up }
    }
}
