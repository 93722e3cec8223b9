//! Losses of one sample, with their derivative in the network's output `f ∈ ℝᶜ`.
//!
//! - cross-entropy of class `t`: `ℓ = ln Σ exp(f_c − m) + m − f_t` with `m = max f`, and `∂ℓ/∂f = softmax(f) − e_t`;
//! - cross-entropy of a single output and class `t ∈ {0, 1}`, that of the sigmoid `p = 1/(1 + exp(−f))`:
//!   `ℓ = softplus(s f)` with `s = 1 − 2t`, and `∂ℓ/∂f = p − t`. It equals the one above for the two outputs `(0, f)`;
//! - squared: `ℓ = ½ Σ w_c (f_c − y_c)²`, and `∂ℓ/∂f = w ∘ (f − y)`. For a class, `y` is its one-hot vector;
//! - squared after the sigmoid: `ℓ = ½ Σ (p_c − y_c)²`, and `∂ℓ/∂f = (p − y) ∘ p ∘ (1 − p)`. For a class, `y` is its
//!   one-hot vector, and `y = t` for a single output. Programs without the factor ½ need half the learning rate.
//!
//! Sigmoids are computed from `exp(−|f|)`, so that neither `p` nor `1 − p` loses its digits.
//!
//! The loss of a batch of `n` samples is `1/n Σ s_i ℓ_i` with weights `s_i`, one by default.

use crate::element::Element;
use crate::error::{NetError, Result};
use mercer_linalg::elementary;
use serde::{Deserialize, Serialize};

/// The loss that training minimises.
///
/// ```
/// use mercer_net::train::{Loss, SampleTarget};
///
/// let mut slope = [0.0; 2];
/// let value = Loss::CrossEntropy.sample(&[1.0, 1.0], SampleTarget::Class(0), &mut slope);
/// assert!((value - 2f64.ln()).abs() < 1e-15);
/// assert_eq!(slope, [-0.5, 0.5]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// The negative logarithm of the softmax at the class. For a single output and two classes, that of the sigmoid.
    CrossEntropy,
    /// Half the squared distance, optionally with a weight per output.
    Squared {
        /// One weight per output.
        output_weights: Option<Vec<f64>>,
    },
    /// Half the squared distance between the sigmoid of the outputs and the class, or numbers.
    SigmoidSquared,
}

/// The target of one sample.
#[derive(Clone, Copy, Debug)]
pub enum SampleTarget<'a, T> {
    /// A class.
    Class(usize),
    /// A number for each output.
    Values(&'a [T]),
}

/// The targets of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Answers<'a, T> {
    /// A class per sample.
    Classes(&'a [usize]),
    /// `[samples, outputs]`, row-major.
    Values(&'a [T]),
}

/// Targets, and the weights of the samples.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a, T> {
    /// The targets.
    pub answers: Answers<'a, T>,
    /// A weight per sample; all one if there are none.
    pub weights: Option<&'a [T]>,
}

impl<'a, T: Element> Targets<'a, T> {
    /// A class per sample.
    pub fn classes(classes: &'a [usize]) -> Self {
        Self { answers: Answers::Classes(classes), weights: None }
    }

    /// `[samples, outputs]`, row-major.
    pub fn values(values: &'a [T]) -> Self {
        Self { answers: Answers::Values(values), weights: None }
    }

    /// The same with a weight per sample.
    pub fn weighted(self, weights: &'a [T]) -> Self {
        Self { weights: Some(weights), ..self }
    }

    /// The target of one sample.
    pub(super) fn get(&self, sample: usize, n_outputs: usize) -> SampleTarget<'a, T> {
        match self.answers {
            Answers::Classes(classes) => SampleTarget::Class(classes[sample]),
            Answers::Values(values) => SampleTarget::Values(&values[sample * n_outputs..(sample + 1) * n_outputs]),
        }
    }

    pub(super) fn weight(&self, sample: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[sample].wide())
    }
}

impl Loss {
    /// The plain squared loss.
    pub fn squared() -> Self {
        Self::Squared { output_weights: None }
    }

    /// The number of classes that a network with this many outputs distinguishes: one per output, and two for a single
    /// output under a loss with a sigmoid.
    pub fn n_classes(&self, n_outputs: usize) -> usize {
        match (self, n_outputs) {
            (Self::CrossEntropy | Self::SigmoidSquared, 1) => 2,
            _ => n_outputs,
        }
    }

    /// The loss of one sample and, in `slope`, its derivative in each output.
    ///
    /// # Panics
    /// If sizes do not match, or for the cross-entropy of values; [`check`](Self::check) finds both beforehand.
    pub fn sample<T: Element>(&self, output: &[T], target: SampleTarget<'_, T>, slope: &mut [T]) -> f64 {
        assert_eq!(output.len(), slope.len(), "one derivative per output");
        match (self, target) {
            (Self::CrossEntropy, SampleTarget::Class(class)) if output.len() == 1 => {
                binary_cross_entropy(output[0], class, &mut slope[0])
            }
            (Self::CrossEntropy, SampleTarget::Class(class)) => cross_entropy(output, class, slope),
            (Self::CrossEntropy, SampleTarget::Values(_)) => unreachable!("checked before training"),
            (Self::Squared { output_weights }, target) => {
                let mut sum = 0.0;
                for (at, (slope, &output)) in slope.iter_mut().zip(output).enumerate() {
                    let wanted = match target {
                        SampleTarget::Class(class) => indicator(class == at),
                        SampleTarget::Values(values) => values[at],
                    };
                    let weight = output_weights.as_ref().map_or(1.0, |weights| weights[at]);
                    let difference = output - wanted;
                    *slope = T::narrow(weight) * difference;
                    sum += weight * difference.wide() * difference.wide();
                }
                0.5 * sum
            }
            (Self::SigmoidSquared, target) => sigmoid_squared(output, target, slope),
        }
    }

    /// Checks that these targets match this loss and a network with this many outputs.
    pub fn check<T: Element>(&self, targets: &Targets<'_, T>, samples: usize, n_outputs: usize) -> Result<()> {
        let setting = |text: String| Err(NetError::Setting(text));
        match targets.answers {
            Answers::Classes(classes) => {
                if classes.len() != samples {
                    return setting(format!("{} labels for {samples} samples", classes.len()));
                }
                let known = self.n_classes(n_outputs);
                if let Some((sample, class)) = classes.iter().enumerate().find(|(_, class)| **class >= known) {
                    let outputs = match (n_outputs, known) {
                        (1, 2) => "one output, which distinguishes two classes; use one output per class".to_owned(),
                        (1, _) => "one output; for two classes use cross-entropy or sigmoid-squared".to_owned(),
                        _ => format!("{n_outputs} outputs"),
                    };
                    return setting(format!("sample {sample} has class {class}, but the network has {outputs}"));
                }
            }
            Answers::Values(_) if *self == Self::CrossEntropy => {
                return setting("cross-entropy needs classes; use the squared loss for values".into());
            }
            Answers::Values(values) if values.len() != samples * n_outputs => {
                return setting(format!("{} target values for {samples} samples of {n_outputs} outputs", values.len()));
            }
            Answers::Values(_) => {}
        }
        if let Self::Squared { output_weights: Some(weights) } = self
            && weights.len() != n_outputs
        {
            return setting(format!("{} output weights for {n_outputs} outputs", weights.len()));
        }
        match targets.weights {
            Some(weights) if weights.len() != samples => {
                setting(format!("{} sample weights for {samples} samples", weights.len()))
            }
            _ => Ok(()),
        }
    }
}

fn cross_entropy<T: Element>(output: &[T], class: usize, slope: &mut [T]) -> f64 {
    let top = output.iter().copied().fold(T::neg_infinity(), T::max);
    slope.iter_mut().zip(output).for_each(|(slope, &output)| *slope = output - top);
    let margin = slope[class];
    elementary::apply(elementary::ElementaryFunction::Exp, slope);
    let total: T = slope.iter().copied().sum();
    slope.iter_mut().for_each(|slope| *slope /= total);
    slope[class] -= T::one();
    total.wide().ln() - margin.wide()
}

fn indicator<T: Element>(is_true: bool) -> T {
    if is_true { T::one() } else { T::zero() }
}

fn binary_cross_entropy<T: Element>(output: T, class: usize, slope: &mut T) -> f64 {
    let sign = indicator::<T>(class == 0) - indicator(class != 0);
    let tail = tail(output);
    let [probability, _] = sigmoid(sign * output, tail);
    *slope = sign * probability;
    (sign * output).wide().max(0.0) + tail.wide().ln_1p()
}

fn sigmoid_squared<T: Element>(output: &[T], target: SampleTarget<'_, T>, slope: &mut [T]) -> f64 {
    let single = output.len() == 1;
    let mut sum = 0.0;
    for (at, (slope, &output)) in slope.iter_mut().zip(output).enumerate() {
        let [p, q] = sigmoid(output, tail(output));
        let difference = match target {
            SampleTarget::Class(class) if class == usize::from(single) + at => -q,
            SampleTarget::Class(_) => p,
            SampleTarget::Values(values) => p - values[at],
        };
        *slope = difference * p * q;
        sum += difference.wide() * difference.wide();
    }
    0.5 * sum
}

/// `exp(−|x|)`.
fn tail<T: Element>(x: T) -> T {
    let mut tail = [-x.abs()];
    elementary::apply(elementary::ElementaryFunction::Exp, &mut tail);
    tail[0]
}

/// `1/(1 + exp(−x))` and one minus it, from `exp(−|x|)`.
fn sigmoid<T: Element>(x: T, tail: T) -> [T; 2] {
    let (large, small) = (T::one() / (T::one() + tail), tail / (T::one() + tail));
    if x < T::zero() { [small, large] } else { [large, small] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_slope(loss: &Loss, target: SampleTarget<'_, f64>) {
        check_slope_at(&[0.3, -1.2, 2.5, 0.0], loss, target);
    }

    fn check_slope_at(output: &[f64], loss: &Loss, target: SampleTarget<'_, f64>) {
        let mut slope = vec![0.0; output.len()];
        loss.sample(output, target, &mut slope);
        for at in 0..output.len() {
            let moved = |by: f64| {
                let mut near = output.to_vec();
                near[at] += by;
                loss.sample(&near, target, &mut vec![0.0; output.len()])
            };
            let step = 1e-5;
            let estimate = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((estimate - slope[at]).abs() < 1e-9, "{loss:?} output {at}: {estimate} against {}", slope[at]);
        }
    }

    #[test]
    fn slopes_are_derivatives() {
        check_slope(&Loss::CrossEntropy, SampleTarget::Class(1));
        check_slope(&Loss::squared(), SampleTarget::Values(&[1.0, 0.0, -0.5, 2.0]));
        check_slope(&Loss::squared(), SampleTarget::Class(2));
        let weighted = Loss::Squared { output_weights: Some(vec![0.5, 2.0, 0.0, 1.0]) };
        check_slope(&weighted, SampleTarget::Values(&[1.0, 0.0, -0.5, 2.0]));
        check_slope(&Loss::SigmoidSquared, SampleTarget::Class(1));
        check_slope(&Loss::SigmoidSquared, SampleTarget::Values(&[1.0, 0.0, 0.3, 0.9]));
        for output in [-3.0, -0.4, 0.0, 0.7, 5.0] {
            for class in [0, 1] {
                check_slope_at(&[output], &Loss::CrossEntropy, SampleTarget::Class(class));
                check_slope_at(&[output], &Loss::SigmoidSquared, SampleTarget::Class(class));
            }
        }
    }

    /// One output under a sigmoid is a softmax of two, the first of which is 0.
    #[test]
    fn one_output_is_two_with_a_zero() {
        for output in [-800.0, -30.0, -1.5, 0.0, 0.2, 4.0, 40.0, 800.0] {
            for class in [0, 1] {
                let (mut one, mut two) = ([0.0f64], [0.0; 2]);
                let single = Loss::CrossEntropy.sample(&[output], SampleTarget::Class(class), &mut one);
                let double = Loss::CrossEntropy.sample(&[0.0, output], SampleTarget::Class(class), &mut two);
                assert!((single - double).abs() <= 1e-14 * double.max(1.0), "{output}: {single} against {double}");
                assert!((one[0] - two[1]).abs() < 1e-15, "{output}: {one:?} against {two:?}");
            }
        }
    }

    #[test]
    fn sigmoids_keep_their_digits() {
        let loss = |loss: Loss, output: f32, class: usize| {
            let mut slope = [0.0];
            (loss.sample(&[output], SampleTarget::Class(class), &mut slope), slope[0])
        };
        assert_eq!(loss(Loss::CrossEntropy, 1e4, 0), (1e4, 1.0));
        assert_eq!(loss(Loss::CrossEntropy, -1e4, 1), (1e4, -1.0));
        assert_eq!(loss(Loss::CrossEntropy, 1e4, 1), (0.0, 0.0));
        // Where 1 − p is zero in single precision, the loss and its slope are not.
        let (value, slope) = loss(Loss::CrossEntropy, 30.0, 1);
        let tail = (-30f64).exp();
        assert!((value / tail - 1.0).abs() < 1e-6 && (f64::from(slope) / -tail - 1.0).abs() < 1e-6);
        let (value, slope) = loss(Loss::SigmoidSquared, 30.0, 1);
        assert!(
            (value / (0.5 * tail * tail) - 1.0).abs() < 1e-6 && (f64::from(slope) / -(tail * tail) - 1.0).abs() < 1e-6
        );
        assert_eq!(loss(Loss::SigmoidSquared, 0.0, 0), (0.125, 0.125));
    }

    #[test]
    fn cross_entropy_is_stable() {
        let mut slope = [0.0f32; 3];
        let value = Loss::CrossEntropy.sample(&[1e4, -1e4, 0.0], SampleTarget::Class(1), &mut slope);
        assert_eq!(value, 2e4);
        assert_eq!(slope, [1.0, -1.0, 0.0]);
        assert_eq!(Loss::CrossEntropy.sample(&[1e4, -1e4, 0.0], SampleTarget::Class(0), &mut slope), 0.0);
    }

    #[test]
    fn unfit_targets_are_refused() {
        let text = |loss: Loss, targets: Targets<'_, f32>| loss.check(&targets, 2, 3).unwrap_err().to_string();
        assert_eq!(
            text(Loss::CrossEntropy, Targets::classes(&[0, 3])),
            "sample 1 has class 3, but the network has 3 outputs"
        );
        let single = |loss: Loss, classes: &[usize]| loss.check::<f32>(&Targets::classes(classes), 2, 1);
        for loss in [Loss::CrossEntropy, Loss::SigmoidSquared] {
            single(loss.clone(), &[0, 1]).unwrap();
            let text = single(loss, &[1, 2]).unwrap_err().to_string();
            assert!(text.contains("class 2") && text.contains("one output per class"), "{text}");
        }
        let squared = single(Loss::squared(), &[0, 1]).unwrap_err().to_string();
        assert!(squared.contains("class 1") && squared.contains("sigmoid-squared"), "{squared}");
        assert!(text(Loss::CrossEntropy, Targets::values(&[0.0; 6])).contains("needs classes"));
        assert!(text(Loss::squared(), Targets::values(&[0.0; 5])).contains("5 target values"));
        assert!(text(Loss::squared(), Targets::classes(&[0])).contains("1 labels for 2 samples"));
        assert!(text(Loss::squared(), Targets::classes(&[0, 1]).weighted(&[1.0])).contains("sample weights"));
        let three = Loss::Squared { output_weights: Some(vec![1.0]) };
        assert!(text(three, Targets::classes(&[0, 1])).contains("output weights"));
    }
}
