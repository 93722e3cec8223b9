//! `-o` of `mercer eigen`: a folder of results.

use super::report::EigenReport;
use crate::failure::{Failure, cannot_write};
use mercer::data::{Existing, write_atomic, write_npy};
use mercer::kernel::Real;
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

/// Files whose presence makes a folder one of results.
const RESULTS: [&str; 3] = ["result.json", "eigenfunctions.json", "values.npy"];

/// Files of an earlier run that a new one may not write itself; they would be taken for its own.
const LEFT_OVER: [&str; 7] = [
    "eigenfunctions.json",
    "result.json",
    "psi.npy",
    "psi_data.npy",
    "psi.onnx",
    "before/eigenfunctions.json",
    "state.safetensors",
];

impl Folder {
    /// Refuses a folder that holds results, before the work begins.
    pub(super) fn check(&self, resume: bool) -> Result<(), Failure> {
        let place = self.path.display();
        if self.path.is_file() {
            return Err(Failure::new(format!("-o {place}: this is a file")).hint("name a folder"));
        }
        if !self.force && !resume && RESULTS.iter().any(|name| self.path.join(name).exists()) {
            return Err(
                Failure::new(format!("-o {place}: there are results in it already")).hint("--force replaces them")
            );
        }
        Ok(())
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
        let left = LEFT_OVER.iter().map(|name| self.path.join(name)).filter(|path| self.force && path.exists());
        for path in left.filter(|path| !(resume && path.ends_with("state.safetensors"))) {
            std::fs::remove_file(&path).map_err(|error| cannot_write(path.display(), &error))?;
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

    pub(super) fn write_report(&self, report: &EigenReport) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(report)
            .map_err(|error| Failure::new(format!("the result cannot be written as JSON: {error}")))?;
        let path = self.path.join("result.json");
        Ok(write_atomic(&path, self.existing(), |writer| writer.write_all(text.as_bytes()))?)
    }
}
