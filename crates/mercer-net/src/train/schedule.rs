//! Learning rates over the steps of a run.
//!
//! With `t` in epochs (step / steps per epoch), warm-up `w`, and `n` epochs in all:
//!
//! - warm-up: `η · (step + 1) / (w · steps per epoch)` while that is below `η`;
//! - step: `η · factor^⌊t / every⌋`;
//! - milestones: `η · factor^m`, where `m` of the milestones are at most `t`;
//! - cosine: `floor + ½(η − floor)(1 + cos(π (t − w)/(n − w)))`.

use crate::error::{NetError, Result};
use serde::{Deserialize, Serialize};

/// The learning rate at every step.
///
/// ```
/// use mercer_net::train::{Decay, Schedule};
///
/// let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, warm_up: 1.0, ..Schedule::constant(0.1) };
/// assert_eq!(schedule.rate(0, 10, 5), 0.1 / 10.0);
/// assert_eq!(schedule.rate(10, 10, 5), 0.1);
/// assert!(schedule.rate(49, 10, 5) < 0.001);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The learning rate after the warm-up, `η`.
    pub learning_rate: f64,
    /// How it decays.
    #[serde(default)]
    pub decay: Decay,
    /// Epochs of linear warm-up; may be a fraction.
    #[serde(default)]
    pub warm_up: f64,
}

/// How a learning rate decays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Decay {
    /// No decay.
    #[default]
    Constant,
    /// By a factor at regular intervals.
    Step {
        /// Epochs between two reductions.
        every: usize,
        /// The factor.
        factor: f64,
    },
    /// By a factor after each of these epochs.
    Milestones {
        /// Epochs, each larger than the one before.
        at: Vec<usize>,
        /// The factor.
        factor: f64,
    },
    /// Along half a cosine, down to a floor at the last step.
    Cosine {
        /// The last learning rate.
        #[serde(default)]
        floor: f64,
    },
}

impl Schedule {
    /// The same learning rate throughout.
    pub fn constant(learning_rate: f64) -> Self {
        Self { learning_rate, decay: Decay::Constant, warm_up: 0.0 }
    }

    /// Checks the numbers.
    pub fn check(&self) -> Result<()> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let refuse = |text: String| Err(NetError::Setting(text));
        if !positive(self.learning_rate) {
            return refuse(format!("learning_rate = {}; accepted: numbers above 0", self.learning_rate));
        }
        if !(self.warm_up >= 0.0 && self.warm_up.is_finite()) {
            return refuse(format!("warm_up = {}; accepted: epochs from 0", self.warm_up));
        }
        match &self.decay {
            Decay::Step { every: 0, .. } => refuse("every = 0; accepted: epochs from 1".into()),
            Decay::Milestones { at, .. } if at.contains(&0) || !at.is_sorted_by(|one, next| one < next) => {
                refuse(format!("milestones = {at:?}; accepted: epochs from 1, each larger than the one before"))
            }
            Decay::Step { factor, .. } | Decay::Milestones { factor, .. } if !positive(*factor) => {
                refuse(format!("factor = {factor}; accepted: numbers above 0"))
            }
            Decay::Cosine { floor } if !(0.0..=self.learning_rate).contains(floor) => {
                refuse(format!("floor = {floor}; accepted: numbers from 0 to the learning rate"))
            }
            _ => Ok(()),
        }
    }

    /// The learning rate at a step, counted from 0 over the whole run.
    pub fn rate(&self, step: usize, steps_per_epoch: usize, n_epochs: usize) -> f64 {
        let per_epoch = steps_per_epoch.max(1) as f64;
        let warm = self.warm_up * per_epoch;
        if ((step + 1) as f64) < warm {
            return self.learning_rate * (step + 1) as f64 / warm;
        }
        let epochs = step / steps_per_epoch.max(1);
        let dropped =
            |factor: f64, times: usize| self.learning_rate * factor.powi(i32::try_from(times).unwrap_or(i32::MAX));
        match self.decay {
            Decay::Constant => self.learning_rate,
            Decay::Step { every, factor } => dropped(factor, epochs / every.max(1)),
            Decay::Milestones { ref at, factor } => dropped(factor, at.iter().filter(|&&at| at <= epochs).count()),
            Decay::Cosine { floor } => {
                let total = n_epochs as f64 * per_epoch - warm;
                let done = if total > 0.0 { ((step as f64 - warm) / total).clamp(0.0, 1.0) } else { 0.0 };
                floor + 0.5 * (self.learning_rate - floor) * (1.0 + (std::f64::consts::PI * done).cos())
            }
        }
    }

    /// Whether the rates depend on the total number of epochs.
    pub(super) fn needs_length(&self) -> bool {
        matches!(self.decay, Decay::Cosine { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_formulas() {
        let step = Schedule { decay: Decay::Step { every: 2, factor: 0.1 }, ..Schedule::constant(1.0) };
        let rates: Vec<f64> = (0..6).map(|epoch| step.rate(epoch * 3, 3, 6)).collect();
        assert_eq!(rates[..2], [1.0, 1.0]);
        assert!((rates[2] - 0.1).abs() < 1e-15 && (rates[5] - 0.01).abs() < 1e-15);
        let decay = Decay::Milestones { at: vec![2, 5], factor: 0.5 };
        let milestones = Schedule { decay, ..Schedule::constant(1.0) };
        let rates: Vec<f64> = (0..18).map(|step| milestones.rate(step, 3, 6)).collect();
        assert_eq!(rates, [[1.0; 3], [1.0; 3], [0.5; 3], [0.5; 3], [0.5; 3], [0.25; 3]].concat());
        let cosine = Schedule { decay: Decay::Cosine { floor: 0.2 }, ..Schedule::constant(1.0) };
        assert_eq!(cosine.rate(0, 4, 2), 1.0);
        assert!((cosine.rate(4, 4, 2) - 0.6).abs() < 1e-15);
        assert!((cosine.rate(8, 4, 2) - 0.2).abs() < 1e-15);
        let warm = Schedule { warm_up: 0.5, ..Schedule::constant(1.0) };
        assert_eq!((0..5).map(|s| warm.rate(s, 8, 1)).collect::<Vec<_>>(), [0.25, 0.5, 0.75, 1.0, 1.0]);
    }

    #[test]
    fn bad_numbers_are_refused_by_name() {
        let text = |schedule: Schedule| schedule.check().unwrap_err().to_string();
        assert!(text(Schedule::constant(-1.0)).starts_with("learning_rate"));
        assert!(text(Schedule { warm_up: f64::NAN, ..Schedule::constant(1.0) }).starts_with("warm_up"));
        let decay = Decay::Step { every: 0, factor: 0.5 };
        assert!(text(Schedule { decay, ..Schedule::constant(1.0) }).starts_with("every"));
        for at in [vec![0, 3], vec![3, 2], vec![4, 4]] {
            let decay = Decay::Milestones { at, factor: 0.5 };
            assert!(text(Schedule { decay, ..Schedule::constant(1.0) }).starts_with("milestones"));
        }
        let decay = Decay::Milestones { at: vec![1], factor: 0.0 };
        assert!(text(Schedule { decay, ..Schedule::constant(1.0) }).starts_with("factor"));
        let decay = Decay::Cosine { floor: 2.0 };
        assert!(text(Schedule { decay, ..Schedule::constant(1.0) }).starts_with("floor"));
    }
}
