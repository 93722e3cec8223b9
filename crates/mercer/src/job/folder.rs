//! Results of a job that go to a folder, all at once.
//!
//! ```text
//! DIR/folder.json, DIR/objects/   what was saved: a machine, eigenfunctions, a posterior, a network
//! DIR/result.json                 the findings
//! DIR/run.json                    the record of the run
//! DIR/psi.npy, …                  artefacts for people and other programs
//! ```

use super::record::{AnyJob, InputRecord, OutputRecord, RUN, Record};
use super::{Artefact, Destination, Outcome, Stopwatch};
use crate::{Error, Json};
use mercer_data::folder::{FolderKind, FolderWriter};
use mercer_data::{Existing, Storable};
use mercer_run::Context;
use ndarray::{ArrayBase, Data, Dimension};
use serde::Serialize;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The name of the findings in a folder.
pub(crate) const RESULT: &str = "result.json";

/// A folder for results. It appears only on [`finish`](Self::finish).
pub(crate) struct ResultFolder {
    writer: FolderWriter,
    path: PathBuf,
    artefacts: RefCell<Vec<Artefact>>,
}

impl std::fmt::Debug for ResultFolder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ResultFolder").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ResultFolder {
    /// Begins a folder, and checks before the work that files with these names may be written there.
    pub(crate) fn create(destination: &Destination, kind: FolderKind, names: &[&str]) -> Result<Self, Error> {
        let folder = Self::begin(destination.folder()?, kind, destination.force)?;
        let all: Vec<&str> = names.iter().copied().chain([RESULT, RUN]).collect();
        folder.writer.claim(&all)?;
        Ok(folder)
    }

    /// Begins a folder, for a job that checks the existing contents itself.
    pub(crate) fn begin(path: &Path, kind: FolderKind, replace: bool) -> Result<Self, Error> {
        let existing = if replace { Existing::Replace } else { Existing::Refuse };
        let writer = FolderWriter::create(path, kind, existing)?;
        Ok(Self { writer, path: path.to_owned(), artefacts: RefCell::default() })
    }

    /// Lists a file that is already in place.
    pub(crate) fn adopt(&self, name: &str) -> Result<(), Error> {
        self.writer.adopt(name)?;
        self.artefacts.borrow_mut().push(Artefact::file(name, self.path.join(name).display().to_string()));
        Ok(())
    }

    /// The writer for the saved parts.
    pub(crate) fn writer(&self) -> &FolderWriter {
        &self.writer
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an array under a name.
    pub(crate) fn array<T: Storable, S: Data<Elem = T>, D: Dimension>(
        &self,
        name: &str,
        array: &ArrayBase<S, D>,
    ) -> Result<(), Error> {
        self.writer.array_file(name, array)?;
        let (path, dtype) = (self.path.join(name).display().to_string(), format!("{:?}", T::DTYPE).to_lowercase());
        self.artefacts.borrow_mut().push(Artefact::array(name, path, array.shape(), &dtype));
        Ok(())
    }

    /// Writes a file under a name.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.writer.file(name, |file| file.write_all(bytes))?;
        self.artefacts.borrow_mut().push(Artefact::file(name, self.path.join(name).display().to_string()));
        Ok(())
    }

    /// Writes findings and record, and moves everything into place. `content` is the description of the saved object.
    pub(crate) fn finish<F: Serialize>(
        self,
        job: impl Into<AnyJob>,
        inputs: Vec<InputRecord>,
        findings: F,
        content: &impl Serialize,
        (watch, context): (Stopwatch, &Context),
    ) -> Result<Outcome<F>, Error> {
        let result = findings.json()?;
        self.writer.file(RESULT, |file| file.write_all(result.as_bytes()))?;
        let outcome = watch.outcome(findings, self.artefacts.take(), context);
        let outputs = self.writer.entries().into_iter();
        let outputs = outputs.map(|(name, entry)| OutputRecord { name, digest: entry.digest }).collect();
        let record = Record::new(job, inputs, outputs, outcome.measurements.clone()).to_json()?;
        self.writer.file(RUN, |file| file.write_all(record.as_bytes()))?;
        self.writer.commit(content)?;
        Ok(outcome)
    }
}
