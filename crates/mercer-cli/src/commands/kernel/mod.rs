//! `mercer kernel`: the Gram matrix of a network's kernel, or its features, or of a classic kernel.

mod report;

use crate::console::Console;
use crate::options::{DataOptions, KernelOptions, ParameterOptions, choice, references};
use mercer::Error;
use mercer::job::{Destination, Job, KernelJob, Opened};
use mercer::spec::Precision;
use std::ops::Range;
use std::path::PathBuf;

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

A .zarr store can be interrupted, resumed, filled by several processes (--tiles), checked (`mercer info`) and opened in
Python with zarr or dask. A mean over random networks exists for every network and comes with its standard errors in a
second file (mean.standard_error.npy); they do not tell how far the finite width is from the limit.

";

fn after_help() -> String {
    format!("{EXAMPLES}{}", mercer::kernel::language::help())
}

/// Compute a kernel on data: tangent, conjugate and infinite-width kernels of a network, and classic kernels
#[derive(Debug, clap::Args)]
#[command(after_help = after_help(), next_help_heading = "Kernel")]
pub(crate) struct KernelArguments {
    #[command(flatten)]
    kernel: KernelOptions,

    /// Compare with these samples instead of with the same ones: they become the columns
    #[arg(long, value_name = "[NAME=]FILE[:KEY]")]
    against: Vec<String>,

    /// One matrix per layer; their sum is the kernel
    #[arg(long)]
    by_layer: bool,

    /// Write the features instead of the matrix of their products
    #[arg(long)]
    features: bool,

    /// Compute in single or double precision
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = choice::<Precision>())]
    precision: Precision,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    run: RunOptions,

    #[command(flatten)]
    target: TargetOptions,

    #[command(flatten)]
    parameters: ParameterOptions,
}

/// How the work is done.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Run")]
struct RunOptions {
    /// Compute only these tiles of a store, as in 0..64
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    tiles: Option<Range<usize>>,

    /// Say what would be done and what it would take, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Where the result goes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct TargetOptions {
    /// Write to this .npy file or .zarr store
    #[arg(short = 'o', long = "out", value_name = "OUT.npy|OUT.zarr")]
    path: Option<PathBuf>,

    /// Replace what is there already
    #[arg(long, conflicts_with = "resume")]
    force: bool,

    /// Go on with a store that was interrupted or is being filled by others
    #[arg(long)]
    resume: bool,
}

impl KernelArguments {
    fn job(&self) -> KernelJob {
        KernelJob {
            kernel: self.kernel.spec(&self.parameters),
            data: self.data.spec(),
            against: references(&self.against),
            by_layer: self.by_layer,
            features: self.features,
            precision: self.precision,
            tiles: self.run.tiles.clone(),
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let TargetOptions { path, force, resume } = &self.target;
        let (path, force, resume, dry_run) = (path.clone(), *force, *resume, self.run.dry_run);
        let opened = self.job().open(&Destination { path, force, resume, dry_run }, console.opening())?;
        if dry_run {
            console.result(opened.plan(), || report::plan(opened.plan()))?;
            // A plan is shown even if there is no room for its result, and then refused.
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
