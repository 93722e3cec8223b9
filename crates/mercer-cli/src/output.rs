//! `-o`: where results go.

use mercer::job::Destination;
use std::path::PathBuf;

/// Where an array goes.
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
    /// As the library takes it.
    pub(crate) fn destination(&self) -> Destination {
        Destination { path: self.path.clone(), force: self.force, ..Destination::default() }
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
    /// As the library takes it.
    pub(crate) fn destination(&self, resume: bool) -> Destination {
        Destination { path: Some(self.path.clone()), force: self.force, resume, ..Destination::default() }
    }
}
