//! Where the results of a job go.

use crate::Error;
use mercer_data::{self as data, Existing};
use std::path::{Path, PathBuf};

/// Where results go, and what happens to those that are there already.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// A file for an array, a folder for everything else; nothing if no result is to be written.
    pub path: Option<PathBuf>,
    /// Replace the results that are there.
    pub force: bool,
    /// Go on with what was interrupted.
    pub resume: bool,
    /// Nothing is written: the job is only planned.
    pub dry_run: bool,
}

impl Destination {
    /// A place for results, which must not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..Self::default() }
    }

    /// What happens to a file of the same name.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }

    /// The folder that results are written to; an error if there is none.
    pub fn folder(&self) -> Result<&Path, Error> {
        let missing = || Error::new("there is no place for the results").hint("‹out› DIR");
        let path = self.path.as_deref().ok_or_else(missing)?;
        if path.is_file() {
            return Err(Error::new(format!("‹out› {}: this is a file", path.display())).hint("name a folder"));
        }
        Ok(path)
    }

    /// Refuses a `.npy` file that could not be written in the end.
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

    /// Refuses a place whose folder is not there, or cannot be written to, and clears what dead processes left there.
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

/// Refuses a folder that nothing can be written to, before the work begins: permissions tell only half of it.
fn check_writable(folder: &Path) -> Result<(), Error> {
    let tried = tempfile::Builder::new().prefix(".mercer-").suffix(".part").tempfile_in(folder);
    match tried {
        Ok(_) => Ok(()),
        Err(error) => Err(crate::error::cannot_write(folder.display(), &error)),
    }
}
