//! The record of a run, from which the run can be repeated.
//!
//! It is in the folder that a job wrote (`run.json`), in the store, or beside the array (`x.npy.run.json`). It holds
//! the job after defaults, its inputs as they were named, with fingerprints, and the digests of the outputs. It
//! contains no absolute path that the user did not write, and no machine name.

use super::{
    AuditJob, CompareJob, Destination, EigenJob, ExplainJob, FitJob, Job, KernelJob, Opened, PredictJob, ProbeJob,
    ShiftJob, SpectrumJob, TrainJob, UncertaintyJob,
};
use crate::job::destination::parent;
use crate::job::outcome::Measurements;
use crate::spec::{Inputs, Opening};
use crate::{Error, Json};
use mercer_data::folder::digest;
use mercer_data::{Existing, Fingerprint, read_regular, write_atomic};
use mercer_run::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(crate) const FORMAT: &str = "mercer run";
pub(crate) const VERSION: u32 = 1;

/// Size limit for a record.
const LONGEST: u64 = 64 << 20;

/// The name of the record in a folder or store.
pub(crate) const RUN: &str = "run.json";

/// Declares the enum of all jobs, and how to run one of them again.
macro_rules! jobs {
    ($($(#[$meta:meta])* $variant:ident($job:ty),)*) => {
        /// Any job, by the name of its command.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "name", rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum AnyJob {
            $($(#[$meta])* $variant(Box<$job>),)*
        }

        $(impl From<$job> for AnyJob {
            fn from(job: $job) -> Self {
                Self::$variant(Box::new(job))
            }
        })*

        impl AnyJob {
            /// Runs it, and returns its name.
            fn run(&self, destination: &Destination, context: &Context) -> Result<&'static str, Error> {
                match self {
                    $(Self::$variant(job) => run(&**job, destination, context),)*
                }
            }
        }
    };
}

jobs! {
    /// Looking for wrong training data.
    Audit(AuditJob),
    /// Comparing kernels.
    Compare(CompareJob),
    /// Eigenfunctions of a kernel.
    Eigen(EigenJob),
    /// Explaining predictions.
    Explain(ExplainJob),
    /// Fitting a machine.
    Fit(FitJob),
    /// A kernel on data.
    Kernel(KernelJob),
    /// Predictions on data.
    Predict(PredictJob),
    /// Looking into layers.
    Probe(ProbeJob),
    /// Comparing new data with old.
    Shift(ShiftJob),
    /// Spectra of weights and kernels.
    Spectrum(SpectrumJob),
    /// Training a network.
    Train(TrainJob),
    /// The uncertainty of a network.
    Uncertainty(UncertaintyJob),
}

/// An input of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRecord {
    /// The setting that named it, such as `data`.
    pub setting: String,
    /// As it was named.
    pub place: String,
    /// A fingerprint of its numbers.
    pub fingerprint: String,
}

impl InputRecord {
    /// The input that a setting named, and its fingerprint.
    pub fn new(setting: &str, place: &str, fingerprint: String) -> Self {
        Self { setting: setting.to_owned(), place: place.to_owned(), fingerprint }
    }
}

/// An output of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// Its name, within the folder or beside the record.
    pub name: String,
    /// The digest of its content.
    pub digest: String,
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    format: String,
    version: u32,
    /// The version of Mercer.
    pub mercer: String,
    /// The instruction set, which decides the last bits.
    pub instructions: String,
    /// What was done.
    pub job: AnyJob,
    /// The inputs.
    pub inputs: Vec<InputRecord>,
    /// What came out.
    pub outputs: Vec<OutputRecord>,
    /// What it took.
    pub measurements: Measurements,
}

impl Record {
    /// The record of a job, from its inputs and outputs.
    pub fn new(
        job: impl Into<AnyJob>,
        inputs: Vec<InputRecord>,
        outputs: Vec<OutputRecord>,
        measurements: Measurements,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            mercer: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: mercer_linalg::simd::instruction_set().to_owned(),
            job: job.into(),
            inputs,
            outputs,
            measurements,
        }
    }

    /// As text.
    pub fn to_json(&self) -> Result<String, Error> {
        self.json()
    }

    /// The path of a result's record: in the folder, or beside the file.
    pub fn path(result: &Path) -> PathBuf {
        if result.is_dir() {
            return result.join(RUN);
        }
        let mut name = result.file_name().unwrap_or_default().to_os_string();
        name.push(".");
        name.push(RUN);
        result.with_file_name(name)
    }

    /// Writes the record of a result that is not a folder with a manifest. An existing record is replaced; any other
    /// file is not.
    pub fn write(&self, result: &Path) -> Result<(), Error> {
        let path = Self::path(result);
        if path.symlink_metadata().is_ok() && Self::read_file(&path).is_err() {
            return Err(mercer_data::DataError::Foreign { place: path.display().to_string() }.into());
        }
        let text = self.to_json()?;
        Ok(write_atomic(&path, Existing::Replace, |writer| writer.write_all(text.as_bytes()))?)
    }

    /// Reads the record of a result.
    pub fn read(result: &Path) -> Result<Self, Error> {
        let path = Self::path(result);
        if path.symlink_metadata().is_err() {
            let text = format!("{}: there is no record of how it was made", result.display());
            return Err(Error::with_code("no-record", text).hint(format!("{} is missing", path.display())));
        }
        Self::read_file(&path)
    }

    fn read_file(path: &Path) -> Result<Self, Error> {
        let wrong = |why: String| Error::with_code("malformed-file", format!("{}: {why}", path.display()));
        let bytes = read_regular(path, LONGEST).map_err(|error| crate::error::cannot_open(path.display(), &error))?;
        let record: Self = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if record.format != FORMAT {
            return Err(wrong(format!("its format is not {FORMAT:?}")));
        }
        if record.version > VERSION {
            let text = format!("its version is {}, this program reads up to {VERSION}", record.version);
            return Err(wrong(text));
        }
        Ok(record)
    }
}

/// The digest of a result: of a file, or of all files in a folder except hidden files and metadata.
pub(crate) fn digest_of(path: &Path) -> Result<String, Error> {
    let failed = |error: std::io::Error| crate::error::cannot_open(path.display(), &error);
    if path.is_file() {
        return Ok(Fingerprint::of_file(path)?);
    }
    let mut lines = String::new();
    let mut names: Vec<PathBuf> = std::fs::read_dir(path)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    names.sort();
    for file in names {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') && name != RUN && !name.ends_with(".json") {
            lines += &format!("{name} {}\n", digest_of(&file)?);
        }
    }
    Ok(digest(lines.as_bytes()))
}

/// A repeated run compared with the original.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// The name of the job.
    pub job: &'static str,
    /// Inputs that have changed.
    pub changed_inputs: Vec<String>,
    /// Outputs that differ or are missing.
    pub differences: Vec<String>,
    /// Outputs that are the same.
    pub same: usize,
    /// Differences in the environment: the version or the instruction set.
    pub circumstances: Vec<String>,
}

impl Replayed {
    /// Whether everything is the same.
    pub fn is_same(&self) -> bool {
        self.changed_inputs.is_empty() && self.differences.is_empty()
    }
}

/// Repeats the run that made a result in a temporary folder, and compares the outputs.
///
/// # Errors
/// If there is no record, or an input is missing.
pub fn replay(result: &Path, context: &Context) -> Result<Replayed, Error> {
    let record = Record::read(result)?;
    let place = tempfile::Builder::new().prefix(".mercer-replay-").suffix(".part").tempdir_in(parent(result));
    let place = place.map_err(|error| crate::error::cannot_write(parent(result).display(), &error))?;
    let name = result.file_name().unwrap_or_default();
    let again = place.path().join(name);
    let destination = Destination::new(&again);
    let job = record.job.run(&destination, context)?;
    let new = Record::read(&again)?;
    let changed =
        |old: &InputRecord| !new.inputs.iter().any(|new| new.place == old.place && new.fingerprint == old.fingerprint);
    let changed_inputs = record.inputs.iter().filter(|input| changed(input));
    let changed_inputs = changed_inputs.map(|input| format!("‹{}› {}", input.setting, input.place)).collect();
    let is_same = |old: &&OutputRecord| new.outputs.contains(*old);
    let differences: Vec<String> =
        record.outputs.iter().filter(|old| !is_same(old)).map(|output| output.name.clone()).collect();
    let mut circumstances = Vec::new();
    if record.mercer != new.mercer {
        circumstances.push(format!("it was made by version {}, this is {}", record.mercer, new.mercer));
    }
    if record.instructions != new.instructions {
        circumstances.push(format!("it was made with {}, this is {}", record.instructions, new.instructions));
    }
    let same = record.outputs.len() - differences.len();
    Ok(Replayed { job, changed_inputs, differences, same, circumstances })
}

fn run<J: Job>(job: &J, destination: &Destination, context: &Context) -> Result<&'static str, Error> {
    job.open(destination, Opening { inputs: &Inputs::none(), context })?.run(context)?;
    Ok(J::NAME)
}
