//! Temperature scaling: one number that makes a network as sure as it is right (Guo et al. 2017, arXiv 1706.04599).
//!
//! ```text
//! p(x) = softmax(f(x)/T),   T = argmin_T  −Σᵢ ln p(xᵢ)_{yᵢ} + ½ (ln T)²
//! ```
//!
//! The last term is ours: a standard normal prior of `ln T`. Without it, a network that is right on all samples would be made
//! certain, however few they are. With hundreds of samples it does not matter. The samples must not be those that the network was
//! trained on: there it is surer than it may be.

use super::marginals::Marginals;
use crate::error::{LearnError, Result, check_size, setting};
use crate::softmax::log_softmax;
use ndarray::{Array2, ArrayView2};

/// `|ln T|` is at most this; the prior makes larger ones absurd.
const LARGEST: f64 = 4.0;

/// Values of `ln T` that are tried before the best one is refined.
const TRIED: usize = 65;

/// Steps of the refinement. Each shrinks the interval by the golden ratio.
const STEPS: usize = 60;

impl Marginals {
    /// The temperature at which the network alone predicts these classes best.
    ///
    /// # Errors
    /// For a regression, no samples, and classes that do not fit the outputs.
    pub fn fit_temperature(&self, classes: &[usize]) -> Result<f64> {
        if self.noise().is_some() {
            return Err(setting("the temperature", "of a regression", "only classes have one"));
        }
        check_size("the number of labels", self.n_samples(), classes.len())?;
        if classes.is_empty() {
            return Err(LearnError::Empty { what: "a temperature" });
        }
        let logits = self.likelihood.logits(self.mean.view());
        if let Some(row) = classes.iter().position(|&class| class >= logits.ncols()) {
            return Err(LearnError::Class { row, class: classes[row], n_classes: logits.ncols() });
        }
        let loss = |log: f64| objective(logits.view(), classes, log);
        let place = |at: usize| LARGEST * (2.0 * at as f64 / (TRIED - 1) as f64 - 1.0);
        let least = (0..TRIED).map(|at| (loss(place(at)), at)).min_by(|a, b| a.0.total_cmp(&b.0));
        let at = least.map_or(0, |(_, at)| at);
        Ok(golden(loss, place(at.saturating_sub(1)), place((at + 1).min(TRIED - 1))).exp())
    }

    /// The probabilities of the network alone at a temperature.
    pub fn tempered(&self, temperature: f64) -> Array2<f64> {
        self.likelihood.probabilities((&self.mean / temperature).view())
    }
}

/// What the temperature minimises, at `ln T`.
fn objective(logits: ArrayView2<'_, f64>, classes: &[usize], log: f64) -> f64 {
    let scaled = log_softmax(logits.mapv(|logit| logit * (-log).exp()).view());
    let fit: f64 = scaled.outer_iter().zip(classes).map(|(row, &class)| -row[class]).sum();
    fit + 0.5 * log * log
}

/// The least value of a function between two points, by golden sections.
fn golden(function: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (function(left), function(right));
    for _ in 0..STEPS {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = function(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = function(right);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laplace::Likelihood;
    use crate::metrics::negative_log_likelihood;
    use ndarray::array;

    fn marginals(mean: Array2<f64>, likelihood: Likelihood) -> Marginals {
        Marginals { variance: Array2::zeros(mean.dim()), mean, drawn: None, clipped: 0, likelihood }
    }

    /// One sample in four is of the other class, so the best probability is ¾: `1/(1 + e^(−4/T)) = ¾`. With 8,000 samples the prior
    /// moves it by less than a thousandth.
    #[test]
    fn frequencies_become_probabilities() {
        let mean = Array2::from_shape_fn((8000, 2), |(_, class)| 4.0 * class as f64);
        let found = marginals(mean.clone(), Likelihood::Categorical);
        let classes: Vec<usize> = (0..8000).map(|row| usize::from(row % 4 != 3)).collect();
        let temperature = found.fit_temperature(&classes).unwrap();
        assert!((temperature * 3f64.ln() / 4.0 - 1.0).abs() < 1e-3, "{temperature}");
        assert!((found.tempered(temperature)[(0, 1)] - 0.75).abs() < 1e-3);
        // One output is the logit of the second class.
        let single = marginals(mean.slice_move(ndarray::s![.., 1..]), Likelihood::Bernoulli);
        assert!((single.fit_temperature(&classes).unwrap() - temperature).abs() < 1e-6);
    }

    /// No temperature on a fine grid is better, by the likelihood of the metrics and the prior.
    #[test]
    fn it_is_the_best_one() {
        let mean = Array2::from_shape_fn((40, 3), |(row, class)| ((7 * row + 5 * class) % 11) as f64 - 4.0);
        let classes: Vec<usize> = (0..40).map(|row| (row * row + row / 3) % 3).collect();
        let found = marginals(mean, Likelihood::Categorical);
        let loss = |log: f64| {
            let mean = negative_log_likelihood(found.tempered(log.exp()).view(), &classes).unwrap();
            40.0 * mean + 0.5 * log * log
        };
        let best = loss(found.fit_temperature(&classes).unwrap().ln());
        assert!((-400..400).all(|step| loss(0.01 * f64::from(step)) >= best - 1e-9));
    }

    /// A few samples do not make a network certain, nor uniform.
    #[test]
    fn a_network_that_is_always_right_is_not_made_certain() {
        let found = marginals(array![[3.0, 0.0], [0.0, 2.0]], Likelihood::Categorical);
        let right = found.fit_temperature(&[0, 1]).unwrap();
        assert!(right < 1.0 && right > 0.5, "{right}");
        let wrong = found.fit_temperature(&[1, 0]).unwrap();
        assert!(wrong > 1.0 && wrong < 10.0, "{wrong}");
        assert!(found.fit_temperature(&[0]).is_err() && found.fit_temperature(&[0, 2]).is_err());
        let numbers = marginals(array![[3.0]], Likelihood::Gaussian { noise: 1.0 });
        assert!(numbers.fit_temperature(&[0]).is_err());
    }
}
