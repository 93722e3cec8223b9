//! Samples within a saved folder, such as the training samples of a machine.

use ndarray::{Array1, Ix2};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reader::Part;
use super::writer::PartWriter;
use crate::columns::Columns;
use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::format::Format;
use crate::labels::{Classes, Labels, Naming};
use crate::preprocess::Preprocess;
use crate::source::Source;

/// Larger sets are referenced instead of copied.
const EMBEDDED: u64 = 1 << 30;

/// Samples with everything known about them. They are stored in the type of their file, together with their
/// preprocessing, which is applied when they are read. Reading them gives the same bits as reading the file.
///
/// A set of more than 1 GiB is referenced by its path and fingerprint, which is checked when it is opened again. Tables,
/// texts and images are always copied, because their path does not say how they were read.
#[derive(Clone, Debug, Default)]
pub struct SavedSamples {
    /// One set per input, read through its preprocessing.
    pub inputs: Vec<Dataset>,
    /// The columns of the inputs that are from tables.
    pub columns: Vec<Option<Columns>>,
    /// The labels of the samples.
    pub labels: Option<Labels>,
    /// The names of the samples.
    pub ids: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct Content {
    inputs: Vec<Input>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<Option<Columns>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels: Option<Kind>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ids: bool,
}

#[derive(Serialize, Deserialize)]
struct Input {
    /// Its original name.
    name: String,
    preprocess: Preprocess,
    /// Its path, if it is not in the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<Reference>,
}

#[derive(Serialize, Deserialize)]
struct Reference {
    place: String,
    fingerprint: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Classes { names: Vec<String> },
    Targets,
}

impl SavedSamples {
    /// The shape of a sample, for every input.
    pub fn shapes(&self) -> Vec<Vec<usize>> {
        self.inputs.iter().map(|input| input.sample_shape().to_vec()).collect()
    }

    /// The preprocessing of each input.
    pub fn preprocess(&self) -> Vec<Preprocess> {
        self.inputs.iter().map(|input| input.preprocess().clone()).collect()
    }

    /// Writes the samples, and returns their entry for the manifest.
    ///
    /// # Errors
    /// If something cannot be read or written.
    pub fn write(&self, part: &PartWriter<'_>) -> Result<Value> {
        self.write_up_to(part, EMBEDDED)
    }

    pub(super) fn write_up_to(&self, part: &PartWriter<'_>, most: u64) -> Result<Value> {
        let mut inputs = Vec::new();
        for (at, input) in self.inputs.iter().enumerate() {
            let is_file = matches!(input.format(), Format::Npy | Format::Npz | Format::Idx);
            let reference = if is_file && input.stored_bytes() > most {
                Some(Reference::to(input)?)
            } else {
                part.dataset(&input_name(at), input)?;
                None
            };
            inputs.push(Input { name: input.name().to_owned(), preprocess: input.preprocess().clone(), reference });
        }
        let labels = match &self.labels {
            None => None,
            Some(Labels::Targets(targets)) => {
                part.array("labels", targets)?;
                Some(Kind::Targets)
            }
            Some(Labels::Classes(classes)) => {
                let indices: Array1<u64> = classes.indices().iter().map(|&index| index as u64).collect();
                part.array("labels", &indices)?;
                Some(Kind::Classes { names: classes.names().to_vec() })
            }
        };
        if let Some(ids) = &self.ids {
            part.object("ids", |writer| Ok(serde_json::to_writer(writer, ids)?))?;
        }
        part.content(&Content { inputs, columns: self.columns.clone(), labels, ids: self.ids.is_some() })
    }

    /// Reads what was written.
    ///
    /// # Errors
    /// [`DataError::Damaged`] and others for files that were changed; [`DataError::Changed`] for referenced samples that have
    /// changed.
    pub fn read(part: &Part<'_>, content: &Value) -> Result<Self> {
        let content: Content = part.content(content)?;
        let mut inputs: Vec<Dataset> = Vec::new();
        for (at, Input { name, preprocess, reference }) in content.inputs.into_iter().enumerate() {
            let dataset = match reference {
                Some(reference) => reference.open()?,
                None => part.array(&input_name(at))?,
            };
            let dataset = dataset.with_name(&name).with_preprocess(preprocess)?;
            if inputs.first().is_some_and(|first| first.n_samples() != dataset.n_samples()) {
                return Err(part.malformed("its inputs are of different lengths"));
            }
            inputs.push(dataset);
        }
        let labels = match content.labels {
            None => None,
            Some(Kind::Targets) => {
                let targets = part.read::<f64>("labels", &[None, None])?.into_dimensionality::<Ix2>();
                Some(Labels::Targets(targets.map_err(|error| part.malformed(error))?))
            }
            Some(Kind::Classes { names }) => {
                // Class indices are far below 2⁵³, so they are exact.
                let indices = part.read::<f64>("labels", &[None])?.iter().map(|&index| index as usize).collect();
                let classes = Classes { indices, naming: Naming::from_names(&names), names };
                if classes.indices.iter().any(|&index| index >= classes.names.len()) {
                    return Err(part.malformed("a label belongs to no class"));
                }
                Some(Labels::Classes(classes))
            }
        };
        let ids: Option<Vec<String>> = match content.ids {
            true => Some(serde_json::from_slice(&part.object("ids")?).map_err(|error| part.malformed(error))?),
            false => None,
        };
        let known = inputs.first().map(Dataset::n_samples);
        let counts = [labels.as_ref().map(Labels::n_samples), ids.as_ref().map(Vec::len)];
        if counts.iter().flatten().any(|&count| known.is_some_and(|known| known != count)) {
            return Err(part.malformed("the number of its labels or ids differs from the number of its samples"));
        }
        Ok(Self { inputs, columns: content.columns, labels, ids })
    }
}

impl Reference {
    fn to(dataset: &Dataset) -> Result<Self> {
        let source: Source = dataset.place().parse()?;
        let path = std::path::absolute(source.path()).unwrap_or_else(|_| source.path().to_owned());
        let source = Source::new(path, source.key());
        let plain = dataset.clone().with_preprocess(Preprocess::new())?;
        Ok(Self { place: source.place(), fingerprint: plain.fingerprint()? })
    }

    fn open(self) -> Result<Dataset> {
        let dataset = self.place.parse::<Source>()?.open()?;
        if dataset.fingerprint()? != self.fingerprint {
            return Err(DataError::Changed { place: self.place });
        }
        Ok(dataset)
    }
}

fn input_name(at: usize) -> String {
    format!("input{at}")
}
