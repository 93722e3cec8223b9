//! The samples of a job, as data.

use super::{DecodingSpec, PreprocessSpec, fingerprint_of_labels};
use crate::Error;
use mercer_data::folder::{Folder, FolderKind};
use mercer_data::{ClassOrder, Classes, Dataset, ImageFolder, Labels, Source, parse_classes};
use mercer_run::Context;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An array that a job names: a file, as `[NAME=]FILE[:KEY]`, or an array of the program that runs the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DataRef {
    /// A file, as the user wrote it.
    File(String),
    /// An array of [`Inputs`], by name. An array named like an input of the network goes to that input.
    Given {
        /// The name.
        given: String,
    },
}

impl DataRef {
    /// The array of this name.
    pub fn given(name: &str) -> Self {
        Self::Given { given: name.to_owned() }
    }

    /// The file, without the name of an input before it; none for an array.
    pub fn source(&self) -> Result<Option<Source>, Error> {
        match self {
            Self::File(text) => Ok(Some(text.parse()?)),
            Self::Given { .. } => Ok(None),
        }
    }

    /// Opens it as labels: those of a folder of images are its class folders.
    pub fn open_labels(&self, inputs: &Inputs) -> Result<Dataset, Error> {
        match self.source()? {
            Some(source) if source.path().is_dir() => Ok(ImageFolder::list(source.path())?.labels()?),
            _ => self.open(inputs),
        }
    }

    /// Opens it.
    pub fn open(&self, inputs: &Inputs) -> Result<Dataset, Error> {
        match self {
            Self::File(text) => Ok(text.parse::<Source>()?.open()?),
            Self::Given { given } => inputs.array(given).cloned(),
        }
    }
}

/// A file, or with a first character NUL, which no path has, the name of a given array.
impl From<String> for DataRef {
    fn from(text: String) -> Self {
        match text.strip_prefix('\0') {
            Some(name) => Self::given(name),
            None => Self::File(text),
        }
    }
}

impl From<&str> for DataRef {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for DataRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(text) => formatter.write_str(text),
            Self::Given { given } => formatter.write_str(given),
        }
    }
}

/// The arrays and saved folders that a program passes to a job.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    arrays: BTreeMap<String, Dataset>,
    folders: BTreeMap<String, Arc<[u8]>>,
}

impl Inputs {
    /// No arrays: the job names only files.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds an array under this name.
    pub fn with(mut self, name: &str, array: Dataset) -> Self {
        self.arrays.insert(name.to_owned(), array);
        self
    }

    /// Adds a saved folder as bytes ([`Folder::to_bytes`]). A job names it as `\0name`, which no path begins with.
    pub fn with_folder(mut self, name: &str, bytes: Arc<[u8]>) -> Self {
        self.folders.insert(name.to_owned(), bytes);
        self
    }

    /// Opens a saved folder: one that the program passed, or one on disk.
    pub(crate) fn folder(&self, place: &Path, kind: Option<FolderKind>) -> Result<Folder, Error> {
        let Some(name) = place.to_str().and_then(|text| text.strip_prefix('\0')) else {
            return Ok(Folder::open(place, kind)?);
        };
        let missing = || Error::new(format!("the folder {name} was not given"));
        let bytes = self.folders.get(name).ok_or_else(missing)?;
        Ok(Folder::from_bytes(bytes.to_vec(), kind)?)
    }

    /// The array of a name.
    pub fn array(&self, name: &str) -> Result<&Dataset, Error> {
        self.arrays.get(name).ok_or_else(|| {
            Error::new(format!("the array {name} was not given"))
                .hint("a run on arrays of a program can be repeated only by that program")
        })
    }
}

/// The arguments for opening a job: the given arrays and the context of the run.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// Arrays of the program that runs the job.
    pub inputs: &'a Inputs,
    /// Receives notes, and limits memory.
    pub context: &'a Context,
}

/// Samples with their labels, and how they are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSpec {
    /// One array per input of the network, or one.
    pub data: Vec<DataRef>,
    /// The labels of the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<DataRef>,
    /// The names of the classes in the order of the outputs: a file with a name per line, or a list as in `cat,dog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<String>,
    /// The preprocessing of the samples.
    #[serde(skip_serializing_if = "PreprocessSpec::is_empty")]
    pub preprocess: PreprocessSpec,
    /// How texts and images become numbers.
    #[serde(skip_serializing_if = "DecodingSpec::is_empty")]
    pub decoding: DecodingSpec,
    /// Sources that are read elsewhere; their columns are not inputs either.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<DataRef>,
}

impl DataSpec {
    /// With the classes of a folder of images as labels, if no others are given. A folder that cannot be read as images
    /// stands there too: whoever reads it says what is wrong with it.
    #[must_use]
    pub fn labelled_by_folders(mut self) -> Self {
        if let (None, [DataRef::File(text)]) = (&self.labels, &self.data[..])
            && let Ok(source) = text.parse::<Source>()
            && source.path().is_dir()
            && ImageFolder::list(source.path()).map_or(true, |folder| folder.class_names().is_some())
        {
            self.labels = Some(DataRef::File(source.place()));
        }
        self
    }

    /// The names of the classes, if any are given.
    pub fn class_names(&self) -> Result<Option<Vec<String>>, Error> {
        let parsed = self.classes.as_deref().map(parse_classes).transpose();
        parsed.map_err(|error| Error::new(format!("‹classes› {error}")))
    }

    /// The order that they give.
    pub fn class_order(&self) -> Result<Option<ClassOrder>, Error> {
        Ok(self.class_names()?.map(ClassOrder::Names))
    }

    /// The same way of reading for other samples.
    pub fn reading(&self, data: &[DataRef], labels: Option<&DataRef>) -> Self {
        Self { data: data.to_vec(), labels: labels.cloned(), used: Vec::new(), ..self.clone() }
    }

    /// The same way of reading, with columns standardised as those of the samples that are learnt from.
    #[must_use]
    pub(crate) fn learnt_from(mut self, samples: &super::Samples) -> Self {
        self.preprocess.learnt = Some(samples.inputs.iter().map(|input| input.preprocess().clone()).collect());
        self
    }
}

/// The targets of a machine: a class or numbers for each sample.
#[derive(Clone, Debug)]
pub enum Known {
    /// One class per sample.
    Classes(Classes),
    /// Numbers per sample.
    Numbers(Array2<f64>),
}

impl Known {
    /// Reads classes or numbers, whichever a machine needs.
    pub fn read(dataset: &Dataset, classes: bool, order: Option<&ClassOrder>) -> Result<Self, Error> {
        if classes {
            let found = Classes::read(dataset)?;
            return Ok(Self::Classes(match order {
                Some(order) => found.ordered(dataset.place(), order)?,
                None => found,
            }));
        }
        if dataset.has_names() {
            let text = format!("‹labels› {}: numbers are needed, and these are names of classes", dataset.place());
            return Err(Error::new(text).hint("a machine for classes: glm, svm, neighbours, …"));
        }
        match Labels::targets(dataset)? {
            Labels::Targets(targets) => Ok(Self::Numbers(targets)),
            Labels::Classes(_) => Err(Error::new("‹labels›: numbers are needed")),
        }
    }

    /// A fingerprint of the targets.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Classes(classes) => fingerprint_of_labels(&Labels::Classes(classes.clone())),
            Self::Numbers(numbers) => fingerprint_of_labels(&Labels::Targets(numbers.clone())),
        }
    }

    /// How many samples there are.
    pub fn n_samples(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.indices().len(),
            Self::Numbers(numbers) => numbers.nrows(),
        }
    }
}
