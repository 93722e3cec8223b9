//! Where the results of a job go.

use crate::Error;
use mercer_data::{self as data, Existing};
use std::path::{Path, PathBuf};

/// Where results go, and what happens to existing results.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// A file for an array, a folder for everything else; none if no result is written.
    pub path: Option<PathBuf>,
    /// Replace existing results.
    pub force: bool,
    /// Resume an interrupted run.
    pub resume: bool,
    /// Nothing is written: the job is only planned.
    pub dry_run: bool,
}

impl Destination {
    /// A destination that must not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..Self::default() }
    }

    /// What happens to a file of the same name.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }

    /// The folder for the results, or an error if none is given.
    pub fn folder(&self) -> Result<&Path, Error> {
        let missing = || Error::new("there is no destination for the results").hint("‹out› DIR");
        let path = self.path.as_deref().ok_or_else(missing)?;
        if path.is_file() {
            return Err(Error::new(format!("‹out› {}: this is a file", path.display())).hint("name a folder"));
        }
        Ok(path)
    }

    /// Rejects a `.npy` path that could not be written.
    pub fn check_array(&self) -> Result<(), Error> {
        let Some(path) = &self.path else { return Ok(()) };
        let place = path.display();
        if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
            return Err(Error::new(format!("‹out› {place}: the result is written as .npy"))
                .hint(format!("‹out› {}", path.with_extension("npy").display())));
        }
        if path.is_dir() {
            return Err(Error::new(format!("‹out› {place}: this is a folder")).hint("name a file in it"));
        }
        if !self.force && path.symlink_metadata().is_ok() {
            return Err(data::DataError::Exists { place: place.to_string() }.into());
        }
        self.check_parent()
    }

    /// Rejects a path whose folder does not exist or cannot be written to, and removes temporary files of dead
    /// processes.
    pub fn check_parent(&self) -> Result<(), Error> {
        let Some(path) = &self.path else { return Ok(()) };
        let folder = parent(path);
        if !folder.is_dir() {
            let text = format!("‹out› {}: there is no folder {}", path.display(), folder.display());
            return Err(Error::new(text).hint("create it first"));
        }
        if !self.dry_run {
            data::folder::sweep(folder)?;
            check_writable(folder)?;
        }
        Ok(())
    }
}

/// The folder that a path is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Rejects a folder that cannot be written to, before the work begins. Permissions alone do not settle this.
fn check_writable(folder: &Path) -> Result<(), Error> {
    let tried = tempfile::Builder::new().prefix(".mercer-").suffix(".part").tempfile_in(folder);
    match tried {
        Ok(_) => Ok(()),
        Err(error) => Err(crate::error::cannot_write(folder.display(), &error)),
    }
}
