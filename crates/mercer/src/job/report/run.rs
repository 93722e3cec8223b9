//! A result that was written earlier, with its record and its findings.

use crate::Error;
use crate::error::cannot_open;
use crate::job::folder::RESULT;
use crate::job::record::{FORMAT, InputRecord, RUN, Record, VERSION, digest_of};
use mercer_data::folder::{Blob, Folder, MANIFEST};
use mercer_data::{self as data, Dataset, read_regular};
use mercer_net::train::files as training;
use serde::Deserialize;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Size limit for a file that describes a result.
const LONGEST: u64 = 64 << 20;

/// A result of a job: a folder, a store, or an array with a record beside it.
#[derive(Debug)]
pub(crate) struct Run {
    /// As it was named.
    pub(crate) place: String,
    pub(crate) path: PathBuf,
    pub(crate) written: Written,
    /// The findings; null for an array or a store.
    pub(crate) result: Value,
    folder: Option<Folder>,
}

/// A record of any version and any job, also of jobs that this program does not know.
#[derive(Debug, Deserialize)]
pub(crate) struct Written {
    format: String,
    version: u32,
    pub(crate) mercer: String,
    pub(crate) instructions: String,
    pub(crate) job: Value,
    pub(crate) inputs: Vec<InputRecord>,
    pub(crate) outputs: Vec<Value>,
    #[serde(default)]
    pub(crate) measurements: Value,
}

impl Run {
    /// Opens a result.
    ///
    /// # Errors
    /// If there is none, it is not complete, was changed, or was written by a newer version.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let place = path.display().to_string();
        if path.symlink_metadata().is_err() {
            return Err(cannot_open(&place, &ErrorKind::NotFound.into()));
        }
        if !path.join(MANIFEST).exists() {
            return Self::without_manifest(path, place);
        }
        let folder = Folder::open(path, None)?;
        let listed = |name: &str| folder.file_names().any(|own| own == name);
        if !listed(RUN) {
            let text = format!("{place}: a {} without a record of how it was made", folder.kind());
            return Err(Error::with_code("no-record", text).hint("make it again with this version"));
        }
        let written = parse_record(&path.join(RUN), &folder.file(RUN)?)?;
        let result = match listed(RESULT) {
            true => parse(&path.join(RESULT), &folder.file(RESULT)?)?,
            false => Value::Null,
        };
        Ok(Self { place, path: path.to_owned(), written, result, folder: Some(folder) })
    }

    fn without_manifest(path: &Path, place: String) -> Result<Self, Error> {
        let record = Record::path(path);
        if record.is_file() {
            let bytes = read_regular(&record, LONGEST).map_err(|error| cannot_open(record.display(), &error))?;
            let written = parse_record(&record, &bytes)?;
            return Ok(Self { place, path: path.to_owned(), written, result: Value::Null, folder: None });
        }
        let error = Error::with_code("no-record", format!("{place}: this is not the result of a run"));
        Err(match (path.is_dir(), path.join(training::STATE).is_file(), path.join(RESULT).is_file()) {
            (true, true, _) => {
                error.hint(format!("{} belongs to an incomplete run: ‹resume› continues it", training::STATE))
            }
            (true, _, true) => error.hint("an early version wrote it, without a record; make it again"),
            (true, ..) => error.hint("name a folder that a command wrote with ‹out›"),
            (false, ..) => error.hint(format!("{} is missing", record.display())),
        })
    }

    /// Compares an array or a store with the digests in its record. The files of a folder are compared as they are read.
    ///
    /// # Errors
    /// If it was changed, or replaced by another one.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let recorded: Vec<&str> = self.written.outputs.iter().filter_map(|output| output["digest"].as_str()).collect();
        // A list of files holds no numbers, and its files are not read.
        let is_list = self.path.extension().is_some_and(|extension| extension == "json");
        if self.folder.is_some() || recorded.is_empty() || is_list {
            return Ok(());
        }
        let same = match self.path.is_dir() {
            false => recorded.contains(&digest_of(&self.path)?.as_str()),
            true => {
                let failed = |error: std::io::Error| cannot_open(&self.place, &error);
                let mut found = Vec::new();
                for entry in std::fs::read_dir(&self.path).map_err(failed)? {
                    let path = entry.map_err(failed)?.path();
                    if path.is_dir() {
                        found.push(digest_of(&path)?);
                    }
                }
                recorded.iter().all(|own| found.iter().any(|digest| digest == own))
            }
        };
        if same {
            return Ok(());
        }
        let reason = format!("it is not what {} describes", Record::path(&self.path).display());
        Err(data::DataError::Damaged { place: self.place.clone(), reason }.into())
    }

    /// The name of the job, which is that of its command.
    pub(crate) fn job(&self) -> &str {
        self.written.job["name"].as_str().unwrap_or("result")
    }

    /// Whether the result has a file of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files().any(|own| own == name)
    }

    /// The named files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.folder.iter().flat_map(|folder| folder.file_names())
    }

    /// A file of the result, verified; none if there is no such file.
    pub(crate) fn file(&self, name: &str) -> Result<Option<Blob>, Error> {
        match &self.folder {
            Some(folder) if self.has(name) => Ok(Some(folder.file(name)?)),
            _ => Ok(None),
        }
    }

    /// An array of the result, verified.
    pub(crate) fn array(&self, name: &str) -> Result<Option<Dataset>, Error> {
        match &self.folder {
            Some(folder) if self.has(name) => Ok(Some(folder.array_file(name)?)),
            _ => Ok(None),
        }
    }

    /// The fingerprint of the input that a setting named.
    pub(crate) fn fingerprint(&self, setting: &str) -> Option<&str> {
        let found = self.written.inputs.iter().find(|input| input.setting == setting);
        found.map(|input| input.fingerprint.as_str())
    }

    /// A number of the findings, by its path.
    pub(crate) fn number(&self, pointer: &str) -> Option<f64> {
        self.result.pointer(pointer).and_then(Value::as_f64)
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Value, Error> {
    let wrong = |error: serde_json::Error| Error::with_code("malformed-file", format!("{}: {error}", path.display()));
    serde_json::from_slice(bytes).map_err(wrong)
}

fn parse_record(path: &Path, bytes: &[u8]) -> Result<Written, Error> {
    let wrong = |why: String| Error::with_code("malformed-file", format!("{}: {why}", path.display()));
    let record: Written = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    if record.format != FORMAT {
        return Err(wrong(format!("its format is not {FORMAT:?}")));
    }
    if record.version > VERSION {
        return Err(data::DataError::Version {
            place: path.display().to_string(),
            found: record.version,
            known: VERSION,
        }
        .into());
    }
    Ok(record)
}
