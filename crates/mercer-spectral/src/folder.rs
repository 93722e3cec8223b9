//! Eigenfunctions as a folder of plain files.
//!
//! ```text
//! DIR/eigenfunctions.json    format and version, sizes, shapes of the inputs, the basis, repairs, notes
//! DIR/values.npy             μ, f64, descending
//! DIR/weights.npy            n_functions × k: the functions are b(x)·W
//! DIR/…                      files of the basis: landmarks0.npy, frequencies.npy, networks as .onnx
//! DIR/kernel.onnx            the network whose kernel it is, as it was given
//! ```
//!
//! Nothing in the folder is trusted: sizes are checked against the files before they are read, numbers must be finite, no
//! file name is taken from a file, and there are no pickles.

use crate::basis::Basis;
use crate::error::{Result, SpectralError};
use crate::features::{self, Mapped};
use crate::fourier::{self, Fourier};
use crate::functions::Eigenfunctions;
use crate::learnt::networks;
use crate::origin::Origin;
use crate::sections;
use crate::spectrum::Repairs;
use mercer_data::{Existing, Source, write_atomic, write_npy};
use mercer_kernel::{Kernel, Real};
use ndarray::{ArrayD, ArrayViewD, Ix1, Ix2};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// The file that makes a folder one of eigenfunctions.
pub(crate) const DESCRIPTION: &str = "eigenfunctions.json";

const FORMAT: &str = "mercer eigenfunctions";

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;

/// A description is small; anything longer is not one.
const LONGEST: u64 = 16 << 20;

/// What `eigenfunctions.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    format: String,
    version: u64,
    /// The version of Mercer that wrote it.
    pub mercer: String,
    /// The scalar that the functions were found in: `f32` or `f64`.
    pub precision: String,
    /// How many functions there are.
    pub components: usize,
    /// How many functions of the basis they are combinations of.
    pub functions: usize,
    /// Rows per sample: 1, or the number of outputs of a matrix-valued kernel.
    pub per_sample: usize,
    /// The shape of a sample, for every input.
    pub inputs: Vec<Vec<usize>>,
    /// The basis: an object with a `type`.
    pub basis: Value,
    /// Where the kernel comes from, if that is known: its recipe.
    #[serde(default)]
    pub origin: Option<Value>,
    /// What was repaired.
    pub repairs: Repairs,
    /// What is good to know, such as the method.
    pub notes: Map<String, Value>,
}

impl Description {
    /// Whether a folder means to be one of eigenfunctions.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(DESCRIPTION).is_file()
    }

    /// Reads the description alone, without the functions.
    ///
    /// # Errors
    /// [`SpectralError::Folder`] for a folder that is none of eigenfunctions, or a damaged one.
    pub fn read(folder: &Path) -> Result<Self> {
        read_description(&folder.join(DESCRIPTION))
    }
}

impl<T: Real> Eigenfunctions<T> {
    /// Writes the functions into a folder, which is made if it is not there.
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let failed = |source| mercer_data::Error::Io { place: folder.display().to_string(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        write_array(folder, "values.npy", self.values().view().into_dyn(), existing)?;
        write_array(folder, "weights.npy", self.weights().view().into_dyn(), existing)?;
        let description = Description {
            format: FORMAT.to_owned(),
            version: VERSION,
            mercer: env!("CARGO_PKG_VERSION").to_owned(),
            precision: <T as mercer_data::Element>::NAME.to_owned(),
            components: self.n_components(),
            functions: self.basis().n_functions(),
            per_sample: self.per_sample(),
            inputs: self.basis().input_shapes().to_vec(),
            basis: self.basis().save(folder, existing)?,
            origin: self.origin().map(|origin| origin.save(folder, existing)).transpose()?,
            repairs: *self.repairs(),
            notes: self.notes().clone(),
        };
        // Last, so that a folder that was not completed is none.
        let text = serde_json::to_string_pretty(&description)
            .map_err(|error| SpectralError::folder(folder, error.to_string()))?;
        Ok(write_atomic(&folder.join(DESCRIPTION), existing, |writer| writer.write_all(text.as_bytes()))?)
    }

    /// Reads functions that were saved. Sections of a kernel without an [`Origin`](crate::Origin) need the kernel, which must be
    /// the same one.
    ///
    /// # Errors
    /// [`SpectralError::Folder`] for a folder that is damaged, [`SpectralError::OtherKernel`] for a kernel that is missing or
    /// another one.
    pub fn load(folder: &Path, kernel: Option<Arc<dyn Kernel<T>>>) -> Result<Self> {
        let path = folder.join(DESCRIPTION);
        let description = read_description(&path)?;
        let origin = description.origin.as_ref().map(|value| Origin::load(folder, value)).transpose()?;
        let basis = read_basis(folder, &description, kernel, origin.as_ref())?;
        let wrong = |what: &str| SpectralError::folder(&path, format!("the {what} of the files are others"));
        if basis.n_functions() != description.functions
            || basis.per_sample() != description.per_sample
            || basis.input_shapes() != description.inputs
        {
            return Err(wrong("sizes"));
        }
        let values = read_array::<f64>(folder, "values.npy")?;
        let values = values.into_dimensionality::<Ix1>().map_err(|_| wrong("axes"))?;
        let weights = read_array::<T>(folder, "weights.npy")?;
        let weights = weights.into_dimensionality::<Ix2>().map_err(|_| wrong("axes"))?;
        if values.len() != description.components || weights.dim() != (description.functions, values.len()) {
            return Err(wrong("sizes"));
        }
        let loaded = Self::new(&values.to_vec(), basis, weights)?.with_repairs(description.repairs).with_origin(origin);
        Ok(description.notes.into_iter().fold(loaded, |functions, (name, value)| functions.note(&name, value)))
    }
}

fn read_description(path: &Path) -> Result<Description> {
    let failed = |error: std::io::Error| SpectralError::folder(path, error.to_string());
    let bytes = mercer_data::read_regular(path, LONGEST).map_err(failed)?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| SpectralError::folder(path, error.to_string()))?;
    // A later format may look different as a whole, so its version comes first.
    match (value["format"].as_str(), value["version"].as_u64()) {
        (Some(FORMAT), Some(VERSION)) => {}
        (Some(FORMAT), Some(version)) => {
            return Err(SpectralError::folder(path, format!("its format has version {version}, this is {VERSION}")));
        }
        _ => return Err(SpectralError::folder(path, format!("its format is not {FORMAT:?}"))),
    }
    Description::deserialize(value).map_err(|error| SpectralError::folder(path, error.to_string()))
}

/// The basis of a description: one line per type.
fn read_basis<T: Real>(
    folder: &Path,
    description: &Description,
    kernel: Option<Arc<dyn Kernel<T>>>,
    origin: Option<&Origin>,
) -> Result<Arc<dyn Basis<T>>> {
    let (basis, inputs) = (&description.basis, &description.inputs);
    let rebuilt = || origin.map(|origin| origin.build::<T>(inputs)).transpose();
    Ok(match basis["type"].as_str() {
        Some(sections::TYPE) => {
            let kernel = match kernel {
                Some(kernel) => Some(kernel),
                None => rebuilt()?.map(|built| built.kernel),
            };
            Arc::new(sections::load(folder, basis, inputs, kernel)?)
        }
        Some(fourier::TYPE) => Arc::new(Fourier::load(folder, basis, inputs)?),
        Some(features::TYPE) => Arc::new(Mapped::load(folder, basis, inputs, rebuilt()?.and_then(|built| built.map))?),
        Some(networks::TYPE) => Arc::new(networks::load(folder, basis)?),
        other => {
            let reason = format!("there is no basis of type {other:?}");
            return Err(SpectralError::folder(&folder.join(DESCRIPTION), reason));
        }
    })
}

/// Writes an array of a basis.
pub(crate) fn write_array<T: mercer_data::Element>(
    folder: &Path,
    name: &str,
    array: ArrayViewD<'_, T>,
    existing: Existing,
) -> Result<()> {
    Ok(write_npy(&folder.join(name), &array, existing)?)
}

/// Reads an array of a basis; its numbers are finite.
pub(crate) fn read_array<T: mercer_data::Element>(folder: &Path, name: &str) -> Result<ArrayD<T>> {
    Ok(Source::new(folder.join(name), None).open()?.read()?)
}
