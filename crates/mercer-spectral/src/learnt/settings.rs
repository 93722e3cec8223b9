//! Settings of learning.

use super::nested::Nesting;
use super::neural_ef::NeuralEf;
use super::objective::Objective;
use crate::error::{Result, SpectralError};
use mercer_kernel::Real;
use mercer_net::train::{Optimiser, Schedule};
use serde::{Deserialize, Serialize};

/// A method that learns eigenfunctions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearningMethod {
    /// NeuralEF, Algorithm 1 of arXiv 2205.00165.
    NeuralEf,
    /// Nested low-rank approximation, arXiv 2402.03655.
    Nested(Nesting),
    /// Spectral inference networks, arXiv 1806.02215.
    Spin,
}

impl LearningMethod {
    /// The default share of a moving average that is kept at every step: 0.9 in the authors' runs of NeuralEF, and 0.01
    /// in their runs of SpIN, which also orders its functions soonest. The authors of SpIN used another share.
    pub fn keep(self) -> f64 {
        match self {
            Self::NeuralEf | Self::Nested(_) => 0.9,
            Self::Spin => 0.01,
        }
    }

    pub(super) fn objective<T: Real>(self, keep: f64) -> Box<dyn Objective<T>> {
        match self {
            Self::NeuralEf => Box::new(NeuralEf::new(keep)),
            Self::Nested(nesting) => Box::new(super::nested::Nested::new(nesting, keep)),
            Self::Spin => Box::new(super::spin::Spin::new(keep)),
        }
    }
}

/// The settings of a run of learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningSettings {
    /// The method.
    pub method: LearningMethod,
    /// Steps of training.
    pub steps: usize,
    /// The learning rates; an epoch of the schedule is one step.
    pub schedule: Schedule,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The share of moving averages that is kept at every step: averages of the values and scales in NeuralEF and
    /// nested approximation, of `Σ` and its Jacobian in SpIN.
    pub keep: f64,
    /// How many functions are kept after the finish; all of them by default. A few extra functions pay off, because
    /// they enlarge the span and the last ones are the least accurate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<usize>,
    /// The number of steps between writes of the state, if there is a folder.
    pub checkpoint: usize,
}

impl LearningSettings {
    /// The settings of the paper: Adam with a learning rate of 1e-3, and 2000 steps.
    pub fn new(method: LearningMethod) -> Self {
        Self {
            method,
            steps: 2000,
            schedule: Schedule::constant(1e-3),
            optimiser: Optimiser::adam(),
            keep: method.keep(),
            components: None,
            checkpoint: 500,
        }
    }

    /// The same with another number of steps.
    pub fn steps(self, steps: usize) -> Self {
        Self { steps, ..self }
    }

    /// The same with this many functions kept after the finish.
    pub fn components(self, components: usize) -> Self {
        Self { components: Some(components), ..self }
    }

    /// The same with another share for moving averages.
    pub fn keep(self, keep: f64) -> Self {
        Self { keep, ..self }
    }

    /// The same with other learning rates.
    pub fn schedule(self, schedule: Schedule) -> Self {
        Self { schedule, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        self.schedule.check()?;
        self.optimiser.check()?;
        if self.components == Some(0) {
            return Err(SpectralError::Setting("components = 0; accepted: at least 1".to_owned()));
        }
        if self.steps == 0 {
            return Err(SpectralError::Setting("steps = 0; accepted: at least 1".to_owned()));
        }
        if !(0.0..1.0).contains(&self.keep) {
            let text = format!("keep = {}; accepted: from 0 to below 1", self.keep);
            return Err(SpectralError::Setting(text));
        }
        Ok(())
    }
}
