//! The predictions of a posterior.

use super::choice::Predictive;
use super::conformal::Regions;
use crate::Error;
use mercer_learn::laplace::Marginals;
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
        /// The sets of classes, if they were calibrated.
        regions: Option<Regions>,
    },
    /// Of a regression.
    Values {
        /// The outputs of the network.
        mean: Array2<f64>,
        /// The variance of every output, without observation noise.
        variance: Array2<f64>,
        /// The standard deviation of the observation noise.
        noise: f64,
        /// The intervals, if they were calibrated.
        regions: Option<Regions>,
    },
}

impl Predictions {
    pub(super) fn new(found: Marginals, predictive: &Predictive, names: Option<&[String]>) -> Result<Self, Error> {
        let calibrated = predictive.conformal.as_ref();
        if let Some(noise) = found.noise() {
            let seen = (found.mean.view(), found.variance.view(), noise);
            let regions = calibrated.map(|calibrated| Regions::of_numbers(calibrated, seen)).transpose()?;
            return Ok(Self::Values { mean: found.mean, variance: found.variance, noise, regions });
        }
        let probabilities = predictive.probabilities(&found);
        let sets = calibrated.map(|calibrated| Regions::of_classes(calibrated, probabilities.view()));
        Ok(Self::Classes {
            names: names.map(<[String]>::to_vec),
            map_probabilities: found.map(),
            variance: found.variance,
            regions: sets.transpose()?,
            probabilities,
        })
    }
}
