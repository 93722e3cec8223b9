//! `-o` for commands that write one array.

use crate::failure::{Failure, cannot_write};
use mercer::data::{self, Existing, Results};
use mercer::net::train::files;
use std::path::{Path, PathBuf};

/// Where the result goes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFile {
    /// Write the result to this .npy file
    #[arg(short = 'o', long = "output", value_name = "OUT.npy")]
    pub(crate) path: Option<PathBuf>,

    /// Replace a file that is there already
    #[arg(long)]
    pub(crate) force: bool,
}

impl OutputFile {
    /// What happens to a file of that name.
    pub(crate) fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }

    /// Refuses what could not be written in the end, before the work begins.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        let place = path.display();
        if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
            return Err(Failure::new(format!("-o {place}: the result is written as .npy"))
                .hint(format!("-o {}", path.with_extension("npy").display())));
        }
        if path.is_dir() {
            return Err(Failure::new(format!("-o {place}: this is a folder")).hint("name a file in it"));
        }
        if !self.force && path.symlink_metadata().is_ok() {
            return Err(data::Error::Exists { place: place.to_string() }.into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(
                Failure::new(format!("-o {place}: there is no folder {}", folder.display())).hint("create it first")
            );
        }
        Ok(mercer::data::folder::prepare(folder)?)
    }
}

/// Where the results of a command that writes several files go.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFolder {
    /// Write the results to this folder
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) path: PathBuf,

    /// Replace the results that are in the folder
    #[arg(long)]
    pub(crate) force: bool,
}

impl OutputFolder {
    /// Makes the folder, and refuses one that holds something unless it may be replaced or gone on with.
    pub(crate) fn prepare(&self, resume: bool) -> Result<(), Failure> {
        let hint = "--force replaces what is there; --resume goes on with it";
        prepare_folder(&self.path, &files::results(&self.path)?, self.force, resume, hint)
    }
}

/// Makes a folder ready for results: those of this command that are in it are replaced or gone on with, if that is wanted.
pub(crate) fn prepare_folder(
    path: &Path,
    results: &Results<'_>,
    force: bool,
    resume: bool,
    hint: &str,
) -> Result<(), Failure> {
    let place = path.display();
    if path.is_file() {
        return Err(Failure::new(format!("-o {place}: this is a file")).hint("name a folder"));
    }
    if results.any() && !force && !resume {
        return Err(Failure::new(format!("-o {place}: there are results in it already")).hint(hint));
    }
    mercer::data::folder::prepare(path)?;
    std::fs::create_dir_all(path).map_err(|error| cannot_write(place, &error))?;
    match force {
        true => results.clear(&[])?,
        false => results.check()?,
    }
    Ok(())
}
