//! `-o` of `mercer eigen`: a folder of results.

use super::report::EigenReport;
use super::solve::failure;
use crate::failure::{Failure, cannot_write};
use mercer::data::{Existing, RECORD, write_atomic, write_npy};
use mercer::kernel::Real;
use mercer::spectral::files;
use ndarray::{ArrayBase, Data, Dimension};
use std::path::{Path, PathBuf};

/// Where the results go.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Folder {
    /// Write the results to this folder
    #[arg(short = 'o', long = "out", value_name = "DIR")]
    path: PathBuf,

    /// Replace the results that are in the folder
    #[arg(long)]
    force: bool,
}

impl Folder {
    /// Refuses a folder that holds results, before the work begins.
    pub(super) fn check(&self, resume: bool) -> Result<(), Failure> {
        let place = self.path.display();
        if self.path.is_file() {
            return Err(Failure::new(format!("-o {place}: this is a file")).hint("name a folder"));
        }
        let results = files::results(&self.path).map_err(failure)?;
        if !self.force && !resume && results.any() {
            return Err(
                Failure::new(format!("-o {place}: there are results in it already")).hint("--force replaces them")
            );
        }
        // What is not ours is found before the work begins, and so is a place that cannot be written to.
        results.check()?;
        Ok(mercer::data::folder::prepare(&self.path)?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder was checked; what is there is to be replaced.
    pub(super) fn existing(&self) -> Existing {
        Existing::Replace
    }

    /// Makes the folder; what it holds of an earlier run is taken away first, unless that is to go on.
    pub(super) fn create(&self, resume: bool) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.path).map_err(|error| cannot_write(self.path.display(), &error))?;
        if self.force {
            let keep: &[&str] = if resume { &["state.safetensors"] } else { &[] };
            files::remove(&self.path.join(files::BEFORE)).map_err(failure)?;
            files::remove(&self.path).map_err(failure)?;
            // An empty folder went with what it held.
            std::fs::create_dir_all(&self.path).map_err(|error| cannot_write(self.path.display(), &error))?;
            files::results(&self.path).map_err(failure)?.clear(keep)?;
        }
        Ok(())
    }

    /// Writes an array into it.
    pub(super) fn write<T: Real, S: Data<Elem = T>, D: Dimension>(
        &self,
        name: &str,
        array: &ArrayBase<S, D>,
    ) -> Result<(), Failure> {
        Ok(write_npy(&self.path.join(name), &array.view(), self.existing())?)
    }

    /// Writes the record, which lists what was written before it.
    pub(super) fn write_report(&self, report: &mut EigenReport) -> Result<(), Failure> {
        report.files = files::written(&self.path);
        let text = serde_json::to_string_pretty(report)
            .map_err(|error| Failure::new(format!("the result cannot be written as JSON: {error}")))?;
        let path = self.path.join(RECORD);
        Ok(write_atomic(&path, self.existing(), |writer| writer.write_all(text.as_bytes()))?)
    }
}
