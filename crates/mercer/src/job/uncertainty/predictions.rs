//! The predictions of a posterior.

use super::choice::Predictive;
use crate::Error;
use mercer_learn::laplace::Functional;
use mercer_run::Context;
use ndarray::Array2;

/// The predictions of a posterior: a row per sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Predictions {
    /// Of a classifier.
    Classes {
        /// The names of the probability columns; none if classes are numbers.
        names: Option<Vec<String>>,
        /// The probabilities of the classes: of the posterior, or whatever validation samples chose.
        probabilities: Array2<f64>,
        /// The probabilities of the network alone.
        map_probabilities: Array2<f64>,
        /// The variance of every logit.
        variance: Array2<f64>,
    },
    /// Of a regression.
    Values {
        /// The outputs of the network.
        mean: Array2<f64>,
        /// The variance of every output, without observation noise.
        variance: Array2<f64>,
        /// The standard deviation of the observation noise.
        noise: f64,
    },
}

impl Predictions {
    pub(super) fn new(
        functional: &Functional,
        predictive: &Predictive,
        names: Option<&[String]>,
        context: &Context,
    ) -> Result<Self, Error> {
        let variance = functional.variances();
        Ok(match functional.noise() {
            Some(noise) => Self::Values { mean: functional.mean.clone(), variance, noise },
            None => Self::Classes {
                names: names.map(<[String]>::to_vec),
                probabilities: predictive.probabilities(functional, context)?,
                map_probabilities: functional.map(),
                variance,
            },
        })
    }
}
