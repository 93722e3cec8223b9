//! First-order optimisers, with the semantics of `torch.optim`.
//!
//! With gradient `g`, parameter `p`, learning rate `η`, weight decay `λ` and step `t = 1, 2, …`; all but AdamW first
//! set `g ← g + λp`.
//!
//! - GD, SGD: `m ← μm + g`; `p ← p − ηm`, or with Nesterov's look-ahead `p ← p − η(g + μm)`;
//! - Adam: `m ← m + (1−β₁)(g − m)`, `v ← β₂v + (1−β₂)g²`, `p ← p − η/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + ε)`;
//! - AdamW: `p ← (1 − ηλ)p`, then as Adam (Loshchilov and Hutter, arXiv 1711.05101);
//! - AdaGrad: `v ← v + g²`, `p ← p − η/(1 + (t−1)δ) · g / (√v + ε)`.

use super::update::{Part, Rule, head};
use crate::element::Element;
use crate::error::{NetError, Result};
use serde::{Deserialize, Serialize};

/// How a gradient becomes a step.
///
/// ```
/// use mercer_net::train::{Optimiser, OptimiserState};
///
/// let sgd = Optimiser::Sgd { momentum: 0.9, nesterov: false, weight_decay: 0.0 };
/// let mut state = OptimiserState::new(&sgd, 2);
/// let mut parameters = vec![vec![1.0], vec![2.0]];
/// sgd.update(&mut state, &mut parameters, &[1.0, -1.0], 0.5);
/// assert_eq!(parameters, [[0.5], [2.5]]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
pub enum Optimiser {
    /// Gradient descent on the whole set: one step per epoch.
    Gd {
        /// Coupled L2 penalty `λ`.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Stochastic gradient descent.
    Sgd {
        /// The momentum `μ`: how much of the last step is kept.
        #[serde(default)]
        momentum: f64,
        /// Nesterov's look-ahead.
        #[serde(default)]
        nesterov: bool,
        /// Coupled L2 penalty `λ`.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Adam (Kingma and Ba, arXiv 1412.6980).
    Adam {
        /// Decay rates of the two moments, `β₁` and `β₂`.
        #[serde(default = "default_betas")]
        betas: [f64; 2],
        /// Added to the root, `ε`.
        #[serde(default = "default_epsilon")]
        epsilon: f64,
        /// Coupled L2 penalty `λ`.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Adam with weight decay decoupled from the gradient.
    AdamW {
        /// Decay rates of the two moments, `β₁` and `β₂`.
        #[serde(default = "default_betas")]
        betas: [f64; 2],
        /// Added to the root, `ε`.
        #[serde(default = "default_epsilon")]
        epsilon: f64,
        /// Decoupled decay `λ`.
        #[serde(default = "default_decoupled")]
        weight_decay: f64,
    },
    /// AdaGrad (Duchi, Hazan and Singer 2011).
    AdaGrad {
        /// The decay `δ` of the learning rate.
        #[serde(default)]
        rate_decay: f64,
        /// Added to the root, `ε`.
        #[serde(default = "default_tiny")]
        epsilon: f64,
        /// Coupled L2 penalty `λ`.
        #[serde(default)]
        weight_decay: f64,
    },
}

fn default_betas() -> [f64; 2] {
    [0.9, 0.999]
}

fn default_epsilon() -> f64 {
    1e-8
}

fn default_tiny() -> f64 {
    1e-10
}

fn default_decoupled() -> f64 {
    1e-2
}

/// The state of an optimiser, in the order of the parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimiserState<T> {
    /// Steps taken.
    pub steps: u64,
    /// Momentum or first moments; empty if the optimiser has none.
    pub first: Vec<T>,
    /// Second moments or sums of squares; empty if the optimiser has none.
    pub second: Vec<T>,
}

impl<T: Element> OptimiserState<T> {
    /// The state before the first step.
    pub fn new(optimiser: &Optimiser, n_params: usize) -> Self {
        let (first, second) = optimiser.remembers();
        let zeros = |wanted: bool| vec![T::zero(); if wanted { n_params } else { 0 }];
        Self { steps: 0, first: zeros(first), second: zeros(second) }
    }
}

impl Optimiser {
    /// Plain stochastic gradient descent.
    pub fn sgd() -> Self {
        Self::Sgd { momentum: 0.0, nesterov: false, weight_decay: 0.0 }
    }

    /// Adam with the usual constants.
    pub fn adam() -> Self {
        Self::Adam { betas: default_betas(), epsilon: default_epsilon(), weight_decay: 0.0 }
    }

    /// AdamW with the usual constants and a weight decay of 0.01.
    pub fn adam_w() -> Self {
        Self::AdamW { betas: default_betas(), epsilon: default_epsilon(), weight_decay: default_decoupled() }
    }

    /// AdaGrad with the usual constants.
    pub fn ada_grad() -> Self {
        Self::AdaGrad { rate_decay: 0.0, epsilon: default_tiny(), weight_decay: 0.0 }
    }

    /// Checks the numbers.
    pub fn check(&self) -> Result<()> {
        let refuse = |name: &str, value: f64, accepted: &str| {
            Err(NetError::Setting(format!("{name} = {value}; accepted: {accepted}")))
        };
        let (decay, epsilon) = match *self {
            Self::Gd { weight_decay } => (weight_decay, 0.0),
            Self::Sgd { momentum, nesterov, weight_decay } => {
                if !(0.0..=1.0).contains(&momentum) || nesterov && momentum == 0.0 {
                    return refuse("momentum", momentum, "numbers from 0 to 1, above 0 with nesterov");
                }
                (weight_decay, 0.0)
            }
            Self::Adam { betas, epsilon, weight_decay } | Self::AdamW { betas, epsilon, weight_decay } => {
                if let Some(&beta) = betas.iter().find(|beta| !(0.0..1.0).contains(*beta)) {
                    return refuse("betas", beta, "two numbers from 0 to below 1");
                }
                (weight_decay, epsilon)
            }
            Self::AdaGrad { rate_decay, epsilon, weight_decay } => {
                if !(rate_decay >= 0.0 && rate_decay.is_finite()) {
                    return refuse("rate_decay", rate_decay, "numbers from 0");
                }
                (weight_decay, epsilon)
            }
        };
        if !(decay >= 0.0 && decay.is_finite()) {
            return refuse("weight_decay", decay, "numbers from 0");
        }
        if !(epsilon >= 0.0 && epsilon.is_finite()) {
            return refuse("epsilon", epsilon, "numbers from 0");
        }
        Ok(())
    }

    /// Whether there are first and second vectors.
    fn remembers(&self) -> (bool, bool) {
        match self {
            Self::Gd { .. } => (false, false),
            Self::Sgd { momentum, .. } => (*momentum != 0.0, false),
            Self::Adam { .. } | Self::AdamW { .. } => (true, true),
            Self::AdaGrad { .. } => (false, true),
        }
    }

    /// One step: `gradient` holds all parameters one after the other.
    ///
    /// # Panics
    /// If the sizes differ.
    pub fn update<T: Element>(
        &self,
        state: &mut OptimiserState<T>,
        parameters: &mut [Vec<T>],
        gradient: &[T],
        learning_rate: f64,
    ) {
        let total: usize = parameters.iter().map(Vec::len).sum();
        assert_eq!(total, gradient.len(), "one derivative per parameter");
        state.steps += 1;
        let rule = Rule::new(self, state.steps, learning_rate);
        let (mut first, mut second) = (state.first.as_mut_slice(), state.second.as_mut_slice());
        let mut gradient = gradient;
        for values in parameters {
            let length = values.len();
            let part = Part {
                values,
                gradient: gradient.split_off(..length).unwrap_or_default(),
                first: head(&mut first, length),
                second: head(&mut second, length),
            };
            part.update(&rule);
        }
    }
}
