//! `--method contrastive`: functions of pairs of views, without a kernel that could be written down.

use super::report::EigenReport;
use super::results::Given;
use super::{EigenArguments, learn};
use crate::console::Console;
use crate::failure::Failure;
use crate::options::Samples;
use mercer::kernel::Real;
use mercer::spectral::learnt::{Augmentation, Pairs};
use std::time::Instant;

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
    /// Flags that mean nothing for a method are refused instead of ignored.
    pub(super) fn check(&self, contrastive: bool) -> Result<(), Failure> {
        let flags = [
            ("--pairs", self.pairs.is_some()),
            ("--crop", self.crop.is_some()),
            ("--flip", self.flip),
            ("--noise", self.noise.is_some()),
        ];
        match flags.iter().find(|(_, given)| *given && !contrastive) {
            Some((flag, _)) => Err(Failure::new(format!("{flag} is for --method contrastive"))),
            None => Ok(()),
        }
    }

    fn augmentation(&self) -> Augmentation {
        let usual = Augmentation::new();
        Augmentation {
            crop: self.crop.unwrap_or(usual.crop),
            flip: self.flip,
            noise: self.noise.unwrap_or(usual.noise),
        }
    }
}

impl EigenArguments {
    pub(super) fn of_pairs<T: Real>(&self, report: &mut EigenReport, console: &Console) -> Result<(), Failure> {
        let samples = Samples::plain("--data", &self.data.data, &self.data.options(), &[], console)?;
        let eval = match &self.eval[..] {
            [] => None,
            texts => Some(Samples::plain("--eval", texts, &self.data.eval_options(), &samples.columns, console)?),
        };
        super::check_eval(eval.as_ref(), &samples)?;
        let second = match &self.pairs.pairs {
            None => None,
            Some(text) => {
                let options = self.data.unlabelled();
                let texts = std::slice::from_ref(text);
                let second = Samples::plain("--pairs", texts, &options, &samples.columns, console)?;
                check_pairs(&second, &samples)?;
                Some(second)
            }
        };
        let [data] = &samples.inputs[..] else { return Err(Failure::new("pairs are views of one input")) };
        let seed = self.kernel.seed();
        let task = self.task(&samples.inputs, 1);
        let network = task.network(&self.learn)?;
        task.advise(&self.learn, console)?;
        let size = self.learn.batch(samples.n_samples);
        let pairs = match &second {
            Some(second) => Pairs::<T>::given(&samples.inputs, &second.inputs, size, seed, console.context()),
            None => Pairs::<T>::augmented(&samples.inputs, self.pairs.augmentation(), size, seed, console.context()),
        };
        let mut pairs = pairs.map_err(|error| {
            let failure = learn::failure(error);
            match data.sample_shape().len() {
                2 => failure.hint("--layout nhw for images without an axis of channels"),
                _ => failure.hint("--pairs FILE gives the other views, --crop 1 only adds noise"),
            }
        })?;
        self.folder.create(self.learn.resume())?;
        let bar = console.context();
        let start = Instant::now();
        let found = self.learn.learnt(network, &mut pairs, &self.course(&bar))?;
        report.seconds = start.elapsed().as_secs_f64();
        report.kernel = Some(match &second {
            Some(second) => format!("pairs with {}", second.places()),
            None => "pairs of random views".to_owned(),
        });
        self.keep(found, Given { samples: &samples, eval: eval.as_ref(), kernel: None, truth: None }, report, &bar)
    }
}

fn check_pairs(second: &Samples, samples: &Samples) -> Result<(), Failure> {
    if second.n_samples != samples.n_samples || second.shapes() != samples.shapes() {
        let text = format!(
            "--pairs has {} samples of shape {:?}, --data has {} of {:?}",
            second.n_samples,
            second.shapes(),
            samples.n_samples,
            samples.shapes()
        );
        return Err(Failure::new(text).hint("row i of one is the other view of row i of the other"));
    }
    Ok(())
}
