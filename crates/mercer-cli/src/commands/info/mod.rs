//! `mercer info FILE`: what a model, a data set, a Gram store or a folder of results holds.

mod folder;
mod model;
mod store;

use crate::console::Console;
use crate::options::ParameterOptions;
use mercer::Error;
use mercer::info::{Findings, GivenShape, Look};

/// Lists longer than this are cut.
const MOST_ROWS: usize = 40;

const EXAMPLES: &str = "\
Examples:
  mercer info model.onnx                      inputs, layers, parameters, FLOPs
  mercer info model.onnx --json | jq .n_params
  mercer info bert.onnx --shape 32            FLOPs for 32 tokens, if the file leaves the length free
  mercer info bert.onnx --shape input_ids=32  the same for one input
  mercer info data.npz                        the arrays of a file
  mercer info data.npz:x                      the numbers of one array
  mercer info gram.zarr                       where a Gram store comes from; reads and checks every tile
  mercer info functions                       a folder written by eigen, fit, uncertainty or train";

/// Show what a model, data set, Gram store or results folder holds
///
/// An ONNX model: inputs, outputs, layers, parameters with the reason why each one counts as a parameter, constants, and
/// the floating-point operations for one sample. Data: arrays, shapes, ranges, classes. A Gram store: what it was computed
/// from, and which tiles are complete and intact. A folder written by `mercer eigen`, `fit`, `uncertainty` or `train`: what
/// it is, how it was made, and whether its files are intact. If something is damaged, it is named and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArguments {
    /// Model (.onnx), data (.npy, .npz, IDX, CSV), Gram store (.zarr) or results folder
    #[arg(value_name = "FILE[:KEY]")]
    file: String,

    /// Shape of a sample, where the model leaves sizes free: all, or the free ones (repeatable)
    #[arg(long, value_name = "[INPUT=]SIZES", help_heading = "Network")]
    shape: Vec<GivenShape>,

    #[command(flatten)]
    parameters: ParameterOptions,
}

impl InfoArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let look = Look { file: self.file.clone(), shape: self.shape.clone(), parameters: self.parameters.spec() };
        let looked = look.run(console.context())?;
        console.result(&looked.findings, || text(&looked.findings, console.verbose))?;
        looked.failure.map_or(Ok(()), Err)
    }
}

/// The findings as text.
fn text(findings: &Findings, verbose: bool) -> String {
    let most = if verbose { usize::MAX - 1 } else { MOST_ROWS };
    match findings {
        Findings::Model(found) => model::text(found, most),
        Findings::Data(found) => found.description.to_string(),
        Findings::Store(found) => store::text(found, most),
        Findings::Folder(found) => folder::text(found, most),
    }
}
