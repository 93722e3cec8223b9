//! Preprocessing between the file and the network.

use super::choice;
use mercer::spec::{Layout, PreprocessSpec};

/// Preprocessing of float inputs, in this order. Token ids and other integers are left unchanged.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct PreprocessOptions {
    /// Multiply the data by this factor, such as 1/255
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor, allow_negative_numbers = true)]
    scale: Option<f64>,

    /// Then subtract this: one number, or one per channel as in 0.485,0.456,0.406
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_negative_numbers = true)]
    mean: Vec<f64>,

    /// Then divide by this: one number, or one per channel
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    std: Vec<f64>,

    /// Standardise columns by their mean and standard deviation in the training data
    #[arg(long, conflicts_with_all = ["mean", "std"])]
    standardise: bool,

    /// Axes of images in the data; the network sees nchw
    #[arg(long, value_name = "LAYOUT", value_parser = choice::<Layout>())]
    layout: Option<Layout>,
}

impl PreprocessOptions {
    /// As data.
    pub(crate) fn spec(&self) -> PreprocessSpec {
        let mut spec = PreprocessSpec::default();
        (spec.scale, spec.layout, spec.standardise) = (self.scale, self.layout, self.standardise);
        (spec.mean, spec.std) = (self.mean.clone(), self.std.clone());
        spec
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
}
