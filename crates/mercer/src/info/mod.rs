//! What a model, a data set, a Gram store or a folder of results holds.
//!
//! This is not a [job](crate::job): there is nothing to plan, nothing to write and nothing to replay. It is still data,
//! and returns typed findings.
//!
//! ```
//! use mercer::info::{Findings, Look};
//! use mercer::run::Context;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("x.npy");
//! mercer::data::write_npy(&path, &ndarray::array![1.0, 2.5], mercer::data::Existing::Refuse)?;
//! let looked = Look::at(path.display().to_string()).run(&Context::new())?;
//! let Findings::Data(found) = looked.findings else { panic!("an array") };
//! assert_eq!(found.description.summary.unwrap().shape, [2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod folder;
mod layers;
mod model;
mod sizes;
mod store;

use crate::Error;
use crate::spec::ParameterSpec;
pub use folder::{FileDamage, FileFindings, FolderFindings};
pub use layers::LayerInfo;
use mercer_data::{self as data, Source, describe};
use mercer_run::Context;
pub use model::{EndingFindings, InputFindings, ModelFindings, OutputFindings, TensorFindings};
use serde::{Deserialize, Serialize};
pub use sizes::GivenShape;
use std::path::Path;
pub use store::StoreFindings;

/// What to look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// A model, data, a Gram store or a folder of results, as `FILE[:KEY]`.
    pub file: String,
    /// The shape of a sample where a model leaves sizes free.
    #[serde(default)]
    pub shape: Vec<GivenShape>,
    /// Which tensors of a model count as parameters.
    #[serde(default)]
    pub parameters: ParameterSpec,
}

/// The findings, and any damage.
#[derive(Clone, Debug)]
pub struct Looked {
    /// Everything that could be read.
    pub findings: Findings,
    /// Why the findings are incomplete, or what is damaged.
    pub failure: Option<Error>,
}

/// What a file or folder holds.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Findings {
    /// A network.
    Model(Box<ModelFindings>),
    /// A data set.
    Data(Box<DataFindings>),
    /// A store of Gram matrices.
    Store(Box<StoreFindings>),
    /// A saved result.
    Folder(Box<FolderFindings>),
}

/// A description of data, with its kind.
#[derive(Clone, Debug, Serialize)]
pub struct DataFindings {
    /// What this is: `data`.
    pub kind: &'static str,
    /// Arrays, columns and numbers.
    #[serde(flatten)]
    pub description: data::Description,
}

impl Look {
    /// At a file or folder, as it is.
    pub fn at(file: impl Into<String>) -> Self {
        Self { file: file.into(), shape: Vec::new(), parameters: ParameterSpec::default() }
    }

    /// Looks.
    ///
    /// # Errors
    /// If nothing can be read. A partial reading is returned with its [`failure`](Looked::failure).
    pub fn run(&self, context: &Context) -> Result<Looked, Error> {
        let source: Source = self.file.parse()?;
        let path = source.path();
        if has_extension(path, "onnx") {
            return model::look(path, &self.parameters, &self.shape);
        }
        if is_store(path) {
            if let Some(key) = source.key() {
                let text = format!("{}: a store is shown as a whole, so leave out `:{key}`", path.display());
                return Err(Error::new(text));
            }
            return store::look(path, context);
        }
        if path.is_dir() && !holds_images(path) {
            return folder::look(path, context);
        }
        match describe(&source) {
            Ok(description) => {
                let findings = Findings::Data(Box::new(DataFindings { kind: "data", description }));
                Ok(Looked { findings, failure: None })
            }
            // Models have many file extensions, so the first bytes decide.
            Err(data::DataError::UnknownFormat { .. }) if looks_like_onnx(path) => {
                model::look(path, &self.parameters, &self.shape)
            }
            Err(error @ data::DataError::UnknownFormat { .. }) => {
                Err(Error::from(error).hint("models are read from ONNX files, by the name .onnx"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether this is the folder of a store, even a damaged one.
fn is_store(path: &Path) -> bool {
    path.is_dir() && (has_extension(path, "zarr") || path.join("zarr.json").exists())
}

/// Whether this is a folder of images and not one of results, even damaged ones.
fn holds_images(path: &Path) -> bool {
    let has_results = ["folder.json", "result.json", "run.json"].iter().any(|name| path.join(name).exists());
    !has_results && data::ImageFolder::list(path).is_ok()
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// A model begins with the format version, a small number in field 1.
fn looks_like_onnx(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 3];
    let read = data::open_regular(path).and_then(|(mut file, _)| file.read_exact(&mut start));
    read.is_ok() && start[0] == 0x08 && start[1] < 0x20 && matches!(start[2], 0x12 | 0x3a | 0x42)
}

/// Strings without quotation marks, everything else as JSON.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
