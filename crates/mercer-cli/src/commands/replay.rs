//! `mercer replay`: repeats a run and compares its results with the first run.

use crate::console::{Console, setting};
use mercer::Error;
use mercer::job::{Replayed, replay};
use mercer::text::count;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer replay gram.npy                            uses gram.npy.run.json, which is next to it
  mercer replay gram.zarr
  mercer replay machine                             any folder that a command wrote

The job is read from the record of the run, repeated in a temporary folder next to the result, and the digests of the
outputs are compared. Nothing is changed. Paths are those of the first run, so start it from the same folder.
Exit codes: 0 the same, 1 something differs, 2 an input or the record is missing.";

/// Repeat a run and check that it gives the same results
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArguments {
    /// Result to check: an array, a store or a folder
    result: PathBuf,
}

impl ReplayArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let replayed = replay(&self.result, console.context())?;
        console.result(&replayed, || text(&replayed))?;
        match replayed.is_same() {
            true => Ok(()),
            false => Err(Error::check(format!("{} is not what its run gives now", self.result.display()))),
        }
    }
}

fn text(replayed: &Replayed) -> String {
    let mut text = format!("{} done again: {} the same\n", replayed.job, count(replayed.same, "output"));
    for input in &replayed.changed_inputs {
        text += &format!("changed since: {}\n", mercer::rendered(input, &setting));
    }
    for output in &replayed.differences {
        text += &format!("differs: {output}\n");
    }
    for circumstance in &replayed.circumstances {
        text += &format!("{circumstance}\n");
    }
    text
}
