//! What happens to data between the file and the network.

use crate::failure::Failure;
use mercer::data::{Dataset, Preprocess, Step};

/// Preprocessing of float inputs; token ids and other whole numbers stay as they are.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Preprocessing (scale, then mean and std, then layout)")]
pub(crate) struct PreprocessOptions {
    /// Multiply the data by this, for instance 1/255
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor, allow_negative_numbers = true)]
    scale: Option<f64>,

    /// Subtract this: one number, or one per channel as in 0.485,0.456,0.406
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_negative_numbers = true)]
    mean: Vec<f64>,

    /// Divide by this: one number, or one per channel
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    std: Vec<f64>,

    /// Where the channels of images are in the data: nhwc brings them to the front, nhw makes one [default: nchw]
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<Layout>,
}

/// The order of the axes of a set of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Layout {
    /// Samples, rows, columns, channels
    Nhwc,
    /// Samples, channels, rows, columns
    Nchw,
    /// Samples, rows, columns
    Nhw,
}

impl PreprocessOptions {
    /// Whether the user asks for any.
    pub(crate) fn is_given(&self) -> bool {
        self.scale.is_some() || !self.mean.is_empty() || !self.std.is_empty() || self.layout.is_some()
    }

    /// The steps for samples of a shape.
    pub(crate) fn steps(&self, sample_shape: &[usize]) -> Preprocess {
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

    /// The data, read through these steps from now on.
    pub(crate) fn apply(&self, dataset: Dataset) -> Result<Dataset, Failure> {
        let steps = self.steps(dataset.sample_shape());
        if steps.is_empty() {
            return Ok(dataset);
        }
        let place = dataset.place().to_owned();
        dataset.with_preprocess(steps).map_err(|error| {
            Failure::new(format!("{place}: {error}")).hint("check --scale, --mean, --std and --layout")
        })
    }
}

/// A number, or a fraction of two.
fn parse_factor(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| format!("`{text}` is not a number"));
    let factor = match text.split_once('/') {
        Some((above, below)) => number(above)? / number(below)?,
        None => number(text)?,
    };
    if factor.is_finite() && factor != 0.0 {
        Ok(factor)
    } else {
        Err("the factor must be finite and not zero".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_may_be_fractions() {
        assert_eq!(parse_factor("1/255"), Ok(1.0 / 255.0));
        assert_eq!(parse_factor("0.5"), Ok(0.5));
        for text in ["", "1/", "1/0", "x", "nan", "0"] {
            assert!(parse_factor(text).is_err(), "{text}");
        }
    }

    #[test]
    fn channels_are_normalised_where_they_are() {
        let mut options = PreprocessOptions { mean: vec![0.1, 0.2, 0.3], ..Default::default() };
        assert_eq!(options.steps(&[3, 8, 8]).sample_shape(&[3, 8, 8]).unwrap(), [3, 8, 8]);
        options.layout = Some(Layout::Nhwc);
        assert_eq!(options.steps(&[8, 8, 3]).sample_shape(&[8, 8, 3]).unwrap(), [3, 8, 8]);
        let grey = PreprocessOptions { layout: Some(Layout::Nhw), ..Default::default() };
        assert_eq!(grey.steps(&[8, 9]).sample_shape(&[8, 9]).unwrap(), [1, 8, 9]);
    }
}
