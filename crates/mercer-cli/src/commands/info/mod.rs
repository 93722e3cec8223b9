//! `mercer info FILE`: what a model, a data set, a Gram store or a folder of results holds.

mod folder;
mod layers;
mod model;
mod sizes;
mod store;

use crate::console::Console;
use crate::failure::Failure;
use crate::options::ParameterOptions;
use mercer::data::{self, Source, describe};
pub(crate) use model::text as model_text;
use serde::Serialize;
use sizes::GivenShape;
use std::path::Path;

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
/// write: what they are, how they came about, and their files.
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

/// A description of data, marked as such.
#[derive(Serialize)]
struct DataReport {
    kind: &'static str,
    #[serde(flatten)]
    description: data::Description,
}

impl InfoArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        let source: Source = self.file.parse()?;
        let path = source.path();
        if has_extension(path, "onnx") {
            return model::show(path, &self.parameters, &self.shape, console);
        }
        if store::is_store(path) {
            if let Some(key) = source.key() {
                return Err(Failure::new(format!(
                    "{}: a store is shown as a whole, so leave out `:{key}`",
                    path.display()
                )));
            }
            return store::show(path, console);
        }
        if path.is_dir() {
            return folder::show(path, console);
        }
        match describe(&source) {
            Ok(description) => {
                let text = description.to_string();
                console.result(&DataReport { kind: "data", description }, || text)
            }
            // Models go by many names; what begins like one may be one.
            Err(data::Error::UnknownFormat { .. }) if looks_like_onnx(path) => {
                model::show(path, &self.parameters, &self.shape, console)
            }
            Err(error @ data::Error::UnknownFormat { .. }) => {
                Err(Failure::from(error).hint("models are read from ONNX files, by the name .onnx"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// A model begins with the version of the format, which is a small number in field 1.
fn looks_like_onnx(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 3];
    let read = data::open_regular(path).and_then(|(mut file, _)| file.read_exact(&mut start));
    read.is_ok() && start[0] == 0x08 && start[1] < 0x20 && matches!(start[2], 0x12 | 0x3a | 0x42)
}
