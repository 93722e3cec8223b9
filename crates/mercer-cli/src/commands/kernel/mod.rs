//! `mercer kernel`: the Gram matrix or the features of a network's kernel or a classic kernel.

mod report;

use crate::console::Console;
use crate::options::{DataOptions, KernelOptions, ParameterOptions, PrecisionOption, references};
use crate::output::{DryRunOption, OutputFile, PartOption, ResumeOption};
use mercer::Error;
use mercer::job::{Destination, Job, KernelJob, Opened};
use std::ops::Range;

const EXAMPLES: &str = "\
Examples:
  mercer kernel --net model.onnx --data images.npy --kernel trace -o gram.npy
  mercer kernel --net model.onnx --data test.npz:x --against train.npz:x --kernel 'normalised(pseudo)' -o cross.npy
  mercer kernel --net model.onnx --data images.npy --kernel trace --by-layer -o layers.npy
  mercer kernel --net binary.onnx --data x.npy --kernel 'pseudo(combine=[1,-1])' -o difference.npy
  mercer kernel --net model.onnx --data images.npy --kernel 'trace(sketch=sjlt:4096)' --as-features -o phi.npy
  mercer kernel --net model.onnx --data many.npy --kernel pseudo --memory 8GiB -o gram.zarr
  mercer kernel --net model.onnx --data many.npy --kernel pseudo --memory 8GiB -o gram.zarr --resume
  mercer kernel --arch mlp.toml --data x.npy --kernel 'ntk-limit(weight-std=1.4, bias-std=0.1)' -o limit.npy
  mercer kernel --net cnn.onnx --data images.npy --kernel 'nngp-mc(networks=1000, initialisation=he)' -o mean.npy
  mercer kernel --kernel 'rbf(lengthscale=1.5) + 0.1*linear' --data x.npy --precision f64 -o gram.npy

A .zarr store can be interrupted, resumed, filled by several processes (--part), checked (`mercer info`) and opened in
Python with zarr or dask. A mean over random networks exists for every network and comes with its standard errors in a
second file (mean.standard_error.npy); they do not tell how far the finite width is from the limit.

";

fn after_help() -> String {
    format!("{EXAMPLES}{}", mercer::kernel::language::help())
}

/// Compute a kernel on data: tangent, conjugate and infinite-width kernels of a network, and classic kernels
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct KernelArguments {
    #[command(flatten)]
    kernel: KernelOptions,

    #[command(flatten)]
    parameters: ParameterOptions,

    #[command(flatten)]
    data: DataOptions,

    /// Samples for the columns of the matrix [default: those of --data]
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", help_heading = "Data")]
    against: Vec<String>,

    /// Write one matrix per layer; their sum is the kernel
    #[arg(long, help_heading = "Output")]
    by_layer: bool,

    /// Write the features of the samples instead of the Gram matrix
    #[arg(long, help_heading = "Output")]
    as_features: bool,

    #[command(flatten)]
    output: OutputFile,

    #[command(flatten)]
    resume: ResumeOption,

    /// Compute only these tiles of a store, as in 0..64
    #[arg(long, value_name = "A..B", value_parser = parse_range, conflicts_with = "part", help_heading = "Output")]
    tiles: Option<Range<usize>>,

    #[command(flatten)]
    part: PartOption,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

impl KernelArguments {
    fn job(&self) -> KernelJob {
        KernelJob {
            kernel: self.kernel.spec(&self.parameters),
            data: self.data.spec(),
            against: references(&self.against),
            by_layer: self.by_layer,
            features: self.as_features,
            precision: self.precision.precision,
            tiles: self.tiles.clone(),
            part: self.part.part,
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let (resume, dry_run) = (self.resume.resume, self.dry_run.dry_run);
        let destination = Destination { resume, dry_run, ..self.output.destination() };
        let opened = self.job().open(&destination, console.opening())?;
        if dry_run {
            console.result(opened.plan(), || report::plan(opened.plan()))?;
            // A plan without room for its result is still printed before the error.
            return opened.check_disk();
        }
        let outcome = opened.run(console.context())?;
        console.result(&outcome, || report::outcome(&outcome))
    }
}

/// `A..B`, a range of tiles.
fn parse_range(text: &str) -> Result<Range<usize>, String> {
    let wrong = || format!("`{text}` is not a range of tiles such as 0..64");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
    let range = number(start)?..number(end)?;
    if range.is_empty() { Err(format!("`{text}` is an empty range")) } else { Ok(range) }
}
