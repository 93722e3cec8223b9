//! The choice between the posterior and the network alone, by samples that the network was not trained on.

use super::choice::{Predictive, Predictor};
use super::conformal::calibrate;
use super::findings::Chosen;
use super::opened::OpenedUncertainty;
use crate::Error;
use mercer_data::Labels;
use mercer_kernel::Real;
use mercer_learn::laplace::{Laplace, Marginals};
use mercer_learn::metrics::negative_log_likelihood;
use mercer_run::Context;
use ndarray::Array2;

impl OpenedUncertainty {
    /// Fits a temperature to the validation samples, and takes what predicts them best. Without such samples nothing is
    /// chosen, and the result is the posterior's.
    pub(super) fn select<T: Real>(
        &self,
        laplace: &Laplace<T>,
        context: &Context,
    ) -> Result<(Predictive, Option<Chosen>), Error> {
        let predictive = self.job.predictive();
        let Some(samples) = &self.parts.divided.choosing else { return Ok((predictive, None)) };
        let Labels::Classes(classes) = &samples.labels else { return Ok((predictive, None)) };
        let _phase = context.phase("choosing");
        let classes = classes.indices();
        let found = laplace.marginals(&samples.inputs, predictive.draws().as_ref(), context);
        let found = found.map_err(|error| self.job.failure(error))?;
        let temperature = found.fit_temperature(classes)?;
        let loss = |probabilities: Array2<f64>| negative_log_likelihood(probabilities.view(), classes);
        let (network_nll, scaled_nll) = (loss(found.map())?, loss(found.tempered(temperature))?);
        let laplace_nll = loss(predictive.posterior(&found))?;
        let predictor = if scaled_nll < laplace_nll { Predictor::Temperature } else { Predictor::Laplace };
        let n_samples = samples.n_samples();
        let chosen = Chosen { predictor, n_samples, temperature, network_nll, scaled_nll, laplace_nll };
        Ok((Predictive { predictor, temperature: Some(temperature), ..predictive }, Some(chosen)))
    }
}

impl OpenedUncertainty {
    /// Calibrates sets or intervals by the validation samples that chose nothing.
    pub(super) fn calibrate<T: Real>(
        &self,
        laplace: &Laplace<T>,
        predictive: Predictive,
        context: &Context,
    ) -> Result<Predictive, Error> {
        let (Some(coverage), Some(samples)) = (self.job.conformal, &self.parts.divided.calibrating) else {
            return Ok(predictive);
        };
        let _phase = context.phase("calibrating");
        let found = laplace.marginals(&samples.inputs, predictive.draws().as_ref(), context);
        let found = found.map_err(|error| self.job.failure(error))?;
        let conformal = calibrate(&found, &predictive, &samples.labels, coverage)?;
        Ok(Predictive { conformal: Some(conformal), ..predictive })
    }
}

/// A row of the table of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Network,
    Scaled,
    Laplace,
}

impl Row {
    /// Of a figure.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Network => "Network",
            Self::Scaled => "Temperature",
            Self::Laplace => "Laplace",
        }
    }

    /// What the names of its files begin with.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Network => "map_",
            Self::Scaled => "scaled_",
            Self::Laplace => "laplace_",
        }
    }
}

impl Predictive {
    /// The row that is the result.
    pub(super) fn result(&self) -> Row {
        match self.predictor {
            Predictor::Temperature => Row::Scaled,
            Predictor::Laplace => Row::Laplace,
        }
    }

    /// The probabilities of all rows: of the network alone, at its temperature if there is one, and of the posterior.
    pub(super) fn rows(&self, found: &Marginals) -> Vec<(Row, Array2<f64>)> {
        let mut rows = vec![(Row::Network, found.map())];
        rows.extend(self.temperature.map(|temperature| (Row::Scaled, found.tempered(temperature))));
        rows.push((Row::Laplace, self.posterior(found)));
        rows
    }
}
