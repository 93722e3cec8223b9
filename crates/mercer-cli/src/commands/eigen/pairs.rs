//! Where pairs of views come from.

use mercer::job::eigen::Views;
use mercer::spectral::learnt::Augmentation;

/// Where pairs come from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Pairs of views (contrastive)")]
pub(super) struct PairOptions {
    /// The other view of every sample: row i belongs to row i of --data [default: two random changes of each image]
    #[arg(long, value_name = "FILE[:KEY]", conflicts_with_all = ["crop", "flip", "noise"])]
    pairs: Option<String>,

    /// The smallest side of a random crop, as a share of the image's; 1 does not crop [default: 0.6]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    crop: Option<f64>,

    /// Flip half of the images left to right; not for letters and digits
    #[arg(long)]
    flip: bool,

    /// The standard deviation of the noise that is added to every number [default: 0.1]
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true)]
    noise: Option<f64>,
}

impl PairOptions {
    /// The first flag that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("‹pairs›", self.pairs.is_some()),
            ("‹crop›", self.crop.is_some()),
            ("‹flip›", self.flip),
            ("‹noise›", self.noise.is_some()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// As data.
    pub(super) fn views(&self) -> Views {
        let usual = Augmentation::new();
        match &self.pairs {
            Some(text) => Views::Pairs(text.clone().into()),
            None => Views::Augmented(Augmentation {
                crop: self.crop.unwrap_or(usual.crop),
                flip: self.flip,
                noise: self.noise.unwrap_or(usual.noise),
            }),
        }
    }
}
