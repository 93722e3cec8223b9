//! Predictions of a posterior, a block of samples at a time.

use super::machine::{Curvature, Laplace, count, sample_shapes, shifted};
use super::marginals::Marginals;
use super::predictive::{Draws, Functional, PredictiveDraws};
use crate::error::{Result, setting};
use mercer_data::{Dataset, RowBlock};
use mercer_kernel::Real;
use mercer_run::Context;
use ndarray::{Array2, Array3, s};
use std::ops::Range;

/// The posterior over the outputs of a block of samples.
struct Part {
    mean: Array2<f64>,
    spread: Spread,
    clipped: usize,
}

/// Its covariances, or the variances alone.
enum Spread {
    Joint(Array3<f64>),
    Variances(Array2<f64>),
}

impl<T: Real> Laplace<T> {
    /// The posterior over the outputs at other samples, jointly: with the covariances between the outputs of a sample, which
    /// takes the square of their number for every sample. Most predictions need only the [marginals](Self::marginals).
    pub fn predict(&self, data: &[Dataset], context: &Context) -> Result<Functional> {
        let (total, side) = (count(data)?, self.n_outputs());
        let mut functional = Functional {
            mean: Array2::zeros((total, side)),
            covariance: Array3::zeros((total, side, side)),
            clipped: 0,
            likelihood: self.settings.likelihood,
        };
        self.walk(data, true, context, |rows, own| {
            functional.mean.slice_mut(s![rows.clone(), ..]).assign(&own.mean);
            if let Spread::Joint(covariance) = &own.spread {
                functional.covariance.slice_mut(s![rows, .., ..]).assign(covariance);
            }
            functional.clipped += own.clipped;
            Ok(())
        })?;
        Ok(functional)
    }

    /// The posterior over every output by itself, and the mean probabilities over draws if they are asked for. Covariances
    /// exist for a block of samples at a time, and not at all where the structure gives variances without them.
    pub fn marginals(&self, data: &[Dataset], draws: Option<&PredictiveDraws>, context: &Context) -> Result<Marginals> {
        let (total, side) = (count(data)?, self.n_outputs());
        let n_classes = if self.settings.likelihood.is_of_classes() { side.max(2) } else { 0 };
        let mut random = draws.filter(|_| n_classes > 0).map(Draws::new).transpose()?;
        let mut found = Marginals {
            mean: Array2::zeros((total, side)),
            variance: Array2::zeros((total, side)),
            drawn: random.as_ref().map(|_| Array2::zeros((total, n_classes))),
            clipped: 0,
            likelihood: self.settings.likelihood,
        };
        let joint = random.is_some() || !matches!(self.curvature, Curvature::Sides(_));
        self.walk(data, joint, context, |rows, own| {
            found.mean.slice_mut(s![rows.clone(), ..]).assign(&own.mean);
            found.clipped += own.clipped;
            let mut variance = found.variance.slice_mut(s![rows.clone(), ..]);
            let covariance = match own.spread {
                Spread::Variances(own) => {
                    variance.assign(&own);
                    return Ok(());
                }
                Spread::Joint(covariance) => covariance,
            };
            let (likelihood, clipped) = (self.settings.likelihood, own.clipped);
            let own = Functional { mean: own.mean, covariance, clipped, likelihood };
            variance.assign(&own.variances());
            if let (Some(random), Some(drawn)) = (&mut random, &mut found.drawn) {
                drawn.slice_mut(s![rows, ..]).assign(&random.next(&own, context)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Hands the posterior over the outputs of one block of samples after another to `each`.
    fn walk(
        &self,
        data: &[Dataset],
        joint: bool,
        context: &Context,
        mut each: impl FnMut(Range<usize>, Part) -> Result<()>,
    ) -> Result<()> {
        let total = count(data)?;
        let shapes = sample_shapes(data);
        if shapes != self.samples {
            let reason = "it must be that of the samples it was fitted on";
            return Err(setting("the shape of samples", format!("{shapes:?} instead of {:?}", self.samples), reason));
        }
        for rows in self.blocks(total, joint) {
            context.check()?;
            let block = RowBlock::<T>::read(data, rows.clone())?;
            let slices = block.slices();
            let block = || -> Result<_> {
                let precision = self.prior_precision();
                let (batch, mean) = self.forward(&slices, rows.len(), context)?;
                let (spread, clipped) = match &self.curvature {
                    Curvature::Blocks(blocks) => (Spread::Joint(blocks.covariance(&batch, precision)?), 0),
                    Curvature::Dense(dense) => {
                        let (covariance, clipped) = dense.covariance(&batch, precision)?;
                        (Spread::Joint(covariance), clipped)
                    }
                    Curvature::Last(last) => (Spread::Joint(last.covariance(&batch, precision)?), 0),
                    Curvature::Sides(sides) if joint => (Spread::Joint(sides.covariance(&batch, precision)?), 0),
                    Curvature::Sides(sides) => (Spread::Variances(sides.variances(&batch, precision)?), 0),
                };
                Ok(Part { mean, spread, clipped })
            };
            let own = block().map_err(|error| shifted(error, rows.start))?;
            each(rows.clone(), own)?;
            context.report(rows.end, total, "samples");
        }
        Ok(())
    }
}
