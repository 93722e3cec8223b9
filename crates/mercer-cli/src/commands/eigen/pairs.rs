//! Where pairs of views come from.

use mercer::job::eigen::Views;
use mercer::spectral::learnt::Augmentation;

/// Where pairs come from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Pairs of views")]
pub(super) struct PairOptions {
    /// Second view of every sample, row by row [default: random changes of the images]
    #[arg(long, value_name = "FILE[:KEY]", conflicts_with_all = ["crop", "flip", "view_noise"])]
    pairs: Option<String>,

    /// Smallest side of a random crop, as a share of the image; 1 does not crop [default: 0.6]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    crop: Option<f64>,

    /// Flip half of the images left to right; not for letters and digits
    #[arg(long)]
    flip: bool,

    /// Standard deviation of the noise added to every view [default: 0.1]
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true)]
    view_noise: Option<f64>,
}

impl PairOptions {
    /// As data.
    pub(super) fn views(&self) -> Views {
        let usual = Augmentation::new();
        match &self.pairs {
            Some(text) => Views::Pairs(text.clone().into()),
            None => Views::Augmented(Augmentation {
                crop: self.crop.unwrap_or(usual.crop),
                flip: self.flip,
                noise: self.view_noise.unwrap_or(usual.noise),
            }),
        }
    }
}
