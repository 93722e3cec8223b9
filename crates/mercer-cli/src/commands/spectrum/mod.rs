//! `mercer spectrum`: spectra of weights and kernels, over training.

mod report;

use crate::console::Console;
use crate::options::{CheckpointOptions, DataOptions, KERNEL, NET, PrecisionOption, SeedOption, reference};
use crate::output::{DryRunOption, OutputFile};
use mercer::Error;
use mercer::job::{Destination, SpectrumJob};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer spectrum --net model.onnx                                      are the weights more than noise?
  mercer spectrum --net model.onnx --data x.npy --labels y.npy          spectra of the kernels, and their alignment
  mercer spectrum … --weights run/epoch-*.safetensors -o spectra        when does a spike leave the bulk?
  mercer spectrum … --direction teacher.npy                             and what is it aligned with?
  mercer spectrum … --products 300                                      without matrices, for many samples";

const MORE: &str = "\
A weight with h outputs and d inputs has the eigenvalues of W·Wᵀ/d. A convolution becomes a matrix with a row per output
channel. Their bulk is compared with the law of Marchenko and Pastur, whose variance is fitted to it; eigenvalues beyond
its edge, with the margin that noise needs in a matrix of this size, are spikes. The same numbers in random places give
another edge. The tail is fitted by a power law with exponent alpha.

With --data, the spectra of the conjugate kernel (ck) and of the tangent kernel (--kernel) follow, with labels their
alignment (KTA) too. Checkpoints are compared with the first of them. With -o, the folder holds weights.svg,
kernels.svg, quantiles.svg, training.svg and result.json.";

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{MORE}")
}

/// Look at spectra of weights and kernels: bulk, spikes, tails, alignment with labels, over training
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mercer spectrum [OPTIONS] --net MODEL.onnx",
    after_help = EXAMPLES,
    after_long_help = after_long_help(),
    next_help_heading = "Network",
    mut_arg("data", |arg| arg.required(false))
)]
pub(crate) struct SpectrumArguments {
    #[arg(long, value_name = "MODEL.onnx", help = NET)]
    net: PathBuf,

    #[command(flatten)]
    checkpoints: CheckpointOptions,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    spectrum: SpectrumOptions,

    #[command(flatten)]
    output: OutputFile,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

/// What is looked at.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Spectra")]
struct SpectrumOptions {
    /// Layers to look at (repeatable; may contain * and ?) [default: all weights]
    #[arg(long, value_name = "GLOB")]
    layer: Vec<String>,

    #[arg(long, value_name = "EXPRESSION", help = KERNEL, default_value = "trace", requires = "data")]
    kernel: String,

    /// Directions among the inputs of a weight, one per row, to compare singular vectors with
    #[arg(long, value_name = "FILE[:KEY]")]
    direction: Option<String>,

    /// Leading eigenvectors to compare with labels and earlier checkpoints
    #[arg(long, value_name = "K", default_value_t = 10)]
    leading: usize,

    /// Estimate spectra of kernels from this many products instead of a matrix
    #[arg(long, value_name = "N", requires = "data")]
    products: Option<usize>,
}

impl SpectrumArguments {
    fn job(&self) -> Result<SpectrumJob, Error> {
        let data = self.data.spec();
        if data.data.is_empty() && data.labels.is_some() {
            return Err(Error::new("‹labels›: there are no samples").hint("‹data› FILE[:KEY]"));
        }
        Ok(SpectrumJob {
            net: self.net.clone(),
            parameters: self.checkpoints.spec(),
            checkpoints: self.checkpoints.weights.clone(),
            layers: self.spectrum.layer.clone(),
            data: Some(data).filter(|data| !data.data.is_empty()),
            kernel: self.spectrum.kernel.clone(),
            direction: reference(&self.spectrum.direction),
            leading: self.spectrum.leading,
            products: self.spectrum.products,
            seed: self.seed.seed,
            precision: self.precision.precision,
        })
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let destination = Destination { dry_run: self.dry_run.dry_run, ..self.output.destination() };
        let text = |outcome: &_| report::outcome(outcome, self.output.out.as_deref());
        console.perform(&self.job()?, &destination, report::plan, text).map(drop)
    }
}
