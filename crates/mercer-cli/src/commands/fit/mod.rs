//! `mercer fit`: a machine on a kernel, learnt from samples and written to a folder.

mod report;
mod settings;

use crate::console::Console;
use crate::options::{ClassOptions, KernelOptions, ParameterOptions, PreprocessOptions, references};
use mercer::Error;
use mercer::job::fit::{MachineName, Training};
use mercer::job::{Destination, FitJob, Job, Opened};
use settings::{Settings, parse_machine};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer fit ridge --gram gram.npy --labels targets.npy --alpha 0.1 -o machine
  mercer fit ridge --gram gram.zarr --labels targets.npy --alpha 0.01,0.1,1,10 -o machine     the best, by leave-one-out
  mercer fit process --kernel '1*rbf(lengthscale=2)' --tune --data x.npy --labels y.npy -o machine
  mercer fit svm --net model.onnx --kind trace --data train.npz:x --labels train.npz:y -o machine
  mercer fit glm --net model.onnx --kind ck --normalise --data train.npz:x --labels train.npz:y -o machine
  mercer fit glm --features phi.npy --labels y.npy --penalty 0.5 -o probe                     a linear probe
  mercer fit neighbours --features eigenfunctions.npy --labels y.npy --neighbours 10 -o machine
  mercer predict --from machine --data test.npz:x --labels test.npz:y -o scores.npy

A machine is fitted on a Gram matrix (--gram), on features (--features: eigenfunctions, sketches, a network's own), or on
a kernel of samples (--kernel, --net, --arch), which is then computed in double precision. Regressions: ridge, least-squares, flow (gradient flow,
stopped at --time) and process (a Gaussian process). Classifiers: glm (multinomial logistic in the rows; with features a
linear probe), sgd (the same, one class against the others, as in the surrogates' paper), logistic (two classes, Newton), svm
(one against the others), process-classifier, neighbours and centres.

The folder is all that predictions need: it holds the machine, its kernel with the network, the training samples as they were
stored, and what was done to them. It may be moved; the network's file and the data may be gone. --memory is compared with what the
rows and the solver take before the work begins.";

/// Fit a machine on a kernel: ridge, Gaussian process, logistic, support vectors, neighbours
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Machine")]
pub(crate) struct FitArguments {
    /// Which machine
    #[arg(value_parser = parse_machine())]
    machine: MachineName,

    #[command(flatten)]
    settings: Settings,

    /// The Gram matrix of the training samples, a .npy file or a .zarr store
    #[arg(long, value_name = "FILE", help_heading = "Samples", conflicts_with_all = ["features", "data"])]
    gram: Option<String>,

    /// The features of the training samples, a row each
    #[arg(long, value_name = "FILE[:KEY]", help_heading = "Samples", conflicts_with = "data")]
    features: Option<String>,

    /// The training samples, for a kernel
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", help_heading = "Samples")]
    data: Vec<String>,

    /// What is known of them: a class each, or numbers for a regression. A column of the samples that is given here is no input
    #[arg(long, value_name = "FILE[:KEY]", help_heading = "Samples", required = true)]
    labels: String,

    #[command(flatten)]
    classes: ClassOptions,

    #[command(flatten)]
    preprocess: PreprocessOptions,

    #[command(flatten)]
    kernel: KernelOptions,

    #[command(flatten)]
    parameters: ParameterOptions,

    /// Write the machine to this folder
    #[arg(short = 'o', long = "out", value_name = "DIR", help_heading = "Output")]
    out: PathBuf,

    /// Replace a machine that is there already
    #[arg(long, help_heading = "Output")]
    force: bool,
}

impl FitArguments {
    fn job(&self) -> Result<FitJob, Error> {
        let machine = self.settings.spec(self.machine)?;
        let kernel = self.kernel.spec(&self.parameters);
        let (seed, has_kernel) = (kernel.seed, kernel.is_given());
        let training = match (&self.gram, &self.features) {
            (Some(gram), _) => Training::Gram(gram.clone().into()),
            (None, Some(features)) => Training::Features(features.clone().into()),
            (None, None) if self.data.is_empty() => {
                return Err(Error::new("there is nothing to fit on").hint(
                    "--gram FILE, --features FILE, or --data FILE with --kernel FORMULA or --net MODEL.onnx --kind KIND",
                ));
            }
            (None, None) => Training::Kernel {
                kernel: Box::new(kernel),
                data: references(&self.data),
                preprocess: self.preprocess.spec(),
            },
        };
        if has_kernel && !matches!(training, Training::Kernel { .. }) {
            let flag = if self.gram.is_some() { "--gram" } else { "--features" };
            return Err(Error::new(format!("{flag}: a kernel is computed for --data, not for matrices")));
        }
        let (labels, classes) = (self.labels.clone().into(), self.classes.classes.clone());
        Ok(FitJob { machine, training, labels, classes, seed })
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let destination = Destination { force: self.force, ..Destination::new(&self.out) };
        let outcome = self.job()?.open(&destination, console.opening())?.run(console.context())?;
        console.result(&outcome, || report::outcome(&outcome, &self.out))
    }
}
