//! The folder of a run: what it may contain, and how existing files are treated.
//!
//! State and checkpoints are written in place during the run, so that it can be resumed after a kill. Everything else
//! is written at the end, in one transaction with the manifest that lists it. Resuming a complete run removes the
//! manifest first, so a folder is either complete or visibly incomplete.

use crate::Error;
use crate::error::cannot_write;
use crate::job::Destination;
use crate::job::folder::{RESULT, ResultFolder};
use mercer_data::folder::{check_listed, holds, release, remove, sweep};
use mercer_net::NetError;
use mercer_net::train::files;
use std::path::Path;

/// A folder that a run can write to.
pub(super) struct Place {
    pub(super) folder: ResultFolder,
    pub(super) resume: bool,
    force: bool,
}

impl Place {
    /// Rejects a folder with contents, unless they may be replaced or resumed. Nothing is removed yet.
    pub(super) fn check(destination: &Destination) -> Result<Self, Error> {
        let Destination { force, resume, .. } = *destination;
        if force && resume {
            return Err(Error::new("‹force› starts again and ‹resume› continues: give one of them"));
        }
        let path = destination.folder()?;
        sweep(path)?;
        let results = files::results(path)?;
        if results.any() && !force && !resume {
            let text = format!("‹out› {}: this folder already holds results", path.display());
            return Err(Error::with_code("exists", text).hint("‹force› replaces them; ‹resume› continues the run"));
        }
        results.check()?;
        if resume {
            for name in files::ongoing(path)? {
                check_listed(&path.join(name)).map_err(|error| Error::from(error).hint("‹force› starts again"))?;
            }
        }
        let folder = ResultFolder::begin(path, files::SAVED, force || resume)?;
        Ok(Self { folder, resume, force })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the results that are replaced.
    pub(super) fn clear(&self) -> Result<(), Error> {
        if self.force {
            remove(self.path(), files::SAVED)?;
            files::results(self.path())?.clear(&[])?;
        }
        Ok(())
    }

    /// The manifest is removed before state or checkpoints change.
    pub(super) fn reopen(&self) -> Result<(), NetError> {
        Ok(release(self.path(), files::SAVED, &files::ongoing(self.path())?)?)
    }

    /// Lists state and checkpoints, and makes room for the rest.
    pub(super) fn adopt(&self) -> Result<(), Error> {
        if self.resume && !holds(self.path(), files::SAVED) {
            // Results of an earlier version, which wrote no manifest. They have been recognised as ours.
            for path in [files::MODEL, files::TENSORS, RESULT].map(|name| self.path().join(name)) {
                if path.is_file() {
                    std::fs::remove_file(&path).map_err(|error| cannot_write(path.display(), &error))?;
                }
            }
        }
        files::ongoing(self.path())?.iter().try_for_each(|name| self.folder.adopt(name))
    }
}
