//! Eigenfunctions saved as a [folder](mercer_data::folder), or as part of another one.
//!
//! The content of the manifest is a [`EigenDescription`]. Objects are `values` (μ, f64, descending), `weights` (n_functions
//! × k: the functions are b(x)·W), those of the basis, and the `network` of the kernel. `values.npy` holds the values
//! as a named file, for people.

use crate::basis::Basis;
use crate::error::{Result, SpectralError};
use crate::features::{self, Mapped};
use crate::fourier::{self, Fourier};
use crate::functions::Eigenfunctions;
use crate::learnt::networks;
use crate::sections;
use crate::spectrum::Repairs;
use mercer_data::Existing;
use mercer_data::folder::{Folder, FolderKind, FolderWriter, Part, PartWriter};
use mercer_kernel::{Kernel, Real, SavedKernel};
use ndarray::{Array1, Ix1, Ix2};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// The folder kind of eigenfunctions.
pub const KIND: FolderKind = FolderKind { name: "eigenfunctions", version: 1 };

/// The part of a folder with the functions before the finish.
pub const BEFORE: &str = "before";

/// The type of functions that are known only on some samples.
const ON_SAMPLES: &str = "samples";

/// The eigenvalues, as a named file for people.
const VALUES_FILE: &str = "values.npy";

const VALUES: &str = "values";
const WEIGHTS: &str = "weights";

/// The manifest entry of eigenfunctions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EigenDescription {
    /// The precision in which the functions were computed: `f32` or `f64`.
    pub precision: String,
    /// The number of functions.
    pub components: usize,
    /// The number of basis functions.
    pub functions: usize,
    /// Rows per sample: 1, or the number of outputs of a matrix-valued kernel.
    pub per_sample: usize,
    /// The shape of a sample, for every input.
    pub inputs: Vec<Vec<usize>>,
    /// The basis: an object with a `type`.
    pub basis: Value,
    /// The kernel, if it is known.
    #[serde(default)]
    pub kernel: Option<Value>,
    /// The repairs.
    pub repairs: Repairs,
    /// Notes, such as the method.
    pub notes: Map<String, Value>,
    /// The same functions before the finish, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
}

impl EigenDescription {
    /// Whether a folder claims to hold eigenfunctions.
    pub fn is_in(folder: &Path) -> bool {
        mercer_data::folder::holds(folder, KIND)
    }

    /// Reads only the description, without the functions.
    ///
    /// # Errors
    /// For a folder that does not hold eigenfunctions, or is damaged.
    pub fn read(folder: &Path) -> Result<Self> {
        Ok(Folder::open(folder, Some(KIND))?.content()?)
    }

    /// A description of functions that are known only on some samples, such as the eigenvectors of a matrix. The
    /// eigenvalues become an object.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn on_samples<T: Real>(
        part: &PartWriter<'_>,
        (values, per_sample): (&Array1<f64>, usize),
        repairs: Repairs,
        notes: Map<String, Value>,
    ) -> Result<Self> {
        part.array(VALUES, values)?;
        Ok(Self {
            precision: T::NAME.to_owned(),
            components: values.len(),
            functions: 0,
            per_sample,
            inputs: Vec::new(),
            basis: json!({ "type": ON_SAMPLES }),
            kernel: None,
            repairs,
            notes,
            before: None,
        })
    }
}

impl<T: Real> Eigenfunctions<T> {
    /// Writes the functions into a folder and creates it if necessary.
    ///
    /// # Errors
    /// As [`FolderWriter::create`] and [`FolderWriter::commit`].
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let writer = FolderWriter::create(folder, KIND, existing)?;
        let content = self.write(&writer.objects())?;
        writer.array_file(VALUES_FILE, self.values())?;
        Ok(writer.commit(&content)?)
    }

    /// Writes the functions as part of a folder, and returns their entry for the manifest.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write(&self, part: &PartWriter<'_>) -> Result<Value> {
        part.array(VALUES, self.values())?;
        part.array(WEIGHTS, self.weights())?;
        let description = EigenDescription {
            precision: T::NAME.to_owned(),
            components: self.n_components(),
            functions: self.basis().n_functions(),
            per_sample: self.per_sample(),
            inputs: self.basis().input_shapes().to_vec(),
            basis: self.basis().write(part)?,
            kernel: self.saved_kernel().map(|kernel| kernel.write(&part.part("kernel"))).transpose()?,
            repairs: *self.repairs(),
            notes: self.notes().clone(),
            before: None,
        };
        Ok(part.content(&description)?)
    }

    /// The same for functions with a finish, together with the functions before it.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write_finished(&self, before: Option<&Self>, part: &PartWriter<'_>) -> Result<Value> {
        let mut content = self.write(part)?;
        if let (Some(before), Value::Object(fields)) = (before, &mut content) {
            fields.insert(BEFORE.to_owned(), before.write(&part.part(BEFORE))?);
        }
        Ok(content)
    }

    /// Reads saved functions. If they are sections of a kernel that was not saved with them, the same kernel must be
    /// given.
    ///
    /// # Errors
    /// [`Damaged`](mercer_data::DataError::Damaged) and others for a damaged folder, [`SpectralError::OtherKernel`] for a
    /// missing or different kernel.
    pub fn load(folder: &Path, kernel: Option<Arc<dyn Kernel<T>>>) -> Result<Self> {
        let folder = Folder::open(folder, Some(KIND))?;
        Self::read(&folder.objects(), &folder.content()?, kernel)
    }

    /// Reads functions that are part of a folder.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(part: &Part<'_>, content: &Value, kernel: Option<Arc<dyn Kernel<T>>>) -> Result<Self> {
        let description: EigenDescription = part.content(content)?;
        let saved =
            description.kernel.as_ref().map(|value| SavedKernel::read(&part.part("kernel"), value)).transpose()?;
        let basis = read_basis(part, &description, kernel, saved.as_ref())?;
        let wrong = || part.malformed("the sizes of its files do not match");
        if basis.n_functions() != description.functions
            || basis.per_sample() != description.per_sample
            || basis.input_shapes() != description.inputs
        {
            return Err(wrong().into());
        }
        let (components, functions) = (Some(description.components), Some(description.functions));
        let values = part.read::<f64>(VALUES, &[components])?.into_dimensionality::<Ix1>().map_err(|_| wrong())?;
        let weights = part.read::<T>(WEIGHTS, &[functions, components])?;
        let weights = weights.into_dimensionality::<Ix2>().map_err(|_| wrong())?;
        let loaded = Self::new(&values.to_vec(), basis, weights)?.with_repairs(description.repairs).with_kernel(saved);
        Ok(description.notes.into_iter().fold(loaded, |functions, (name, value)| functions.note(&name, value)))
    }
}

/// The basis of a description: one line per type.
fn read_basis<T: Real>(
    part: &Part<'_>,
    description: &EigenDescription,
    kernel: Option<Arc<dyn Kernel<T>>>,
    saved: Option<&SavedKernel>,
) -> Result<Arc<dyn Basis<T>>> {
    let (basis, inputs) = (&description.basis, &description.inputs);
    let rebuilt = || saved.map(|saved| saved.build::<T>(inputs)).transpose();
    Ok(match basis["type"].as_str() {
        Some(sections::TYPE) => {
            let kernel = match kernel {
                Some(kernel) => Some(kernel),
                None => rebuilt()?.map(|built| built.kernel),
            };
            Arc::new(sections::read(part, basis, inputs, kernel)?)
        }
        Some(fourier::TYPE) => Arc::new(Fourier::read(part, basis, inputs)?),
        Some(features::TYPE) => Arc::new(Mapped::read(part, basis, inputs, rebuilt()?.and_then(|built| built.map))?),
        Some(networks::TYPE) => Arc::new(networks::read(part, basis)?),
        Some(ON_SAMPLES) => {
            let reason = "these functions are known on their own samples alone and cannot be evaluated on others";
            return Err(SpectralError::Setting(format!("{}: {reason}", part.place())));
        }
        other => return Err(part.malformed(format!("there is no basis of type {other:?}")).into()),
    })
}

/// An error about a missing or different kernel.
pub(crate) fn other_kernel(part: &Part<'_>, reason: impl Into<String>) -> SpectralError {
    SpectralError::OtherKernel { place: part.place().to_owned(), reason: reason.into() }
}
