//! Preprocessing between the file and the network.

use super::standardise;
use crate::Error;
use mercer_data::{Dataset, Preprocess, Step};
use mercer_run::Context;
use serde::{Deserialize, Serialize};

/// Preprocessing of float inputs: scale, then mean and std, then layout. Token ids and other whole numbers stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PreprocessSpec {
    /// Multiply the data by this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,

    /// Subtract this: one number, or one per channel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f64>,

    /// Divide by this: one number, or one per channel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub std: Vec<f64>,

    /// Where the channels of images are in the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,

    /// Subtract the mean of every column of the training samples, and divide by its standard deviation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub standardise: bool,

    /// The steps of the training samples, for other sets of the same job.
    #[serde(skip)]
    pub learnt: Option<Vec<Preprocess>>,
}

/// The order of the axes of a set of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Samples, rows, columns, channels; the channels are moved to the front.
    Nhwc,
    /// Samples, channels, rows, columns.
    Nchw,
    /// Samples, rows, columns; a channel axis is added.
    Nhw,
}

mercer_run::named! {
    Layout, "layout":
    Nchw = "nchw", "Samples, channels, rows, columns";
    Nhwc = "nhwc", "Samples, rows, columns, channels";
    Nhw = "nhw", "Samples, rows, columns: one channel";
}

impl PreprocessSpec {
    /// Whether there is no preprocessing.
    pub fn is_empty(&self) -> bool {
        !self.is_given()
    }

    /// Whether there is any preprocessing.
    pub fn is_given(&self) -> bool {
        self.scale.is_some()
            || !self.mean.is_empty()
            || !self.std.is_empty()
            || self.layout.is_some()
            || self.standardise
    }

    /// An error if columns are to be standardised where there are no training samples.
    pub(crate) fn check_for_saved(&self) -> Result<(), Error> {
        match self.standardise {
            true => Err(Error::new("‹standardise› takes means from training data, and there are none here")
                .hint("leave it out: a saved folder uses the means of its training data")),
            false => Ok(()),
        }
    }

    /// The steps for samples of a shape, except standardisation, which depends on the samples.
    pub fn steps(&self, sample_shape: &[usize]) -> Preprocess {
        let mut steps = Preprocess::new();
        if let Some(factor) = self.scale {
            steps = steps.scale(factor);
        }
        let last = self.layout == Some(Layout::Nhwc);
        if !self.mean.is_empty() || !self.std.is_empty() {
            let or = |numbers: &[f64], default: f64| if numbers.is_empty() { vec![default] } else { numbers.to_vec() };
            let axis = if last { sample_shape.len().saturating_sub(1) } else { 0 };
            steps = steps.then(Step::Normalise { mean: or(&self.mean, 0.0), std: or(&self.std, 1.0), axis });
        }
        match self.layout {
            // Images without an axis of channels have nothing to move.
            Some(Layout::Nhwc) if sample_shape.len() > 2 => steps.channels_first(),
            Some(Layout::Nhw) if sample_shape.len() == 2 => steps.add_channel(),
            _ => steps,
        }
    }

    /// The data of an input, preprocessed. Columns are standardised by the means and standard deviations of the
    /// training samples.
    pub(super) fn apply(&self, input: usize, dataset: Dataset, context: &Context) -> Result<Dataset, Error> {
        if self.standardise && (!self.mean.is_empty() || !self.std.is_empty()) {
            let text =
                "‹standardise› takes the mean and the standard deviation from the data; leave out ‹mean› and ‹std›";
            return Err(Error::new(text));
        }
        let steps = self.steps(dataset.sample_shape());
        let place = dataset.place().to_owned();
        let wrong = |error: mercer_data::DataError| {
            Error::new(format!("{place}: {error}")).hint("check ‹scale›, ‹mean›, ‹std› and ‹layout›")
        };
        let learnt = self.learnt.as_ref().and_then(|inputs| inputs.get(input));
        match (self.standardise, learnt) {
            (true, Some(steps)) => dataset.with_preprocess(steps.clone()).map_err(wrong),
            (true, None) => standardise::columns(dataset.with_preprocess(steps).map_err(wrong)?, context),
            (false, _) if steps.is_empty() => Ok(dataset),
            (false, _) => dataset.with_preprocess(steps).map_err(wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_normalised_where_they_are() {
        let mut options = PreprocessSpec { mean: vec![0.1, 0.2, 0.3], ..Default::default() };
        assert_eq!(options.steps(&[3, 8, 8]).sample_shape(&[3, 8, 8]).unwrap(), [3, 8, 8]);
        options.layout = Some(Layout::Nhwc);
        assert_eq!(options.steps(&[8, 8, 3]).sample_shape(&[8, 8, 3]).unwrap(), [3, 8, 8]);
        let grey = PreprocessSpec { layout: Some(Layout::Nhw), ..Default::default() };
        assert_eq!(grey.steps(&[8, 9]).sample_shape(&[8, 9]).unwrap(), [1, 8, 9]);
    }
}
