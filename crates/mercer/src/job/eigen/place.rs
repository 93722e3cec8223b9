//! The folder of the results, which also holds the state of a learning run.

use crate::Error;
use crate::job::Destination;
use crate::job::folder::ResultFolder;
use mercer_data as data;
use mercer_spectral::KIND;
use mercer_spectral::learnt::{STATE, clear_state, has_state};
use std::path::Path;

/// The files with names, beside findings and record.
pub(super) const VALUES: &str = "values.npy";
pub(super) const VALUES_BEFORE: &str = "values_before.npy";
pub(super) const ON_DATA: &str = "psi_data.npy";
pub(super) const ON_EVAL: &str = "psi.npy";
pub(super) const NETWORK: &str = "psi.onnx";
pub(super) const FIGURE: &str = "functions.svg";

/// A folder that can be written to.
pub(super) struct Place {
    pub(super) folder: ResultFolder,
    resume: bool,
}

impl Place {
    /// Rejects a folder that holds results or cannot be written to, before the work begins; none for a plan.
    pub(super) fn begin(destination: &Destination) -> Result<Option<Self>, Error> {
        if destination.dry_run {
            return Ok(None);
        }
        let path = destination.folder()?;
        let folder = create(destination)?;
        let state = path.join(STATE);
        if !destination.resume && state.symlink_metadata().is_ok() {
            let place = state.display().to_string();
            match (destination.force, has_state(path)) {
                (true, true) => {}
                (true, false) => return Err(data::DataError::Foreign { place }.into()),
                (false, _) => {
                    return Err(Error::from(data::DataError::Exists { place })
                        .with_message(format!(
                            "‹out› {}: this folder holds the state of an interrupted run",
                            path.display()
                        ))
                        .hint("‹resume› continues it; ‹force› starts again"));
                }
            }
        }
        Ok(Some(Self { folder, resume: destination.resume }))
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether to resume from a state.
    pub(super) fn resumes(&self) -> bool {
        self.resume
    }

    /// Removes the state of an earlier run, unless it is resumed.
    pub(super) fn clear(&self) -> Result<(), Error> {
        if self.resume { Ok(()) } else { Ok(clear_state(self.path())?) }
    }
}

/// A folder for results of this kind, which is empty or may be replaced.
pub(super) fn create(destination: &Destination) -> Result<ResultFolder, Error> {
    let names = [VALUES, VALUES_BEFORE, ON_DATA, ON_EVAL, NETWORK, FIGURE];
    ResultFolder::create(destination, KIND, &names).map_err(|error| match (error.code(), &destination.path) {
        ("exists", Some(path)) => {
            let text = format!("‹out› {}: this folder already holds results", path.display());
            error.with_message(text).hint("‹force› replaces them")
        }
        _ => error,
    })
}
