//! Temperature scaling: one number that makes a network as sure as it is right (Guo et al. 2017, arXiv 1706.04599).
//!
//! ```text
//! p(x) = softmax(f(x)/T),   T = argmin_T  −Σᵢ ln p(xᵢ)_{yᵢ}
//! ```
//!
//! In `β = 1/T` the loss is convex, with the derivative `mean( Σ_c p_c f_c − f_y )`. Bisection finds its root. The samples must
//! not be those that the network was trained on: there it is surer than it may be.

use super::predictive::Functional;
use crate::error::{LearnError, Result, check_size, setting};
use ndarray::{Array2, ArrayView2};

/// `|ln T|` is at most this. Beyond it, probabilities are certain or uniform.
const LARGEST: f64 = 7.0;

/// Halvings of the interval of `ln T`, to the last digits.
const HALVINGS: usize = 56;

impl Functional {
    /// The temperature at which the network alone predicts these classes best. It stays between e⁻⁷ and e⁷: a network that is
    /// right on all samples has no best one.
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
        let (mut low, mut high) = (-LARGEST, LARGEST);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            // The loss falls with β until its best value; where all is certain it is flat.
            if slope(logits.view(), classes, middle.exp()) <= 0.0 { low = middle } else { high = middle }
        }
        Ok((-0.5 * (low + high)).exp())
    }

    /// The probabilities of the network alone at a temperature.
    pub fn tempered(&self, temperature: f64) -> Array2<f64> {
        self.likelihood.probabilities((&self.mean / temperature).view())
    }
}

/// The derivative of the loss by `β`.
fn slope(logits: ArrayView2<'_, f64>, classes: &[usize], beta: f64) -> f64 {
    let mut sum = 0.0;
    for (row, &class) in logits.outer_iter().zip(classes) {
        let largest = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let (mut total, mut mean) = (0.0, 0.0);
        for &logit in row {
            let weight = (beta * (logit - largest)).exp();
            total += weight;
            mean += weight * logit;
        }
        sum += mean / total - row[class];
    }
    sum / classes.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laplace::Likelihood;
    use crate::metrics::negative_log_likelihood;
    use ndarray::{Array3, array};

    fn functional(mean: Array2<f64>, likelihood: Likelihood) -> Functional {
        let (samples, outputs) = mean.dim();
        Functional { mean, covariance: Array3::zeros((samples, outputs, outputs)), clipped: 0, likelihood }
    }

    /// One sample in four of a kind is of the other class, so the best probability is ¾: `1/(1 + e^(−4/T)) = ¾`.
    #[test]
    fn frequencies_become_probabilities() {
        let mean = Array2::from_shape_fn((8, 2), |(_, class)| 4.0 * class as f64);
        let found = functional(mean.clone(), Likelihood::Categorical);
        let classes = [1, 1, 1, 0, 1, 1, 1, 0];
        let temperature = found.fit_temperature(&classes).unwrap();
        assert!((temperature - 4.0 / 3f64.ln()).abs() < 1e-12, "{temperature}");
        assert!((found.tempered(temperature)[(0, 1)] - 0.75).abs() < 1e-12);
        // One output is the logit of the second class.
        let single = functional(mean.slice_move(ndarray::s![.., 1..]), Likelihood::Bernoulli);
        assert!((single.fit_temperature(&classes).unwrap() - temperature).abs() < 1e-12);
    }

    /// No temperature on a fine grid is better.
    #[test]
    fn it_is_the_best_one() {
        let mean = Array2::from_shape_fn((40, 3), |(row, class)| ((7 * row + 5 * class) % 11) as f64 - 4.0);
        let classes: Vec<usize> = (0..40).map(|row| (row * row + row / 3) % 3).collect();
        let found = functional(mean, Likelihood::Categorical);
        let loss = |temperature| negative_log_likelihood(found.tempered(temperature).view(), &classes).unwrap();
        let best = loss(found.fit_temperature(&classes).unwrap());
        assert!((-60..60).all(|step| loss((0.1 * f64::from(step)).exp()) >= best - 1e-12));
    }

    #[test]
    fn a_network_that_is_always_right_gets_the_lowest_one() {
        let found = functional(array![[3.0, 0.0], [0.0, 2.0]], Likelihood::Categorical);
        assert!((found.fit_temperature(&[0, 1]).unwrap().ln() + LARGEST).abs() < 1e-9);
        assert!((found.fit_temperature(&[1, 0]).unwrap().ln() - LARGEST).abs() < 1e-9);
        assert!(found.fit_temperature(&[0]).is_err() && found.fit_temperature(&[0, 2]).is_err());
        let numbers = functional(array![[3.0]], Likelihood::Gaussian { noise: 1.0 });
        assert!(numbers.fit_temperature(&[0]).is_err());
    }
}
