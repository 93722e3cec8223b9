//! The arithmetic of an optimiser's step, vectorised and split between threads; the formulas are in `optimiser.rs`.

use super::Optimiser;
use crate::element::Element;
use mercer_linalg::simd::dispatch;

/// The next `length` elements, or an empty slice from an empty slice.
pub(super) fn head<'a, T>(rest: &mut &'a mut [T], length: usize) -> &'a mut [T] {
    rest.split_off_mut(..length).unwrap_or_default()
}

/// The formula of one step with its constants.
#[derive(Clone, Copy)]
pub(super) struct Rule {
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
    pub(super) fn new(optimiser: &Optimiser, step: u64, rate: f64) -> Self {
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

/// Some parameters with their gradients and optimiser state.
pub(super) struct Part<'a, T> {
    pub(super) values: &'a mut [T],
    pub(super) gradient: &'a [T],
    pub(super) first: &'a mut [T],
    pub(super) second: &'a mut [T],
}

impl<T: Element> Part<'_, T> {
    /// Elements are independent, so the split does not change the result.
    pub(super) fn update(self, rule: &Rule) {
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
        let (rate, decay) = (T::narrow(rule.rate), T::narrow(rule.decay));
        let each = values.iter_mut().zip(gradient);
        match rule.kind {
            Kind::Plain => dispatch(
                #[inline(always)]
                || {
                    each.for_each(|(p, &g)| *p -= rate * (g + decay * *p));
                },
            ),
            Kind::Momentum { keep, nesterov } => {
                let keep = T::narrow(keep);
                let ahead = if nesterov { (T::one(), keep) } else { (T::zero(), T::one()) };
                dispatch(
                    #[inline(always)]
                    || {
                        for ((p, &g), m) in each.zip(first) {
                            let g = g + decay * *p;
                            *m = keep * *m + g;
                            *p -= rate * (ahead.0 * g + ahead.1 * *m);
                        }
                    },
                );
            }
            Kind::Adam { betas, root_correction, epsilon, shrink } => {
                let [new, keep, new_square] = [1.0 - betas[0], betas[1], 1.0 - betas[1]].map(T::narrow);
                let [root_correction, epsilon, shrink] = [root_correction, epsilon, shrink].map(T::narrow);
                dispatch(
                    #[inline(always)]
                    || {
                        for (((p, &g), m), v) in each.zip(first).zip(second) {
                            let g = g + decay * *p;
                            *m += new * (g - *m);
                            *v = keep * *v + new_square * (g * g);
                            *p = shrink * *p - rate * (*m / (v.sqrt() / root_correction + epsilon));
                        }
                    },
                );
            }
            Kind::AdaGrad { epsilon } => {
                let epsilon = T::narrow(epsilon);
                dispatch(
                    #[inline(always)]
                    || {
                        for ((p, &g), v) in each.zip(second) {
                            let g = g + decay * *p;
                            *v += g * g;
                            *p -= rate * (g / (v.sqrt() + epsilon));
                        }
                    },
                );
            }
        }
    }
}
