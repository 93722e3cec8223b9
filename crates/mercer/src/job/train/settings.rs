//! Training settings as given by the user, and as used by a run.

use crate::Error;
use mercer_net::train::{Decay, Loss, Optimiser, Schedule, TrainingSettings};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Optimiser, learning rate and length of a run. Settings that are not given have suitable defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingSpec {
    /// Passes over the data.
    pub epochs: NonZeroUsize,
    /// Samples per step; by default 128, and all samples for `gd`.
    pub batch: Option<NonZeroUsize>,
    /// The optimiser.
    pub optimiser: OptimiserName,
    /// The learning rate; by default that of the optimiser.
    pub learning_rate: Option<f64>,
    /// The momentum of `sgd`.
    pub momentum: Option<f64>,
    /// Nesterov momentum for `sgd`.
    pub nesterov: bool,
    /// Weight decay.
    pub weight_decay: Option<f64>,
    /// The loss; by default the one that suits the labels.
    pub loss: Option<LossName>,
    /// The learning rate schedule.
    pub schedule: ScheduleName,
    /// Epochs between two drops of the step schedule.
    pub step_every: NonZeroUsize,
    /// The factor by which the step schedule multiplies the learning rate.
    pub step_factor: f64,
    /// Warm-up epochs, in which the learning rate rises from zero; may be a fraction.
    pub warm_up: f64,
    /// Keep the weights every N epochs.
    pub checkpoint_every: Option<NonZeroUsize>,
    /// Keep the weights after these epochs; epoch 0 is the initial network.
    pub checkpoint_at: Vec<usize>,
    /// The seed of the initial weights and the order of the samples.
    #[serde(with = "crate::job::seed")]
    pub seed: u64,
}

/// The default number of epochs, and of epochs between two drops.
const TEN: NonZeroUsize = NonZeroUsize::new(10).unwrap();

/// The default number of samples per step.
const BATCH: NonZeroUsize = NonZeroUsize::new(128).unwrap();

impl Default for TrainingSpec {
    fn default() -> Self {
        Self {
            epochs: TEN,
            batch: None,
            optimiser: OptimiserName::Adam,
            learning_rate: None,
            momentum: None,
            nesterov: false,
            weight_decay: None,
            loss: None,
            schedule: ScheduleName::Constant,
            step_every: TEN,
            step_factor: 0.1,
            warm_up: 0.0,
            checkpoint_every: None,
            checkpoint_at: Vec::new(),
            seed: 0,
        }
    }
}

/// An optimiser by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimiserName {
    /// Gradient descent on the whole set.
    Gd,
    /// Stochastic gradient descent.
    Sgd,
    /// Adam.
    Adam,
    /// Adam with decoupled weight decay.
    AdamW,
    /// AdaGrad.
    AdaGrad,
}

mercer_run::named! {
    OptimiserName, "optimiser":
    Gd = "gd", "Gradient descent on the whole training set";
    Sgd = "sgd", "Stochastic gradient descent; plain unless a momentum is given";
    Adam = "adam", "Adam";
    AdamW = "adamw", "Adam with decoupled weight decay";
    AdaGrad = "adagrad", "AdaGrad";
}

/// A loss by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossName {
    /// The negative logarithm of the softmax at the class.
    CrossEntropy,
    /// Half the squared distance; classes become one-hot.
    Squared,
}

mercer_run::named! {
    LossName, "loss":
    CrossEntropy = "cross-entropy", "Negative log-probability of the class";
    Squared = "squared", "Half the squared distance; classes become one-hot";
}

/// A learning rate schedule by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleName {
    /// It is constant.
    Constant,
    /// It drops by a factor every N epochs.
    Step,
    /// It follows half a cosine down to zero.
    Cosine,
}

mercer_run::named! {
    ScheduleName, "schedule":
    Constant = "constant", "The learning rate stays the same";
    Step = "step", "It drops by a factor every few epochs";
    Cosine = "cosine", "It follows half a cosine down to zero";
}

impl OptimiserName {
    /// The default learning rate.
    fn usual_rate(self) -> f64 {
        match self {
            Self::Gd | Self::Sgd => 0.05,
            Self::Adam | Self::AdamW => 0.001,
            Self::AdaGrad => 0.01,
        }
    }
}

impl TrainingSpec {
    /// Contradictory settings are rejected, not ignored.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if (self.momentum.is_some() || self.nesterov) && self.optimiser != OptimiserName::Sgd {
            return Err(Error::new("‹momentum› and ‹nesterov› are for ‹optimiser› sgd"));
        }
        if self.nesterov && self.momentum.is_none() {
            return Err(Error::new("‹nesterov› needs a ‹momentum›").hint("‹momentum› 0.9"));
        }
        Ok(())
    }

    /// The same with all defaults filled in, for labels that are classes or numbers.
    pub(crate) fn completed(&self, classes: bool) -> Self {
        let is_gd = self.optimiser == OptimiserName::Gd;
        let loss = if classes { LossName::CrossEntropy } else { LossName::Squared };
        Self {
            batch: self.batch.or((!is_gd).then_some(BATCH)),
            learning_rate: self.learning_rate.or(Some(self.optimiser.usual_rate())),
            momentum: self.momentum.or((self.optimiser == OptimiserName::Sgd).then_some(0.0)),
            weight_decay: Some(weight_decay(&mut self.optimiser()).to_owned()),
            loss: self.loss.or(Some(loss)),
            ..self.clone()
        }
    }

    /// The optimiser with its constants.
    pub(crate) fn optimiser(&self) -> Optimiser {
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
        if let Some(strength) = self.weight_decay {
            *weight_decay(&mut optimiser) = strength;
        }
        optimiser
    }

    /// The loss of a complete specification.
    pub(crate) fn loss(&self) -> Loss {
        match self.loss {
            Some(LossName::Squared) => Loss::squared(),
            _ => Loss::CrossEntropy,
        }
    }

    /// Length, order and learning rates of a complete specification.
    pub(crate) fn settings(&self) -> TrainingSettings {
        let epochs = self.epochs.get();
        let mut checkpoints = self.checkpoint_at.clone();
        if let Some(every) = self.checkpoint_every {
            checkpoints.extend((0..=epochs).step_by(every.get()));
        }
        checkpoints.sort_unstable();
        checkpoints.dedup();
        let decay = match self.schedule {
            ScheduleName::Constant => Decay::Constant,
            ScheduleName::Step => Decay::Step { every: self.step_every.get(), factor: self.step_factor },
            ScheduleName::Cosine => Decay::Cosine { floor: 0.0 },
        };
        let learning_rate = self.learning_rate.unwrap_or_else(|| self.optimiser.usual_rate());
        let schedule = Schedule { learning_rate, decay, warm_up: self.warm_up };
        TrainingSettings {
            epochs,
            batch_size: self.batch.map(NonZeroUsize::get),
            seed: self.seed,
            schedule,
            checkpoints,
        }
    }
}

fn weight_decay(optimiser: &mut Optimiser) -> &mut f64 {
    match optimiser {
        Optimiser::Gd { weight_decay }
        | Optimiser::Sgd { weight_decay, .. }
        | Optimiser::Adam { weight_decay, .. }
        | Optimiser::AdamW { weight_decay, .. }
        | Optimiser::AdaGrad { weight_decay, .. } => weight_decay,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_complete_says_the_same() {
        for optimiser in
            [OptimiserName::Gd, OptimiserName::Sgd, OptimiserName::Adam, OptimiserName::AdamW, OptimiserName::AdaGrad]
        {
            let spec = TrainingSpec { optimiser, ..TrainingSpec::default() };
            spec.check().unwrap();
            let complete = spec.completed(true);
            assert_eq!(complete.completed(false), complete, "{optimiser:?}");
            assert_eq!(complete.optimiser(), spec.optimiser(), "{optimiser:?}");
            let text = serde_json::to_string(&complete).unwrap();
            assert_eq!(serde_json::from_str::<TrainingSpec>(&text).unwrap(), complete);
            assert_eq!(complete.batch.is_none(), optimiser == OptimiserName::Gd);
        }
        let numbers = TrainingSpec::default().completed(false);
        assert_eq!((numbers.loss(), numbers.settings().schedule.learning_rate), (Loss::squared(), 0.001));
    }
}
