//! First-order optimisers, with the semantics of `torch.optim`.
//!
//! With gradient `g`, parameter `p`, learning rate `η`, weight decay `λ` and step `t = 1, 2, …`; all but AdamW first set
//! `g ← g + λp`.
//!
//! - GD, SGD: `m ← μm + g`; `p ← p − ηm`, or with Nesterov's look-ahead `p ← p − η(g + μm)`;
//! - Adam: `m ← m + (1−β₁)(g − m)`, `v ← β₂v + (1−β₂)g²`, `p ← p − η/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + ε)`;
//! - AdamW: `p ← (1 − ηλ)p`, then as Adam (Loshchilov and Hutter, arXiv 1711.05101);
//! - AdaGrad: `v ← v + g²`, `p ← p − η/(1 + (t−1)δ) · g / (√v + ε)`.

use crate::element::Element;
use crate::error::{NetError, Result};
use mercer_linalg::simd::dispatch;
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
        /// How much of the last step is kept, `μ`.
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
        /// How fast the learning rate falls, `δ`.
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

/// What an optimiser remembers, in the order of the parameters.
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

    /// Whether the numbers make sense.
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

/// The next `length` elements, or none of an empty slice.
fn head<'a, T>(rest: &mut &'a mut [T], length: usize) -> &'a mut [T] {
    rest.split_off_mut(..length).unwrap_or_default()
}

/// The formula of one step with its constants.
#[derive(Clone, Copy)]
struct Rule {
    kind: Kind,
    rate: f64,
    /// Coupled weight decay.
    decay: f64,
}

#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Momentum { keep: f64, nesterov: bool },
    Adam { betas: [f64; 2], root_correction: f64, epsilon: f64, shrink: f64 },
    AdaGrad { epsilon: f64 },
}

impl Rule {
    fn new(optimiser: &Optimiser, step: u64, rate: f64) -> Self {
        let power = |beta: f64| beta.powf(step as f64);
        let adam = |betas: [f64; 2], epsilon: f64, decay: f64, shrink: f64| Self {
            kind: Kind::Adam { betas, root_correction: (1.0 - power(betas[1])).sqrt(), epsilon, shrink },
            rate: rate / (1.0 - power(betas[0])),
            decay,
        };
        match *optimiser {
            Optimiser::Gd { weight_decay } => Self { kind: Kind::Plain, rate, decay: weight_decay },
            Optimiser::Sgd { momentum, nesterov, weight_decay } => {
                let kind = if momentum == 0.0 { Kind::Plain } else { Kind::Momentum { keep: momentum, nesterov } };
                Self { kind, rate, decay: weight_decay }
            }
            Optimiser::Adam { betas, epsilon, weight_decay } => adam(betas, epsilon, weight_decay, 1.0),
            Optimiser::AdamW { betas, epsilon, weight_decay } => adam(betas, epsilon, 0.0, 1.0 - rate * weight_decay),
            Optimiser::AdaGrad { rate_decay, epsilon, weight_decay } => Self {
                kind: Kind::AdaGrad { epsilon },
                rate: rate / (1.0 + (step - 1) as f64 * rate_decay),
                decay: weight_decay,
            },
        }
    }
}

/// Elements below which a part is not split between threads.
const GRAIN: usize = 1 << 15;

/// Some parameters with all that belongs to them.
struct Part<'a, T> {
    values: &'a mut [T],
    gradient: &'a [T],
    first: &'a mut [T],
    second: &'a mut [T],
}

impl<T: Element> Part<'_, T> {
    /// Elements do not depend on each other, so the cut changes nothing.
    fn update(self, rule: &Rule) {
        if self.values.len() <= GRAIN || rayon::current_num_threads() == 1 {
            return self.update_here(rule);
        }
        let half = self.values.len() / 2;
        let (mut first, mut second) = (self.first, self.second);
        let (values, others) = self.values.split_at_mut(half);
        let (gradient, other_gradient) = self.gradient.split_at(half);
        let one = Part { values, gradient, first: head(&mut first, half), second: head(&mut second, half) };
        let two = Part { values: others, gradient: other_gradient, first, second };
        rayon::join(|| one.update(rule), || two.update(rule));
    }

    fn update_here(self, rule: &Rule) {
        let Self { values, gradient, first, second } = self;
        let (rate, decay) = (T::of(rule.rate), T::of(rule.decay));
        let each = values.iter_mut().zip(gradient);
        match rule.kind {
            Kind::Plain => dispatch(|| {
                each.for_each(|(p, &g)| *p -= rate * (g + decay * *p));
            }),
            Kind::Momentum { keep, nesterov } => {
                let keep = T::of(keep);
                let ahead = if nesterov { (T::one(), keep) } else { (T::zero(), T::one()) };
                dispatch(|| {
                    for ((p, &g), m) in each.zip(first) {
                        let g = g + decay * *p;
                        *m = keep * *m + g;
                        *p -= rate * (ahead.0 * g + ahead.1 * *m);
                    }
                });
            }
            Kind::Adam { betas, root_correction, epsilon, shrink } => {
                let [new, keep, new_square] = [1.0 - betas[0], betas[1], 1.0 - betas[1]].map(T::of);
                let [root_correction, epsilon, shrink] = [root_correction, epsilon, shrink].map(T::of);
                dispatch(|| {
                    for (((p, &g), m), v) in each.zip(first).zip(second) {
                        let g = g + decay * *p;
                        *m += new * (g - *m);
                        *v = keep * *v + new_square * (g * g);
                        *p = shrink * *p - rate * (*m / (v.sqrt() / root_correction + epsilon));
                    }
                });
            }
            Kind::AdaGrad { epsilon } => {
                let epsilon = T::of(epsilon);
                dispatch(|| {
                    for ((p, &g), v) in each.zip(second) {
                        let g = g + decay * *p;
                        *v += g * g;
                        *p -= rate * (g / (v.sqrt() + epsilon));
                    }
                });
            }
        }
    }
}
