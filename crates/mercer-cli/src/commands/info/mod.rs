//! `mercer info FILE`: what a model, a data set, a Gram store or a folder of results holds.

mod folder;
mod model;
mod store;

use crate::console::Console;
use crate::options::ParameterOptions;
use mercer::Error;
use mercer::info::{Findings, GivenShape, Look};
use mercer::run::Context;

/// Lists longer than this are cut.
const MOST_ROWS: usize = 40;

const EXAMPLES: &str = "\
Examples:
  mercer info model.onnx                      inputs, layers, parameters, FLOPs
  mercer info model.onnx --json | jq .n_params
  mercer info bert.onnx --shape 32            FLOPs for 32 tokens, where the file leaves the length free
  mercer info bert.onnx --shape input_ids=32  the same for one input
  mercer info data.npz                        the arrays of a file
  mercer info data.npz:x                      the numbers of one of them
  mercer info gram.zarr                       what a store of Gram matrices was made from; reads and checks every tile
  mercer info functions                       a folder of eigenfunctions, of a machine, of a posterior or of a training";

/// Show what a model, a data set, a Gram store or a folder of results holds
///
/// For an ONNX model: inputs, outputs, layers, parameters with the reason why each is one, constants, and the
/// floating-point operations of one sample. For data: arrays, shapes, the range of the numbers, classes. For a store of
/// Gram matrices: what it was made from, how many of its tiles are there, and whether they are as they were written; a
/// damaged tile is named, and the exit code is then 1. For folders that `mercer eigen`, `fit`, `uncertainty` and `train`
/// write: what they are, how they came about, and their files, each checked in the same way.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArguments {
    /// A model (.onnx), data (.npy, .npz, IDX, CSV), a Gram store (.zarr) or a folder of results
    #[arg(value_name = "FILE[:KEY]")]
    file: String,

    /// The shape of a sample where the model leaves sizes free: all sizes, or only the free ones (repeatable)
    #[arg(long, value_name = "[INPUT=]SIZES")]
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

/// What was found, for people.
fn text(findings: &Findings, verbose: bool) -> String {
    let most = if verbose { usize::MAX - 1 } else { MOST_ROWS };
    match findings {
        Findings::Model(found) => model::text(found, most),
        Findings::Data(found) => found.description.to_string(),
        Findings::Store(found) => store::text(found, most),
        Findings::Folder(found) => folder::text(found, most),
    }
}

/// What this command says of a file, for others.
pub(crate) fn text_of(path: &str, verbose: bool, context: &Context) -> Result<String, Error> {
    Ok(text(&Look::at(path).run(context)?.findings, verbose))
}
