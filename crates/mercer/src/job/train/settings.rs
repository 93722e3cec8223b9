//! Training settings as given by the user, and as used by a run.

use crate::Error;
use mercer_net::train::{Augmentation, Decay, Loss, Optimiser, Schedule, TrainingSettings};
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
    /// Epochs between two drops of the step schedule; by default 10.
    pub step_every: Option<NonZeroUsize>,
    /// The step schedule drops after these epochs instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub step_at: Vec<usize>,
    /// The factor by which the step schedule multiplies the learning rate.
    pub step_factor: f64,
    /// Warm-up epochs, in which the learning rate rises from zero; may be a fraction.
    pub warm_up: f64,
    /// Stop after the first epoch whose mean loss is below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_loss: Option<f64>,
    /// Cut a random window of every image, with this many zeros around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crop_margin: Option<NonZeroUsize>,
    /// Mirror every other image, at random.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub flip: bool,
    /// Keep the weights every N epochs.
    pub checkpoint_every: Option<NonZeroUsize>,
    /// Keep the weights after these epochs; epoch 0 is the initial network.
    pub checkpoint_at: Vec<usize>,
    /// The seed of the initial weights, the order of the samples, crops and flips.
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
            step_every: None,
            step_at: Vec::new(),
            step_factor: 0.1,
            warm_up: 0.0,
            stop_loss: None,
            crop_margin: None,
            flip: false,
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
    /// The negative logarithm of the softmax at the class, or of the sigmoid for a single output.
    CrossEntropy,
    /// Half the squared distance; classes become one-hot.
    Squared,
    /// Half the squared distance between the sigmoid of the outputs and the class.
    SigmoidSquared,
}

mercer_run::named! {
    LossName, "loss":
    CrossEntropy = "cross-entropy", "Negative log-probability of the class; a single output is the logit of class 1";
    Squared = "squared", "Half the squared distance; classes become one-hot";
    SigmoidSquared = "sigmoid-squared", "Half the squared distance between the sigmoid of the output and the class";
}

/// A learning rate schedule by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleName {
    /// It is constant.
    Constant,
    /// It drops by a factor every N epochs, or after given ones.
    Step,
    /// It follows half a cosine down to zero.
    Cosine,
}

mercer_run::named! {
    ScheduleName, "schedule":
    Constant = "constant", "The learning rate stays the same";
    Step = "step", "It drops by a factor every few epochs, or after given ones";
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
        if !self.step_at.is_empty() && self.schedule != ScheduleName::Step {
            return Err(Error::new("‹step-at› is for ‹schedule› step").hint("‹schedule› step"));
        }
        if !self.step_at.is_empty() && self.step_every.is_some() {
            return Err(Error::new("‹step-every› and ‹step-at› exclude each other: give one of them"));
        }
        if !self.step_at.is_sorted_by(|one, next| one < next) || self.step_at.contains(&0) {
            return Err(Error::new("‹step-at› takes epochs from 1, each larger than the one before"));
        }
        match self.stop_loss.filter(|loss| !(*loss > 0.0 && loss.is_finite())) {
            Some(loss) => Err(Error::new(format!("‹stop-loss› {loss}: give a number above 0"))),
            None => Ok(()),
        }
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
            step_every: self.step_every.or(self.drops_regularly().then_some(TEN)),
            ..self.clone()
        }
    }

    fn drops_regularly(&self) -> bool {
        self.schedule == ScheduleName::Step && self.step_at.is_empty()
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
            Some(LossName::SigmoidSquared) => Loss::SigmoidSquared,
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
        let factor = self.step_factor;
        let decay = match self.schedule {
            ScheduleName::Constant => Decay::Constant,
            ScheduleName::Step if self.drops_regularly() => {
                Decay::Step { every: self.step_every.unwrap_or(TEN).get(), factor }
            }
            ScheduleName::Step => Decay::Milestones { at: self.step_at.clone(), factor },
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
            stop_loss: self.stop_loss,
            augmentation: Augmentation { crop_margin: self.crop_margin.map_or(0, NonZeroUsize::get), flip: self.flip },
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
        let step = TrainingSpec { schedule: ScheduleName::Step, ..TrainingSpec::default() };
        assert_eq!(step.completed(true).settings().schedule.decay, Decay::Step { every: 10, factor: 0.1 });
        let numbers = TrainingSpec::default().completed(false);
        assert_eq!((numbers.loss(), numbers.settings().schedule.learning_rate), (Loss::squared(), 0.001));
    }

    /// The default number of epochs between drops was once written down for every schedule.
    #[test]
    fn earlier_records_are_read() {
        let text = r#"{ "epochs": 3, "schedule": "constant", "step_every": 10, "step_factor": 0.1, "seed": 1 }"#;
        let spec: TrainingSpec = serde_json::from_str(text).unwrap();
        spec.check().unwrap();
        assert_eq!((spec.step_every, spec.settings().schedule.decay), (Some(TEN), Decay::Constant));
        // What is not used is not written, as before.
        let text = serde_json::to_string(&spec).unwrap();
        assert!(["step_at", "stop_loss", "crop", "flip"].iter().all(|name| !text.contains(name)), "{text}");
    }

    #[test]
    fn contradictions_are_refused() {
        let step = || TrainingSpec { schedule: ScheduleName::Step, step_at: vec![3, 5], ..TrainingSpec::default() };
        step().check().unwrap();
        let decay = step().completed(true).settings().schedule.decay;
        assert_eq!(decay, Decay::Milestones { at: vec![3, 5], factor: 0.1 });
        for (spec, word) in [
            (TrainingSpec { step_every: Some(TEN), ..step() }, "‹step-every›"),
            (TrainingSpec { schedule: ScheduleName::Cosine, ..step() }, "‹schedule›"),
            (TrainingSpec { step_at: vec![5, 3], ..step() }, "‹step-at›"),
            (TrainingSpec { step_at: vec![0], ..step() }, "‹step-at›"),
            (TrainingSpec { stop_loss: Some(f64::NAN), ..step() }, "‹stop-loss›"),
            (TrainingSpec { stop_loss: Some(0.0), ..step() }, "‹stop-loss›"),
        ] {
            let error = spec.check().unwrap_err();
            assert!(error.message().contains(word), "{error}");
        }
    }
}
